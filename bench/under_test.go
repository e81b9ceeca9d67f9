package bench

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

const underSuite = `
workloads:
  chat: {arrivals: {constant: 5/s}, for: 2s, stream: false, prompts: {synthetic: 10}, output: 4, warmup: {requests: 0}}
checks:
  - shape: {set: cases.jsonl, max_tokens: 64}
    under: {workload: chat, rate: %s}
contract:
  clauses:
    - {id: idle, need: share(shape.truncated) <= 5%%}
    - {id: busy, need: share(shape@busy.truncated) <= 5%%}
    - {id: lost, need: mean(shape@busy.truncated_lost) <= 5%%}
    - {id: changed, need: share(shape@busy.changed) <= 5%%}
    - {id: excess, need: estimate(shape@busy.excess) <= 5%%}
    - {id: chat, need: share(failed) <= 50%%, on: chat}
`

// loadedOracle answers each third case otherwise, and is cut, while more than ten other
// requests came in the last second.
type loadedOracle struct {
	mu   sync.Mutex
	came []time.Time // prompts of the load
	on   bool        // the load has an effect
	deaf bool        // … and is not served
	slow bool        // the load takes a minute, and questions meanwhile long
}

func (l *loadedOracle) answer(prompt string) (int, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !strings.HasPrefix(prompt, "p") || len(prompt) != 4 {
		l.came = append(l.came, time.Now())
		l.wait(l.slow && l.on, time.Minute)
		if l.deaf && l.on {
			return 500, `{"error":{"message":"full"}}`
		}
		return completed("Go on.", "stop")
	}
	n := len(l.came)
	loaded := l.on && n > 10 && time.Since(l.came[n-11]) < time.Second
	l.wait(l.slow && loaded, 20*time.Second)
	if loaded && !l.deaf && !l.slow {
		return every(3, func() (int, string) { return completed("Yes, of", "length") })(prompt)
	}
	return yesEveryTime(prompt)
}

func (l *loadedOracle) wait(is bool, d time.Duration) {
	if is {
		l.mu.Unlock()
		time.Sleep(d)
		l.mu.Lock()
	}
}

// TestChecksRunUnderLoad has one check asked idle and under load: what falls under load is found
// by the clauses about it and by no other, and a load that is not served proves nothing.
func TestChecksRunUnderLoad(t *testing.T) {
	for _, tc := range []struct {
		name string
		cand *loadedOracle
		rate string
		want map[string]contract.Grade
		why  string
	}{
		{name: "clean", cand: new(loadedOracle), rate: "20/s", want: map[string]contract.Grade{"idle": contract.Pass, "busy": contract.Pass, "lost": contract.Pass, "changed": contract.Pass, "excess": contract.Pass, "chat": contract.Pass}},
		{name: "falls", cand: &loadedOracle{on: true}, rate: "20/s", want: map[string]contract.Grade{"idle": contract.Pass, "busy": contract.Fail, "lost": contract.Fail, "changed": contract.Fail, "excess": contract.Fail, "chat": contract.Pass}},
		{name: "not served", cand: &loadedOracle{deaf: true}, rate: "20/s", want: map[string]contract.Grade{"idle": contract.Pass, "busy": contract.Inconclusive, "lost": contract.Inconclusive, "changed": contract.Inconclusive, "excess": contract.Inconclusive, "chat": contract.Pass}, why: "requests were served"},
		{name: "overloaded", cand: &loadedOracle{slow: true}, rate: "20/s", want: map[string]contract.Grade{"idle": contract.Pass, "busy": contract.Inconclusive}, why: "it does not keep up"},
		{name: "too little load", cand: new(loadedOracle), rate: "1/s", want: map[string]contract.Grade{"idle": contract.Pass, "busy": contract.Inconclusive}, why: "fewer than 20"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, cand, o := oracles(t, yesEveryTime, tc.cand.answer)
				if tc.cand.deaf || tc.cand.slow { // from the first question of the check on
					cand.answer = func(prompt string) (int, string) {
						if len(prompt) == 4 {
							tc.cand.mu.Lock()
							tc.cand.on = true
							tc.cand.mu.Unlock()
						}
						return tc.cand.answer(prompt)
					}
				}
				r, err := Run(t.Context(), checkedSuite(t, 120, fmt.Sprintf(underSuite, tc.rate)), o)
				if err != nil {
					t.Fatal(err)
				}
				grades := map[string]contract.Result{}
				for _, c := range r.Verdict.Clauses {
					grades[c.ID] = c
				}
				for id, want := range tc.want {
					if got := grades[id]; got.Grade != want {
						t.Errorf("%s is %v, want %v: %s", id, got.Grade, want, got.Reason)
					}
				}
				if tc.why != "" && !strings.Contains(grades["busy"].Reason, tc.why) {
					t.Errorf("the reason is %q, want %q in it", grades["busy"].Reason, tc.why)
				}
				time.Sleep(2 * time.Minute) // the server is done with what it was asked
				if !tc.cand.slow {
					apart(t, r)
				}
				checkSameWhenOpened(t, r)
			})
		})
	}
}

// apart demands that the load's own requests are kept, but not among those that are
// measured.
func apart(t *testing.T, r *Result) {
	t.Helper()
	of := map[string]int{}
	for i := range r.Records {
		of[r.Records[i].Workload]++
	}
	if of["chat"] != 20 || of["shape"] != 240 || of["shape"+check.BusySuffix] != 240 || len(of) != 3 {
		t.Errorf("the records are of %v", of)
	}
	load, _, err := record.ReadAll(record.OS(), filepath.Join(r.Dir, "under", "shape"))
	if err != nil || len(load) < 2 {
		t.Errorf("of the load %d records are kept: %v", len(load), err)
	}
}

// TestUnderIsChecked: what a check runs under has to be there.
func TestUnderIsChecked(t *testing.T) {
	for under, want := range map[string]string{
		"{workload: other, rate: 5/s}": "runs under other, which is no workload of the suite",
		"{workload: chat}":             "rate",
		"{workload: chat, rate: 0/s}":  "rate",
	} {
		_, err := Parse("suite.yaml", []byte("version: 1\nname: x\nvariants: {candidate: {sim: {}}}\nworkloads: {chat: {arrivals: {constant: 5/s}, for: 2s, prompts: {synthetic: 10}, output: 4}}\nchecks:\n  - shape: {set: s.jsonl}\n    under: "+under+"\n"), "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", under, err, want)
		}
	}
}
