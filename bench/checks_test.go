package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/sim"
)

// oracle is an OpenAI-compatible endpoint that answers chats by a function of the
// prompt, and counts how often each was answered.
type oracle struct {
	took   time.Duration
	answer func(prompt string) (status int, body string)

	mu    sync.Mutex
	asked map[string]int
}

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	data, _ := io.ReadAll(r.Body)
	var q struct {
		Messages []struct{ Content string }
	}
	if json.Unmarshal(data, &q) != nil || len(q.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(o.took):
	case <-r.Context().Done():
		return
	}
	status, body := o.answer(q.Messages[0].Content)
	o.mu.Lock()
	o.asked[q.Messages[0].Content]++
	o.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// completed is an answer of a chat.
func completed(text, finish string) (int, string) {
	return 200, fmt.Sprintf(`{"model":"m","choices":[{"index":0,"message":{"content":%q},"finish_reason":%q}],"usage":{"prompt_tokens":5,"completion_tokens":%d,"total_tokens":%d}}`, text, finish, 1+len(text)/4, 6+len(text)/4)
}

// oracles serves a baseline and a candidate on a network in memory. It must be
// called in a bubble.
func oracles(t *testing.T, baseline, candidate func(prompt string) (int, string)) (b, c *oracle, o Options) {
	t.Helper()
	network := sim.NewNetwork()
	var out []*oracle
	for i, answer := range []func(string) (int, string){baseline, candidate} {
		l, err := network.Listen(fmt.Sprintf("10.0.0.%d:80", i+1))
		if err != nil {
			t.Fatal(err)
		}
		e := &oracle{took: 100 * time.Millisecond, answer: answer, asked: make(map[string]int)}
		s := &http.Server{Handler: e}
		done := make(chan struct{})
		go func() { _ = s.Serve(l); close(done) }()
		t.Cleanup(func() { _ = s.Close(); <-done })
		out = append(out, e)
	}
	return out[0], out[1], Options{Runs: folder(t), Getenv: func(string) string { return "" }, virtual: &virtual{network.DialContext}}
}

// checkedSuite is a suite of checks alone, over n cases in pairs that belong together.
func checkedSuite(t *testing.T, n int, rest string) *Suite {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"c%03d","prompt":"p%03d"}`+"\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "cases.jsonl"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Parse(filepath.Join(dir, "suite.yaml"), []byte(`version: 1
name: checked
seed: 7
variants:
  baseline: {url: "http://10.0.0.1"}
  candidate: {url: "http://10.0.0.2"}
`+rest), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const shapeSuite = `
checks:
  - shape: {set: cases.jsonl, max_tokens: 64}
contract:
  clauses:
    - need: share(shape.empty) <= baseline + 5 points
    - need: share(shape.truncated) <= baseline + 5 points
    - {id: failed, need: share(failed) <= 5%, on: shape}
