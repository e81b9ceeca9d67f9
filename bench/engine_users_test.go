package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// TestEngineServesSessions: the later turns of sessions find their dialogue in a
// real engine's cache, and what the report says of the cache is the engine's own
// count.
func TestEngineServesSessions(t *testing.T) {
	e := startEngine(t)
	before := e.metrics(t)
	s := parseSuite(t, fmt.Sprintf(`seed: 7
variants: {candidate: {url: %s, api: completions}}
workloads:
  w:
    arrivals: {concurrency: 3, think: 10ms}
    requests: 80
    prompts: {synthetic: 8}
    output: 24
    ignore_eos: true
    temperature: 0
    prefix: {tokens: 25, groups: 1}
    sessions: {turns: 4, think: 20ms, context: 480}
`, e.url))
	r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	e.reconcile(t, r.Records, before)
	after := e.metrics(t)
	later, found := 0, 0
	for i := range r.Records {
		if held, ok := r.Records[i].Cached.N(); ok && r.Records[i].Turn > 0 {
			later++
			if held > 60 { // more than what all of them share
				found++
			}
		}
	}
	if later != 60 || found < later/2 {
		t.Errorf("%d of %d later turns found their dialogue in the cache", found, later)
	}
	hit := after["prompt_tokens_cached_total"] - before["prompt_tokens_cached_total"]
	all := hit + after["prompt_tokens_total"] - before["prompt_tokens_total"]
	if got := r.Manifest.Engines[0].Values["prefix_hit_ratio"]; got != hit/all || got < 0.5 {
		t.Errorf("the report says %v of the prompt tokens came from the cache, the engine %v of %v", got, hit, all)
	}
	t.Logf("%d of %d later turns found their dialogue; %.1f %% of prompt tokens cached", found, later, 100*hit/all)
}

// TestEngineUsersWhoComeBackAndHangUp plays sessions that begin alike, grow and are
// interrupted. Each turn carries the answers that really came, so the engine finds
// much of its prompt in its cache: as much as the records say, to the token. What is
// cancelled stops on the engine within a second, by its own clock.
func TestEngineUsersWhoComeBackAndHangUp(t *testing.T) {
	e := startEngine(t)
	before := e.metrics(t)
	s := parseSuite(t, fmt.Sprintf(`seed: 11
variants: {candidate: {url: %s, api: chat}}
workloads:
  w:
    arrivals: {concurrency: 3}
    requests: 60
    prompts: {synthetic: 5}
    output: 60
    ignore_eos: true
    temperature: 0
    prefix: {tokens: 20, groups: 1}
    sessions: {turns: 3, think: 100ms, context: 480}
    cancel: [{share: 15%%, after_tokens: 4}, {share: 10%%, during: prefill}]
contract: {clauses: [{id: errors, need: count(failed) < 1}]}
`, e.url))
	r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	checkLedger(t, r, 0)
	var cached, prompt, later, laterCached, laterPrompt int64
	cut := 0
	for i := range r.Records {
		rec := &r.Records[i]
		if rec.Outcome == record.ClientCancelled {
			cut++
			continue
		}
		p, _ := rec.Prompt.N()
		c, ok := rec.Cached.N()
		if !rec.Success() || !ok {
			t.Errorf("shot %d, turn %d: %s: %s", rec.Shot, rec.Turn, rec.Outcome, rec.Detail)
			continue
		}
		prompt, cached = prompt+p, cached+c
		if rec.Turn > 0 {
			later, laterPrompt, laterCached = later+1, laterPrompt+p, laterCached+c
		}
	}
	m := e.metrics(t)
	for deadline := time.Now().Add(time.Second); m["requests_processing"] > 0 && time.Now().Before(deadline); {
		m = e.metrics(t)
	}
	if m["requests_processing"] > 0 {
		t.Errorf("a second after the last answer the engine is at work on %v requests that nobody waits for", m["requests_processing"])
	}
	if got := m["prompt_tokens_cached_total"] - before["prompt_tokens_cached_total"] - m["prompt_tokens_cached_aborted_total"]; got != float64(cached) {
		t.Errorf("the records say that %d prompt tokens came from the cache, the engine %v", cached, got)
	}
	if cut < 5 || m["requests_aborted_total"] < 3 || m["requests_aborted_total"] > float64(cut) || m["abort_seconds_max"] >= 1 {
		t.Errorf("%d requests were cancelled; the engine let %v go, after at most %v s", cut, m["requests_aborted_total"], m["abort_seconds_max"])
	}
	if later < 10 || float64(laterCached) < .4*float64(laterPrompt) {
		t.Errorf("of the %d prompt tokens of %d later turns %d came from the cache", laterPrompt, later, laterCached)
	}
	shown := r.Manifest.Engines[0].Values["usage_cached_ratio"]
	if want := float64(cached) / float64(prompt); shown != want {
		t.Errorf("the report says that %v of the prompt tokens came from the cache, the engine's count gives %v", shown, want)
	}
	t.Logf("%d answers, %d cancelled; %d of %d prompt tokens cached, in later turns %d of %d; the engine let %v go, within %.4f s",
		len(r.Records)-cut, cut, cached, prompt, laterCached, laterPrompt, m["requests_aborted_total"], m["abort_seconds_max"])
}
