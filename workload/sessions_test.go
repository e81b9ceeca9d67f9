package workload

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/corpus"
)

// bySession gathers the shots of a plan.
func bySession(t *testing.T, p *Plan) map[string][]Shot {
	t.Helper()
	all := map[string][]Shot{}
	n := int64(0)
	for s := range p.All() {
		if s.Index != n || s.Session == "" || s.Turn != len(all[s.Session]) {
			t.Fatalf("shot %d: index %d, turn %d of session %q", n, s.Index, s.Turn, s.Session)
		}
		all[s.Session] = append(all[s.Session], s)
		n++
	}
	if n != p.Planned() {
		t.Fatalf("%d shots, %d planned", n, p.Planned())
	}
	return all
}

// TestSessionsArePlanned: requests counts turns, the numbers of turns have their
// distribution, later turns add text and begin with nothing that others share.
func TestSessionsArePlanned(t *testing.T) {
	p := plan(t, "arrivals: {poisson: 10/s}\nrequests: 6001\nprompts: {synthetic: 12}\nprefix: {tokens: 9, groups: 2}\nsessions: {turns: {uniform: {min: 2, max: 4}}, think: {exponential: 2s}}\n", 42, "9f9f")
	counts, think, later := map[int]int{}, 0.0, 0
	heads := map[string]bool{}
	sessions := bySession(t, p)
	for name, turns := range sessions {
		counts[len(turns)]++
		for i, s := range turns {
			if s.Turns != len(turns) || s.History != (i > 0) || (s.Due > 0) != (i == 0) || i == 0 && s.Think != 0 {
				t.Fatalf("%s turn %d: %+v", name, i, s)
			}
			if i == 0 {
				heads[strings.Join(strings.Fields(text(s))[:10], " ")] = true
				continue
			}
			think += s.Think.Seconds()
			later++
			if tokensOf(text(s)) != 12 || strings.Contains(text(s), "9f9f") {
				t.Fatalf("%s turn %d adds %q", name, i, text(s))
			}
		}
	}
	if len(heads) != 2 {
		t.Errorf("%d beginnings", len(heads))
	}
	for n, share := range map[int]float64{2: 1. / 3, 3: 1. / 3, 4: 1. / 3} {
		all := float64(len(sessions))
		if math.Abs(float64(counts[n])-all*share) > 4*math.Sqrt(all*share*(1-share)) {
			t.Errorf("%d of %v sessions have %d turns", counts[n], all, n)
		}
	}
	if mean := think / float64(later); math.Abs(mean-2) > 0.2 {
		t.Errorf("mean think time %.2f s", mean)
	}
}

// TestSessionsCountAsTheirTurns: the rate is that of sessions, the busiest second
// counts what they ask.
func TestSessionsCountAsTheirTurns(t *testing.T) {
	p := plan(t, "arrivals: {constant: 10/s}\nrequests: 300\nprompts: {synthetic: 12}\nsessions: {turns: 3}\n", 1, "")
	if p.Rate() < 9.9 || p.Rate() > 10.1 || p.PeakRate() != 30 {
		t.Errorf("%v sessions a second, %v requests in the busiest", p.Rate(), p.PeakRate())
	}
}

// TestAskableCountsWhatTimeLeaves: turns that no session can come to before its block
// is over are not counted on, and those of the shots themselves agree.
func TestAskableCountsWhatTimeLeaves(t *testing.T) {
	const spec = "arrivals: {constant: 1/s}\n%sprompts: {synthetic: 12}\nsessions: {turns: 5, think: 30s}\n"
	p := plan(t, strings.Replace(spec, "%s", "for: 2m\n", 1), 1, "")
	if p.Planned() != 600 {
		t.Fatalf("%d planned", p.Planned())
	}
	// A session that begins in the first half minute of four in a block has four turns, and so on.
	for blocks, want := range map[int]int64{0: 300, 1: 300, 2: 180, 4: 120} {
		counted, block := int64(0), 2*time.Minute/time.Duration(max(blocks, 1))
		for _, turns := range bySession(t, p) {
			at := turns[0].Due
			end := (at/block + 1) * block
			for _, s := range turns {
				if at += s.Think; at < end {
					counted++
				}
			}
		}
		if got := p.Askable(blocks); got != counted || got < want-5 || got > want+5 {
			t.Errorf("%d blocks: %d can be asked, the shots say %d, want about %d", blocks, got, counted, want)
		}
	}
	if p := plan(t, strings.Replace(spec, "%s", "requests: 600\n", 1), 1, ""); p.Askable(4) != 600 {
		t.Errorf("%d of 600 can be asked, and no time cuts them", p.Askable(4))
	}
}

// TestSessionsDrawByTheirTurn: another number of turns moves nothing else.
func TestSessionsDrawByTheirTurn(t *testing.T) {
	text := func(turns string) map[string][]Shot {
		return bySession(t, plan(t, "arrivals: {poisson: 10/s}\nrequests: 900\nprompts: {synthetic: [5, 20]}\noutput: {uniform: {min: 1, max: 99}}\nsessions: {turns: "+turns+", think: {exponential: 2s}}\n", 42, "s"))
	}
	short, long := text("[1, 3]"), text("[2, 6]")
	same := 0
	for name, turns := range short {
		for i, s := range turns {
			if i >= len(long[name]) {
				break
			}
			o := long[name][i]
			o.Index, o.Turns = s.Index, s.Turns
			if d := cmp.Diff(s, o); d != "" {
				t.Fatalf("%s turn %d differs:\n%s", name, i, d)
			}
			same++
		}
	}
	if same < 200 {
		t.Errorf("only %d turns compared", same)
	}
}

// TestDialoguesOfASetAreSessions: a case's user messages are the turns; recorded
// answers are not sent.
func TestDialoguesOfASetAreSessions(t *testing.T) {
	for history, want := range map[string][][]string{
		"true":  {{"[s] Be brief.", "One?"}, {"Two?"}, {"Hurry.", "Three?"}},
		"false": {{"[s] Be brief.", "One?"}, {"[s] Be brief.", "Two?"}, {"[s] Be brief.", "Hurry.", "Three?"}},
	} {
		seen := 0
		for _, turns := range bySession(t, plan(t, "arrivals: {constant: 10/s}\nrequests: 60\nprompts: {file: talk.jsonl}\nsessions: {history: "+history+"}\n", 1, "s")) {
			if turns[0].Case != "t0" || len(turns) < 3 || strings.Contains(text(turns[0]), "[round") {
				continue
			}
			var got [][]string
			for _, s := range turns {
				var turn []string
				for _, m := range s.Messages {
					turn = append(turn, m.Content)
				}
				got = append(got, turn)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("history %s (-want +got):\n%s", history, d)
			}
			seen++
		}
		if seen == 0 {
			t.Errorf("history %s: no dialogue seen", history)
		}
	}
	odd := []corpus.Message{{Role: "system", Content: "a"}, {Role: "assistant", Content: "b"}}
	if d := cmp.Diff(odd, asks(odd, 0, true)); d != "" {
		t.Errorf("without a user: %s", d)
	}
}
