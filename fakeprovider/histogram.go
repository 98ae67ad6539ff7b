package fakeprovider

import (
	"encoding/json"
	"math"
	"math/bits"
	"time"
)

// The grain of a histogram: a value is kept to within 1/128 of itself, below
// 128 µs to the microsecond. Two decimal digits are what percentiles of a
// network are good for.
const (
	histogramBits = 7
	histogramStep = 1 << histogramBits // buckets an octave

	// histogramTop is the largest value that is told apart, 2^33 µs or 2.4 h:
	// longer than a load may last, so nothing is ever cut.
	histogramTop = 33

	histogramSize = (histogramTop - histogramBits + 1) * histogramStep
)

// Distribution is how long things took, as a histogram of fixed size (27 KiB):
// how many values it has seen does not matter. The zero value is empty and
// ready. It is not safe for use by several goroutines at a time.
type Distribution struct {
	buckets  [histogramSize]int64
	count    int64
	sum      time.Duration
	min, max time.Duration
}

// add counts one value; a negative one, from a clock that was set back, is 0.
func (d *Distribution) add(v time.Duration) {
	v = max(v, 0)
	if d.count == 0 || v < d.min {
		d.min = v
	}
	d.max = max(d.max, v)
	d.count++
	d.sum += v
	d.buckets[bucketOf(v)]++
}

// bucketOf is the bucket that counts v.
func bucketOf(v time.Duration) int {
	us := uint64(v.Microseconds())
	if us < histogramStep {
		return int(us)
	}
	octave := bits.Len64(us) - 1 - histogramBits // how many low bits are dropped
	return min(octave*histogramStep+int(us>>octave), histogramSize-1)
}

// bucketEnd is the largest value that a bucket counts.
func bucketEnd(i int) time.Duration {
	if i < histogramStep {
		return time.Duration(i+1)*time.Microsecond - 1
	}
	octave := i/histogramStep - 1
	next := int64(i-octave*histogramStep+1) << octave
	return time.Duration(next)*time.Microsecond - 1
}

// Count is how many values there are.
func (d *Distribution) Count() int64 { return d.count }

// Max is the largest value, exactly; 0 where there is none.
func (d *Distribution) Max() time.Duration { return d.max }

// Min is the smallest value, exactly; 0 where there is none.
func (d *Distribution) Min() time.Duration { return d.min }

// Mean is the average, exactly; 0 where there is no value.
func (d *Distribution) Mean() time.Duration {
	if d.count == 0 {
		return 0
	}
	return d.sum / time.Duration(d.count)
}

// Percentile is a value that p percent of all do not exceed, by the nearest
// rank: 50 is the median, 100 the largest. It is never below the true one and
// at most 1/128 or a microsecond above it. p is bounded to 0 and 100; 0 where
// there is no value.
func (d *Distribution) Percentile(p float64) time.Duration {
	if d.count == 0 {
		return 0
	}
	rank := int64(math.Ceil(min(max(p, 0), 100) / 100 * float64(d.count)))
	rank = min(max(rank, 1), d.count)
	seen := int64(0)
	for i, n := range d.buckets {
		if seen += n; seen >= rank {
			return min(bucketEnd(i), d.max)
		}
	}
	return d.max
}

// distributionJSON is what a report of a load holds, in microseconds.
type distributionJSON struct {
	Count int64 `json:"count"`
	Min   int64 `json:"minMicros"`
	Mean  int64 `json:"meanMicros"`
	P50   int64 `json:"p50Micros"`
	P90   int64 `json:"p90Micros"`
	P99   int64 `json:"p99Micros"`
	P999  int64 `json:"p999Micros"`
	Max   int64 `json:"maxMicros"`
}

// MarshalJSON writes count, bounds, mean and the usual percentiles, in whole
// microseconds.
func (d *Distribution) MarshalJSON() ([]byte, error) {
	return json.Marshal(distributionJSON{
		Count: d.count, Min: d.min.Microseconds(), Mean: d.Mean().Microseconds(),
		P50: d.Percentile(50).Microseconds(), P90: d.Percentile(90).Microseconds(),
		P99: d.Percentile(99).Microseconds(), P999: d.Percentile(99.9).Microseconds(), Max: d.max.Microseconds(),
	})
}
