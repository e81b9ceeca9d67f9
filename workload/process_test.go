package workload

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/record"
)

func TestProcessIsWhatThePlanDraws(t *testing.T) {
	for text, want := range map[string]*record.Process{
		"{poisson: 8/s}":  {Kind: "poisson", Rate: []record.RatePiece{{Rate: 8}}},
		"{constant: 8/s}": nil,
		"{gamma: {rate: {ramp: {from: 1/s, to: 10/s}}, cv: 2}}":  {Kind: "gamma", Shape: 0.25, Rate: []record.RatePiece{{Rate: 1, Slope: 9.0 / 60}}},
		"{stairs: {from: 1/s, step: 2/s, every: 30s, to: 3/s}}":  {Kind: "poisson", Rate: []record.RatePiece{{Rate: 1}, {At: 30 * time.Second, Expected: 30, Rate: 3}}},
		"{pulses: {requests: 20, every: 10s, base: 2/s}}":        nil,
		"{process: poisson, pulses: {requests: 20, every: 10s}}": nil,
		"{bursts: {rate: 50/s, base: 2/s, on: 1ms, off: 1ms}}":   nil, // too many pieces
		"{concurrency: 4}": nil,
	} {
		p := plan(t, "arrivals: "+text+"\nfor: 1m\nprompts: {synthetic: 4}\n", 1, "")
		if d := cmp.Diff(want, p.Process()); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
	for end, tested := range map[string]bool{"for: 1m": true, "requests: 100": false} {
		if p := plan(t, "arrivals: {poisson: 8/s}\n"+end+"\nprompts: {synthetic: 4}\nsessions: {turns: 3}\n", 1, ""); (p.Process() != nil) != tested {
			t.Errorf("sessions %s: tested %t", end, !tested)
		}
	}
}

// TestExpectedInvertsTheSchedule: on the axis of expected requests the due instants
// of a plan are its unit-rate process again, whatever the rate does.
func TestExpectedInvertsTheSchedule(t *testing.T) {
	for _, rate := range []string{
		"40/s", "{ramp: {from: 5/s, to: 60/s}}", "{stairs: {from: 10/s, step: 10/s, every: 10s, to: 60/s}}",
		"{bursts: {rate: 90/s, base: 2/s, on: 2s, off: 3s}}", "{diurnal: {mean: 40/s, swing: 60%, period: 1m}}",
		"{mmpp: {states: [{rate: 4/s, dwell: 3s}, {rate: 80/s, dwell: 2s}]}}",
	} {
		p := plan(t, "arrivals: {poisson: "+rate+"}\nfor: 1m\nprompts: {synthetic: 4}\n", 1, "")
		process := p.Process()
		sum := uint64(0)
		for i, due := range p.dues() {
			sum = p.arrivals.add(sum, i)
			if got, want := process.Expected(due), float64(sum)/unit; math.Abs(got-want) > 1e-6 {
				t.Fatalf("%s: shot %d, due %v: %v requests expected before it, want %v", rate, i, due, got, want)
			}
		}
	}
}
