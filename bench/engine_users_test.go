package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// users are sessions of a real engine's users, who share a beginning.
func (e *realEngine) users(t *testing.T, cancel string) *Result {
	t.Helper()
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
%s`, e.url, cancel))
	r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEngineServesSessions: the later turns of sessions find their dialogue in a
// real engine's cache, and what the report says of the cache is the engine's own
// count.
func TestEngineServesSessions(t *testing.T) {
	e := startEngine(t)
	before := e.metrics(t)
	r := e.users(t, "")
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

// TestEngineIsLeft: a real engine stops within a second for users who hang up. How
// much its cache found for them nobody tells, and so the report does not.
func TestEngineIsLeft(t *testing.T) {
	e := startEngine(t)
	r := e.users(t, "    cancel: [{share: 20%, after_tokens: 6}, {share: 10%, during: prefill}, {share: 10%, after: 15ms}]\n")
	begin := time.Now()
	for e.metrics(t)["requests_processing"] > 0 && time.Since(begin) < time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	if n := e.metrics(t)["requests_processing"]; n > 0 {
		t.Errorf("the engine still works on %v requests a second after the last one was left", n)
	}
	outcomes := map[record.Outcome]int{}
	for i := range r.Records {
		outcomes[r.Records[i].Outcome]++
		if o := r.Records[i].Outcome; o != record.OK && o != record.ClientCancelled {
			t.Errorf("%s of %s turn %d: %s", o, r.Records[i].Session, r.Records[i].Turn, r.Records[i].Detail)
		}
	}
	if outcomes[record.ClientCancelled] < 15 || outcomes[record.OK] < 30 {
		t.Errorf("outcomes %v", outcomes)
	}
	if ratio, told := r.Manifest.Engines[0].Values["prefix_hit_ratio"]; told {
		t.Errorf("the report says %v of the prompt tokens came from the cache", ratio)
	}
	t.Logf("%v; the engine was idle %v after the last request", outcomes, time.Since(begin))
}