`

func yesEveryTime(string) (int, string) { return completed("Yes, of course.", "stop") }

// every answers otherwise for one prompt in k.
func every(k int, other func() (int, string)) func(string) (int, string) {
	return func(prompt string) (int, string) {
		var i int
		if _, err := fmt.Sscanf(prompt, "p%d", &i); err == nil && i%k == 0 {
			return other()
		}
		return yesEveryTime(prompt)
	}
}

func TestChecksAreJudgedByTheContract(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(string) (int, string)
		want   contract.Grade
		reason string
	}{
		{"as good", yesEveryTime, contract.Pass, "all 3 clauses pass"},
		{"a tenth is cut", every(10, func() (int, string) { return completed("Yes, of", "length") }), contract.Fail, "cut answers"},
		{"a tenth is empty", every(10, func() (int, string) { return completed("", "stop") }), contract.Fail, "empty"},
		{"a fifth fails", every(5, func() (int, string) { return 500, "{}" }), contract.Fail, "failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, _, o := oracles(t, yesEveryTime, tc.answer)
				r, err := Run(t.Context(), checkedSuite(t, 200, shapeSuite), o)
				if err != nil {
					t.Fatal(err)
				}
				if r.Verdict.Grade != tc.want || !strings.Contains(r.Verdict.Reason, tc.reason) {
					t.Errorf("%v: %s; want %v with %q", r.Verdict.Grade, r.Verdict.Reason, tc.want, tc.reason)
				}
				if len(r.Records) != 400 {
					t.Errorf("%d records; want one for each case and variant", len(r.Records))
				}
				opened, err := Open(r.Dir)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(r.Verdict, opened.Verdict, verdicts...); diff != "" {
					t.Errorf("the verdict of the opened run (-run +opened):\n%s", diff)
				}
				var text, page, opens strings.Builder
				for _, err := range []error{report.Text(&text, r.Report, report.TextOptions{}), report.HTML(&page, r.Report), report.Text(&opens, opened.Report, report.TextOptions{})} {
					if err != nil {
						t.Fatal(err)
					}
				}
				if text.String() != opens.String() {
					t.Errorf("the report of the opened run differs:\n%s", cmp.Diff(text.String(), opens.String()))
				}
				for _, want := range []string{"empty", "cut answers", "refusals", "output length", "cost: ", "signature: data "} {
					if !strings.Contains(text.String(), want) || !strings.Contains(page.String(), want) {
						t.Errorf("the report does not say %q:\n%s", want, text.String())
					}
				}
			})
		})
	}
}

// verdicts compares verdicts by their JSON, as files hold them.
var verdicts = []cmp.Option{cmp.Transformer("json", func(v contract.Verdict) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
})}

func TestARunStoppedAmongItsChecksGoesOnAndAsksNothingTwice(t *testing.T) {
	candidate := every(10, func() (int, string) { return completed("Yes, of", "length") })
	synctest.Test(t, func(t *testing.T) {
		_, _, o := oracles(t, yesEveryTime, candidate)
		whole, err := Run(t.Context(), checkedSuite(t, 120, shapeSuite), o)
		if err != nil {
			t.Fatal(err)
		}
		b, c, o := oracles(t, yesEveryTime, candidate)
		suite := checkedSuite(t, 120, shapeSuite)
		ctx, stop := context.WithTimeout(t.Context(), 800*time.Millisecond)
		defer stop()
		cut, err := Run(ctx, suite, o)
		if cut == nil || cut.Manifest.State != StateInterrupted || cut.Verdict.Grade != contract.Inconclusive {
			t.Fatalf("the stopped run: %v, %v", cut, err)
		}
		half := len(c.asked)
		if half < 20 || half > 100 {
			t.Fatalf("%d of 120 cases were asked before the stop", half)
		}
		stopped, err := Resumable(cut.Dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := stopped.Resume(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*oracle{b, c} {
			for prompt, n := range e.asked {
				if n != 1 {
					t.Errorf("%s was answered %d times", prompt, n)
				}
			}
		}
		if diff := cmp.Diff(whole.Records, got.Records); diff != "" {
			t.Errorf("records (-uninterrupted +resumed):\n%s", diff)
		}
		if diff := cmp.Diff(whole.Verdict, got.Verdict, verdicts...); diff != "" {
			t.Errorf("verdict (-uninterrupted +resumed):\n%s", diff)
		}
		w, g := whole.Outcomes[0], got.Outcomes[0]
		g.Cost.Time = w.Cost.Time
		if diff := cmp.Diff(w, g); diff != "" {
			t.Errorf("outcome (-uninterrupted +resumed):\n%s", diff)
		}
	})
}

func TestABudgetLeavesChecksInconclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, o := oracles(t, yesEveryTime, yesEveryTime)
		r, err := Run(t.Context(), checkedSuite(t, 200, shapeSuite+"asking: {budget: {tokens: 1k}}\n"), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Grade != contract.Inconclusive || !strings.Contains(r.Verdict.Reason, "the budget of 1000 tokens is spent") {
			t.Errorf("%v: %s; want inconclusive with the budget", r.Verdict.Grade, r.Verdict.Reason)
		}
		if r.Manifest.State != StateDone {
			t.Errorf("the run is %s; want done", r.Manifest.State)
		}
	})
}

func TestFilteredAnswersAreRefusedAndNotMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, o := oracles(t, yesEveryTime, every(10, func() (int, string) { return 400, `{"error":{"code":"content_filter","message":"no"}}` }))
		r, err := Run(t.Context(), checkedSuite(t, 100, `
