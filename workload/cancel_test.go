package workload

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCancelsHaveTheirShares: each kind has its share, moves nothing else, and
// leaves the warm-up alone.
func TestCancelsHaveTheirShares(t *testing.T) {
	base := "arrivals: {poisson: 10/s}\nrequests: 10000\nprompts: {synthetic: 3}\noutput: 20\nwarmup: {requests: 50}\n"
	plain := take(plan(t, base, 1, "").All(), 10_000)
	p := plan(t, base+"cancel: [{share: 5%, during: prefill}, {share: 10%, after_tokens: {uniform: {min: 5, max: 9}}}, {share: 20%, after: 3s}]\n", 1, "")
	counts, tokens := map[CutKind]float64{}, map[int64]int{}
	for s := range p.All() {
		counts[s.Cancel.When]++
		if s.Cancel.When == CutTokens {
			tokens[s.Cancel.Tokens]++
		}
		if s.Cancel.When == CutTime && s.Cancel.After.Seconds() != 3 {
			t.Fatalf("%+v", s.Cancel)
		}
		s.Cancel = Cut{}
		if d := cmp.Diff(plain[s.Index], s); d != "" {
			t.Fatalf("cancellations move something else:\n%s", d)
		}
	}
	for kind, share := range map[CutKind]float64{CutPrefill: 0.05, CutTokens: 0.1, CutTime: 0.2, CutNever: 0.65} {
		if math.Abs(counts[kind]-10_000*share) > 4*math.Sqrt(10_000*share*(1-share)) {
			t.Errorf("%q: %v of 10000, want %v", kind, counts[kind], 10_000*share)
		}
	}
	if len(tokens) != 5 {
		t.Errorf("tokens %v", tokens)
	}
	for s := range p.WarmUp() {
		if s.Cancel != (Cut{}) {
			t.Fatalf("the warm-up is cancelled: %+v", s.Cancel)
		}
	}
}
