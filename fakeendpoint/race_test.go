//go:build race

package fakeendpoint_test

// raceDetector tells that memory is measured with the race detector's own.
const raceDetector = true
