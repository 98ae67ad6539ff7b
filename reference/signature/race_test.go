//go:build race

package signature_test

// raceEnabled: under the race detector sync.Pool drops what it is given at
// random, so allocations cannot be counted.
const raceEnabled = true
