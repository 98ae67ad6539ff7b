//go:build !race

package fakeendpoint_test

const raceDetector = false
