package load_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// TestPlannedCancellations: exactly the planned requests are cancelled, at exactly
// the planned point, and the engine frees what it held for them.
func TestPlannedCancellations(t *testing.T) {
	for _, cap := range []string{"", "cap: 14, "} {
		synctest.Test(t, func(t *testing.T) {
			k := converse(t, t.Context(), "{step: 10ms, max_seqs: 64}",
				"{arrivals: {poisson: 20/s}, requests: 800, "+cap+"prompts: {synthetic: [200, 3000]}, output: {uniform: {min: 10, max: 80}}, cancel: ["+
					"{share: 6%, during: prefill}, {share: 8%, after_tokens: {uniform: {min: 1, max: 60}}}, {share: 10%, after: {uniform: {min: 0s, max: 900ms}}}]}", 1, nil)
			entries := map[string]sim.Entry{}
			for _, e := range k.server.Ledger() {
				entries[e.ID] = e
			}
			shots := map[int64]workload.Shot{}
			for s := range k.plan.All() {
				shots[s.Index] = s
			}
			kinds := map[workload.CutKind]int{}
			unasked := 0
			for _, r := range k.records {
				cut, e := shots[r.Shot].Cancel, entries[llm.RequestID(r)]
				if planned := r.Flags&record.FlagCancelPlanned != 0; planned != (cut.When != workload.CutNever) {
					t.Fatalf("shot %d: flagged %t, planned %+v", r.Shot, planned, cut)
				}
				if r.Outcome == record.OK {
					switch {
					case e.End != sim.EndComplete:
						t.Errorf("shot %d completed, but the server says %s", r.Shot, e.End)
					case cut.When == workload.CutPrefill, cut.When == workload.CutTokens && e.Output >= cut.Tokens:
						t.Errorf("shot %d completed with %d tokens, planned %+v", r.Shot, e.Output, cut)
					case cut.When == workload.CutTime && r.EOF >= r.Due+record.Instant(cut.After):
						t.Errorf("shot %d completed at %v, due %v, planned %+v", r.Shot, r.EOF, r.Due, cut)
					}
					continue
				}
				if r.Outcome != record.ClientCancelled {
					t.Fatalf("shot %d: %s: %s", r.Shot, r.Outcome, r.Detail)
				}
				kinds[cut.When]++
				if e.ID == "" {
					unasked++ // its time was over before it was sent
				} else if e.End != sim.EndLeft && !(e.End == sim.EndComplete && e.Output == cut.Tokens) {
					t.Errorf("shot %d was cancelled, but the server says %s", r.Shot, e.End)
				}
				switch cut.When {
				case workload.CutPrefill:
					if r.EOF != r.Sent || len(r.Events) > 0 {
						t.Errorf("shot %d was sent at %v and cancelled at %v", r.Shot, r.Sent, r.EOF)
					}
				case workload.CutTokens:
					if n := int64(payloads(r)); n != cut.Tokens || r.EOF != r.Last().At {
						t.Errorf("shot %d was cancelled after %d tokens at %v, planned %+v", r.Shot, n, r.EOF, cut)
					}
				case workload.CutTime:
					if r.EOF != r.Due+record.Instant(cut.After) && (r.Flags&record.FlagDelayedByCap == 0 || r.Send.Set()) {
						t.Errorf("shot %d was due at %v and cancelled at %v, planned %+v", r.Shot, r.Due, r.EOF, cut)
					}
				default:
					t.Errorf("shot %d was cancelled unplanned", r.Shot)
				}
			}
			if kinds[workload.CutPrefill] < 30 || kinds[workload.CutTokens] < 30 || kinds[workload.CutTime] < 30 {
				t.Errorf("cancelled: %v", kinds)
			}
			rows := record.Ledger(values(k.records))
			if l := rows[0]; l.Failed != 0 || l.Offered != l.Completed+l.Dropped || l.Dropped != l.ByOutcome[record.ClientCancelled] {
				t.Errorf("ledger %+v", l)
			}
			seen := httptest.NewRecorder()
			k.server.ServeHTTP(seen, httptest.NewRequest("GET", "/metrics", nil))
			for _, want := range []string{"vllm:num_requests_running{", "vllm:num_requests_waiting{", "vllm:kv_cache_usage_perc{"} {
				if n := metric(seen.Body.String(), want); n != "0" {
					t.Errorf("the engine still has %s %s", want, n)
				}
			}
			t.Logf("cancelled %v of %d, %d before they were sent", kinds, len(k.records), unasked)
		})
	}
}

// metric returns the value of a family of one series in Prometheus' text.
func metric(text, name string) string {
	_, rest, _ := strings.Cut(text, "\n"+name)
	line, _, _ := strings.Cut(rest, "\n")
	_, value, _ := strings.Cut(line, "} ")
	return value
}

func payloads(r *record.Record) (n int) {
	for i := range r.Events {
		if r.Events[i].Kind.Payload() {
			n++
		}
	}
	return n
}

// TestInterruptedSessionsGoOn: a user who interrupted an answer goes on with what
// came of it, or adds to the question. Every request begins with the run's salt.
func TestInterruptedSessionsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := converse(t, t.Context(), "{step: 5ms}", "{arrivals: {poisson: 2/s}, requests: 400, prompts: {synthetic: 20}, output: 30, cancel: [{share: 20%, during: prefill}, {share: 30%, after_tokens: 9}], sessions: {turns: 6, think: 1s}}", 2, nil)
		partial, none := 0, 0
		for id, messages := range k.asked.bodies {
			if !strings.HasPrefix(messages[0].Content, "[salt] ") {
				t.Errorf("%s begins with %.20q", id, messages[0].Content)
			}
		}
		for _, turns := range k.check(t, true) {
			for _, r := range turns[:len(turns)-1] {
				switch {
				case r.Outcome == record.OK:
				case k.answers[llm.RequestID(r)].Text == "":
					none++
				default:
					partial++
				}
			}
		}
		if u := k.unasked(); partial < 40 || none < 30 || u != (record.Unasked{}) {
			t.Errorf("%d answers cut, %d missing, %+v not asked", partial, none, u)
		}
		k.accounts(t)
	})
}

// TestCancelledBeforeItIsSent: a user who gives up while the cap holds the request
// back never sends it.
func TestCancelledBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := converse(t, t.Context(), "{step: 100ms}", "{arrivals: {constant: 10/s}, requests: 60, cap: 1, drain: 2h, prompts: {synthetic: 20}, output: 10, cancel: {share: 100%, after: {uniform: {min: 0s, max: 3s}}}}", 1, nil)
		unsent := 0
		for _, r := range k.records {
			if r.Outcome == record.ClientCancelled && !r.Send.Set() {
				unsent++
			}
		}
		if unsent == 0 || len(k.server.Ledger())+unsent != 60 {
			t.Errorf("%d were cancelled before they were sent, the server saw %d of 60", unsent, len(k.server.Ledger()))
		}
	})
}