checks:
  - shape: {set: cases.jsonl}
contract:
  clauses: [{need: share(shape.refused) <= baseline + 2 points}]
`), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Grade != contract.Fail {
			t.Errorf("%v: %s; want a fail", r.Verdict.Grade, r.Verdict.Reason)
		}
		filtered := 0
		for i := range r.Records {
			if r.Records[i].Outcome == record.Filtered {
				filtered++
			}
		}
		if filtered != 10 {
			t.Errorf("%d records are filtered; want 10", filtered)
		}
	})
}

func TestSuitesWithWrongChecks(t *testing.T) {
	for text, want := range map[string]string{
		"checks: [{shap: {set: cases.jsonl}}]":                               "suite.yaml:6:11: checks[0].shap: there is no check of this name\n  hint: did you mean shape?",
		"checks: [{shape: {}}]":                                              "checks[0].shape.set",
		"checks: [{shape: {set: cases.jsonl, replicates: 0}}]":               "checks[0].shape.replicates",
		"checks: [{shape: {set: cases.jsonl, colour: red}}]":                 "checks[0].shape.colour",
		"checks: [{shape: {set: gone.jsonl}}]":                               "reading gone.jsonl: there is no such file",
		"checks: [{shape: {set: cases.jsonl}}, {shape: {set: cases.jsonl}}]": "stands here twice",
		"checks: [shape]": "wants one check with its configuration",
		"checks: [{shape: {set: cases.jsonl}}]\ncontract: {clauses: [need: share(shape.empy) <= 1%]}":                                 "did you mean shape.empty?",
		"checks: [{shape: {set: cases.jsonl}}]\ncontract: {clauses: [need: mean(shape.empty) <= 1]}":                                  "it has a share, not a mean",
		"checks: [{shape: {set: cases.jsonl}}]\ncontract: {clauses: [{need: share(failed) <= 5%, on: shap}]}":                         "did you mean shape?",
		"workloads: {shape: {arrivals: {poisson: 1/s}, requests: 9, prompts: {synthetic: 5}}}\nchecks: [{shape: {set: cases.jsonl}}]": "is the name of a workload too",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cases.jsonl"), []byte(`{"prompt":"a"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Parse("suite.yaml", []byte("version: 1\nname: x\nvariants:\n  baseline: {url: \"http://a\"}\n  candidate: {url: \"http://b\"}\n"+text+"\n"), dir)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %q", text, err, want)
		}
	}
}

// TestChecksAreAnnounced: a suite with many questions samples them first, asks none of
// them twice, and takes about as long as was told.
func TestChecksAreAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c, o := oracles(t, func(string) (int, string) { return completed("yes", "stop") }, func(string) (int, string) { return completed("no", "stop") })
		var said []string
		o.Notice = func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }
		r, err := Run(t.Context(), checkedSuite(t, 120, shapeSuite), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*oracle{b, c} {
			for prompt, times := range e.asked {
				if times != 1 && strings.HasPrefix(prompt, "p") {
					t.Errorf("%s was asked %d times", prompt, times)
				}
			}
		}
		f := r.Manifest.Foreseen
		if f == nil || f.Requests != 240 || f.Sampled != 24 || f.Took == 0 {
			t.Fatalf("foreseen %+v", f)
		}
		if ratio := f.Took.Seconds() / f.Time.Seconds(); ratio < 0.75 || ratio > 1.25 {
			t.Errorf("foreseen %s, took %s", f.Time, f.Took)
		}
		if text := strings.Join(said, "\n"); !strings.Contains(text, "checks: 240 requests, about ") {
			t.Errorf("said:\n%s", text)
		}
		if notes := strings.Join(r.Report.Notes, "\n"); !strings.Contains(notes, "the checks were announced with 240 requests") {
			t.Errorf("notes:\n%s", notes)
		}
	})
}
