package stat_test

import (
	"fmt"

	"github.com/assay-llm/assay/stat"
)

// A p99 of 100 observations has no upper bound at 95 %, and says so.
func ExampleSample_Quantile() {
	var latencies []float64
	for i := range 100 {
		latencies = append(latencies, float64(i*37%100)) // milliseconds, in time order
	}
	s, err := stat.NewSample(latencies, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	p50 := s.Quantile(0.50, 0.95)
	fmt.Printf("p50 %.1f [%.0f, %.0f]\n", p50.Value, p50.Lo, p50.Hi)
	p99 := s.Quantile(0.99, 0.95)
	fmt.Printf("p99 %.2f [%.0f, %.0f]\n", p99.Value, p99.Lo, p99.Hi)
	for _, w := range p99.Warnings {
		fmt.Println(w.Text)
	}
	// Output:
	// p50 49.5 [39, 60]
	// p99 98.01 [96, +Inf]
	// upper bound not estimable, needs n ≥ 368 (effective; here 100 of 100)
}

// Five failures in 300 against none in 300: the interval of the difference
// still holds zero, and a ratio to zero does not exist.
func ExampleDifference() {
	failed := make([]float64, 300)
	for i := range 5 {
		failed[30+50*i] = 1
	}
	candidate, baseline := stat.Share(failed, 0.95), stat.Share(make([]float64, 300), 0.95)
	d := stat.Difference(candidate, baseline)
	fmt.Printf("%.4f [%.4f, %.4f]\n", d.Value, d.Lo, d.Hi)
	r := stat.Ratio(candidate, baseline)
	fmt.Println(r.Defined(), r.Warnings[len(r.Warnings)-1].Text)
	// Output:
	// 0.0167 [-0.0002, 0.0385]
	// false the baseline is zero; a ratio to it is not defined; compare by difference
}
