package contract

import (
	"strings"
	"testing"
	"time"
)

// TestBacktestCountsOnlyTheDecided: a good run in which nothing was decided is no run
// without a false alarm, and a bad one no run in which something was missed.
func TestBacktestCountsOnlyTheDecided(t *testing.T) {
	c := decode(t, "version: 1\nclauses: [{id: r, need: p95(ttft) <= 1s, window: 5m, live: {do: [page]}}]\n")
	run := func(name string, label Label, rate float64, traffic Traffic) Recorded {
		traffic.Rate = 1
		e := TestCase{Evidence: []Stretch{{For: 600e9, Candidate: &traffic}}}.evidence()
		e.Records = e.Records[:int(rate*600)]
		return Recorded{Name: name, Label: label, Evidence: e}
	}
	slow := Traffic{TTFT: Spread{Value: 2e9, dim: duration}}
	b := Backtest(c, []Recorded{run("few", Good, 0.01, Traffic{}), run("fine", Good, 1, Traffic{}), run("slow", Bad, 1, slow), run("short", Bad, 0.001, slow)}, 30*time.Second)
	h := b.Clauses[0]
	for as, tally := range map[string]Tally{"gate": h.Gate, "rule": *h.Rule} {
		if tally.Runs != 4 || tally.Decided != 2 || tally.Undecided != 2 || tally.Fired != 1 || tally.False.N != 1 || tally.Found.N != 1 || tally.Found.Value != 1 {
			t.Errorf("as a %s: %+v, false alarms of %d, found of %d", as, tally, tally.False.N, tally.Found.N)
		}
		if !strings.HasPrefix(tally.Because, "few: ") || len(tally.Because) < 10 {
			t.Errorf("as a %s it is undecided because %q", as, tally.Because)
		}
	}
}
