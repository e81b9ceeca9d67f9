package load_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// sent has a plan sent by the real client over the network in memory, in virtual
// time: warm-up and blocks.
func sent(t *testing.T, c sim.Config, api string, plan *workload.Plan, blocks int) (records []record.Record, windows []record.Window) {
	synctest.Test(t, func(t *testing.T) {
		_, network, stop := engineBehind(t, c, func(h http.Handler) http.Handler { return h })
		defer stop()
		client, err := llm.NewClient(llm.Target{URL: "http://sim:80/v1", API: api, Dial: network.DialContext, Stall: time.Hour, Timeout: 2 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var mu sync.Mutex
		spec := plan.Spec()
		d, err := load.New(load.Config{
			Plan: plan, Variant: "v", Client: client, Epoch: time.Now(), Virtual: true, Blocks: blocks, Cap: int(spec.Cap), Drain: time.Duration(spec.Drain),
			Sink: func(r *record.Record, _ llm.Answer) error {
				mu.Lock()
				defer mu.Unlock()
				records = append(records, *r)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.WarmUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range blocks {
			w, err := d.Block(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			windows = append(windows, w)
		}
	})
	return records, windows
}

// playedOf has the same played.
func playedOf(t *testing.T, c sim.Config, api string, plan *workload.Plan, blocks int) (records []record.Record, windows []record.Window) {
	t.Helper()
	p, err := sim.NewPlayer(c)
	if err != nil {
		t.Fatal(err)
	}
	p.Variant, p.API = "v", api
	p.Sink = func(r *record.Record) { records = append(records, *r) }
	part := p.Part(plan, blocks)
	defer part.Close()
	part.Cap, part.Drain = int(plan.Spec().Cap), time.Duration(plan.Spec().Drain)
	part.WarmUp()
	for i := range blocks {
		windows = append(windows, part.Block(i))
	}
	return records, windows
}

// seen is what both must tell of a request: everything that a contract reads. What
// only a real client has (connections, stamps, reads, text) is left out.
func seen(records []record.Record) []record.Record {
	out := slices.Clone(records)
	for i := range out {
		r := &out[i]
		r.ConnStart, r.ConnEnd, r.Reused, r.Detail, r.Code, r.Body, r.Server = 0, 0, false, "", "", "", nil
		r.Flags &^= record.FlagRetried | record.FlagCoalesced
		events := r.Events
		r.Events = nil
		for _, e := range events {
			if e.Kind != record.KindComment {
				r.Events = append(r.Events, record.Event{At: e.At, Kind: e.Kind, Bytes: e.Bytes, Tokens: e.Tokens})
			}
		}
	}
	slices.SortFunc(out, func(a, b record.Record) int {
		return cmp.Or(-cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.Shot, b.Shot))
	})
	return out
}

func planOf(t *testing.T, engine, yaml string) (sim.Config, *workload.Plan) {
	t.Helper()
	var c sim.Config
	var spec workload.Spec
	if err := errors.Join(config.Decode("sim.yaml", []byte(engine), &c), config.Decode("w.yaml", []byte(yaml), &spec)); err != nil {
		t.Fatal(err)
	}
	plan, err := workload.New("w", spec, nil, 7, "salt")
	if err != nil {
		t.Fatal(err)
	}
	return c, plan
}

// TestPlayedAsSent: what a player writes down is what the real client measures of
// the same plan on the same engine, request by request and to the nanosecond.
func TestPlayedAsSent(t *testing.T) {
	const open = "{arrivals: {poisson: 20/s}, requests: 200, prompts: {synthetic: [10, 300]}, output: {uniform: {min: 1, max: 40}}"
	for _, test := range []struct{ name, engine, api, yaml string }{
		{"open", "{step: {base: 8ms, sequence: 50us, prefill: 20us}, jitter: 20%, seed: 3}", "", open + "}"},
		{"warm-up, completions, stops", "{step: 8ms, jitter: 20%, output: {stop: 30%}}", llm.APICompletions, open + ", warmup: {requests: 20}}"},
		{"by time", "{step: 8ms, jitter: 5%}", "", "{arrivals: {poisson: 20/s}, for: 9s, prompts: {synthetic: 30}, output: 20}"},
		{"whole", "{step: 8ms, jitter: 20%}", "", open + ", stream: false}"},
		{"reasoning, three tokens an event", "{step: 8ms, reasoning: 40%, tokens_per_event: 3}", "", open + "}"},
		{"delayed first token", "{step: 8ms, ttft: 30%, jitter: 20%}", "", open + "}"},
		{"short of memory", "{step: 8ms, max_seqs: 16, kv_blocks: 60, queue_limit: 20}", "", open + "}"},
		{"held back by the plan", "{step: 8ms}", "", open + ", jitter: {uniform: {min: 0s, max: 400ms}}}"},
		{"cap", "{step: 8ms}", "", open + ", cap: 3, drain: 60s}"},
		{"drain", "{step: 200ms}", "", open + ", cap: 5, drain: 2s}"},
		{"cancelled", "{step: 8ms}", "", open + ", cancel: [{share: 20%, after_tokens: 4}, {share: 20%, during: prefill}, {share: 20%, after: 60ms}]}"},
		{"sessions", "{step: 8ms, jitter: 20%}", "", "{arrivals: {poisson: 4/s}, requests: 200, prompts: {synthetic: 20}, output: 12, sessions: {turns: {uniform: {min: 1, max: 6}}, think: {exponential: 1s}}}"},
		{"sessions by time", "{step: 8ms}", "", "{arrivals: {poisson: 4/s}, for: 30s, prompts: {synthetic: 20}, output: 12, sessions: {turns: 5, think: {exponential: 2s}, context: 120}}"},
		{"closed", "{step: {base: 8ms, sequence: 300us}}", "", "{arrivals: {concurrency: 7, think: {exponential: 300ms}, stagger: 211ms}, requests: 150, prompts: {synthetic: 20}, output: {uniform: {min: 1, max: 30}}}"},
		{"closed by time, sessions", "{step: 8ms, faults: {error_before: 10%}}", "", "{arrivals: {concurrency: 5, stagger: 211ms}, for: 20s, prompts: {synthetic: 20}, output: 9, sessions: {turns: 4, think: {exponential: 700ms}}}"},
		{"refused users", "{step: 8ms, faults: {busy: 60%}}", "", "{arrivals: {concurrency: 3, stagger: 211ms}, requests: 100, prompts: {synthetic: 20}, output: 9}"},
		{"no usage", "{step: 8ms, usage: never}", "", open + "}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, plan := planOf(t, test.engine, test.yaml)
			want, wantWindows := sent(t, c, test.api, plan, 3)
			got, gotWindows := playedOf(t, c, test.api, plan, 3)
			if len(want) < 90 {
				t.Fatalf("only %d requests were sent", len(want))
			}
			compare(t, got, want)
			if d := diff.Diff(wantWindows, gotWindows); d != "" {
				t.Errorf("windows (-sent +played):\n%s", d)
			}
		})
	}
}

func compare(t *testing.T, got, want []record.Record) {
	t.Helper()
	got, want = seen(got), seen(want)
	if len(got) != len(want) {
		t.Errorf("%d requests were played, %d sent", len(got), len(want))
	}
	faults := 0
	for i := range min(len(got), len(want)) {
		if d := diff.Diff(want[i], got[i]); d != "" {
			if faults++; faults < 3 {
				t.Errorf("shot %d (-sent +played):\n%s", want[i].Shot, d)
			}
		}
	}
	if faults > 0 {
		t.Errorf("%d of %d requests differ", faults, len(want))
	}
}

// TestPlayedFaultsAsSent: each fault is drawn for the same requests, and has the
// same end and the same instants.
func TestPlayedFaultsAsSent(t *testing.T) {
	for _, fault := range []string{
		"error_before", "busy", "rate_limit", "refuse", "reset_before", "slow", "garbage", "error_inside", "reset", "cut",
		"stall", "truncate", "no_done", "malformed", "empty", "huge",
	} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stream %t", fault, stream), func(t *testing.T) {
				c, plan := planOf(t, fmt.Sprintf("{step: 8ms, faults: {%s: 30%%}}", fault), fmt.Sprintf("{arrivals: {poisson: 20/s}, requests: 60, prompts: {synthetic: 20}, output: {uniform: {min: 1, max: 30}}, stream: %t}", stream))
				want, _ := sent(t, c, "", plan, 1)
				got, _ := playedOf(t, c, "", plan, 1)
				compare(t, got, want)
			})
		}
	}
}

// TestPlayerRefuses what it cannot play.
func TestPlayerRefuses(t *testing.T) {
	c, _ := planOf(t, "{faults: {wrong_usage: 1%}}", "{arrivals: {poisson: 1/s}, requests: 2, prompts: {synthetic: 2}, output: 2}")
	if _, err := sim.NewPlayer(c); err == nil {
		t.Error("a player took usage that is wrong on purpose")
	}
}
