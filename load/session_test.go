package load_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// asked keeps the body of every request that a server got, by its id.
type asked struct {
	http.Handler
	mu     sync.Mutex
	bodies map[string][]corpus.Message
	times  map[string]time.Time
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q struct{ Messages []corpus.Message }
	if err == nil && json.Unmarshal(body, &q) == nil {
		a.mu.Lock()
		a.bodies[r.Header.Get("X-Request-Id")] = q.Messages
		a.times[r.Header.Get("X-Request-Id")] = time.Now()
		a.mu.Unlock()
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	a.Handler.ServeHTTP(w, r)
}

// talk is what a run of dialogues against a simulated engine left.
type talk struct {
	plan    *workload.Plan
	server  *sim.Server
	asked   *asked
	records []*record.Record // by variant, block, session and turn
	answers map[string]llm.Answer
	windows []record.Window
	err     error
}

// converse runs every block of a workload against a simulated engine, in virtual
// time. It must be called in a bubble.
func converse(t *testing.T, ctx context.Context, engine, yaml string, blocks int, sets map[string]*corpus.Set) *talk {
	t.Helper()
	var c sim.Config
	var spec workload.Spec
	if err := errors.Join(config.Decode("sim.yaml", []byte(engine), &c), config.Decode("w.yaml", []byte(yaml), &spec)); err != nil {
		t.Fatal(err)
	}
	k := &talk{answers: map[string]llm.Answer{}}
	var err error
	if k.plan, err = workload.New("w", spec, sets, 7, "salt"); err != nil {
		t.Fatal(err)
	}
	server, network, stop := engineBehind(t, c, func(h http.Handler) http.Handler {
		k.asked = &asked{Handler: h, bodies: map[string][]corpus.Message{}, times: map[string]time.Time{}}
		return k.asked
	})
	defer stop()
	k.server = server
	client, err := llm.NewClient(llm.Target{URL: "http://sim:80/v1", Dial: network.DialContext, Stall: time.Hour, Timeout: 2 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var mu sync.Mutex
	d, err := load.New(load.Config{
		Plan: k.plan, Variant: "v", Client: client, Epoch: time.Now(), Virtual: true, Blocks: blocks, Cap: int(spec.Cap), Drain: time.Duration(spec.Drain),
		Sink: func(r *record.Record, a llm.Answer) error {
			mu.Lock()
			defer mu.Unlock()
			k.records = append(k.records, r)
			k.answers[llm.RequestID(r)] = a
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i := range blocks {
		w, err := d.Block(ctx, i)
		k.windows = append(k.windows, w)
		if k.err = err; err != nil {
			break
		}
	}
	slices.SortFunc(k.records, func(a, b *record.Record) int { return int(a.Shot - b.Shot) })
	return k
}

// unasked adds up the turns that were not asked.
func (k *talk) unasked() (u record.Unasked) {
	for _, w := range k.windows {
		if w.Unasked != nil {
			u.NoAnswer += w.Unasked.NoAnswer
			u.Context += w.Unasked.Context
			u.Over += w.Unasked.Over
		}
	}
	return u
}

// check holds what is true of every run of dialogues: turns follow each other a
// think time after the answer before, to the nanosecond; each carries byte for
// byte what was said; a session belongs to one block.
func (k *talk) check(t *testing.T, history bool) (sessions map[string][]*record.Record) {
	t.Helper()
	shots := map[int64]workload.Shot{}
	for s := range k.plan.All() {
		if shots[s.Index] = s; k.plan.Planned() < 0 && len(shots) > 3000 {
			break
		}
	}
	sessions = map[string][]*record.Record{}
	for _, r := range k.records {
		sessions[r.Session] = append(sessions[r.Session], r)
	}
	for name, turns := range sessions {
		var dialogue []corpus.Message
		for i, r := range turns {
			shot := shots[r.Shot]
			if r.Turn != i || shot.Session != name || shot.Turn != i || r.Block != turns[0].Block {
				t.Fatalf("%s: record %d is of turn %d in block %d, shot %s turn %d", name, i, r.Turn, r.Block, shot.Session, shot.Turn)
			}
			if i > 0 {
				if pause, ok := r.Due.Sub(turns[i-1].EOF); !ok || pause != shot.Think {
					t.Fatalf("%s turn %d is due %v after the answer, want %v", name, i, pause, shot.Think)
				}
			}
			if r.Send != r.Due && r.Flags&record.FlagDelayedByCap == 0 && r.Outcome.Group() != record.GroupDropped {
				t.Fatalf("%s turn %d was due at %v and sent at %v", name, i, r.Due, r.Send)
			}
			if n := len(dialogue); history && n > 0 && dialogue[n-1].Role == "user" { // it had no answer
				both := corpus.Message{Role: "user", Content: dialogue[n-1].Content + "\n" + shot.Messages[0].Content}
				dialogue = append(append(slices.Clip(dialogue[:n-1]), both), shot.Messages[1:]...)
			} else if history {
				dialogue = append(dialogue, shot.Messages...)
			} else {
				dialogue = shot.Messages
			}
			id := llm.RequestID(r)
			if got, sent := k.asked.bodies[id]; sent && !cmp.Equal(got, dialogue) {
				t.Fatalf("%s turn %d: the server got\n%v\nwant\n%v", name, i, got, dialogue)
			}
			if text := k.answers[id].Text; text != "" || r.Outcome != record.ClientCancelled {
				dialogue = append(slices.Clip(dialogue), corpus.Message{Role: "assistant", Content: text})
			}
		}
	}
	return sessions
}

// accounts holds that what was planned was either offered or counted as not asked.
func (k *talk) accounts(t *testing.T) {
	t.Helper()
	u := k.unasked()
	if got := int64(len(k.records)) + u.NoAnswer + u.Context + u.Over; got != k.plan.Planned() {
		t.Errorf("%d offered and %+v not asked are %d of %d planned", len(k.records), u, got, k.plan.Planned())
	}
	rows := record.Ledger(values(k.records))
	if l := rows[0]; l.Offered != int64(len(k.records)) || l.Offered != l.Completed+l.Failed+l.Dropped {
		t.Errorf("the ledger %+v of %d records", l, len(k.records))
	}
}

func TestSessionsGoOn(t *testing.T) {
	sets := map[string]*corpus.Set{}
	for name, yaml := range map[string]string{
		"open, by count":   "{arrivals: {poisson: 2/s}, requests: 300, prompts: {synthetic: [10, 40]}, output: {uniform: {min: 4, max: 30}}, sessions: {turns: {uniform: {min: 1, max: 6}}, think: {exponential: 2s}}}",
		"open, in step":    "{arrivals: {constant: 4/s}, requests: 300, prompts: {synthetic: 10}, output: 8, sessions: {turns: 5}}",
		"closed, by count": "{arrivals: {concurrency: 6, think: 3s}, requests: 300, prompts: {synthetic: 20}, output: 9, sessions: {turns: [1, 2, 7], think: 700ms}}",
		"dialogues":        "{arrivals: {poisson: 2/s}, requests: 200, prompts: {file: talk}, output: 5, sessions: {think: 1s}}",
		"forgetful":        "{arrivals: {poisson: 2/s}, requests: 200, prompts: {file: talk}, output: 5, sessions: {think: 1s, history: false}}",
	} {
		set, err := corpus.Read("talk", strings.NewReader(dialogues()), "")
		if err != nil {
			t.Fatal(err)
		}
		sets["talk"] = set
		synctest.Test(t, func(t *testing.T) {
			k := converse(t, t.Context(), "{step: 5ms}", yaml, 3, sets)
			sessions := k.check(t, name != "forgetful")
			k.accounts(t)
			if u := k.unasked(); u != (record.Unasked{}) || k.err != nil {
				t.Errorf("%s: %+v not asked, %v", name, u, k.err)
			}
			turns, blocks := 0, map[int]bool{}
			for _, s := range sessions {
				turns = max(turns, len(s))
				blocks[s[0].Block] = true
			}
			if turns < 3 || len(blocks) != 3 || len(sessions) < 30 {
				t.Errorf("%s: %d sessions of at most %d turns in %d blocks", name, len(sessions), turns, len(blocks))
			}
		})
	}
}

func dialogues() string {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, `{"id": "d%d", "messages": [{"role": "system", "content": "Be brief."}`, i)
		for k := range i%4 + 1 {
			fmt.Fprintf(&b, `, {"role": "user", "content": "Question %d of %d?"}, {"role": "assistant", "content": "Recorded."}`, k, i)
		}
		b.WriteString("]}\n")
	}
	return b.String()
}

// TestSessionsEndWithTheirBlock: in a block of given time no turn is due after
// its end, and what is left is told.
func TestSessionsEndWithTheirBlock(t *testing.T) {
	for _, yaml := range []string{
		"{arrivals: {poisson: 3/s}, for: 60s, prompts: {synthetic: 10}, output: 10, sessions: {turns: 6, think: {exponential: 4s}}}",
		"{arrivals: {concurrency: 9}, for: 60s, prompts: {synthetic: 10}, output: 10, sessions: {turns: 6, think: {exponential: 4s}}}",
	} {
		synctest.Test(t, func(t *testing.T) {
			k := converse(t, t.Context(), "{step: 5ms}", yaml, 2, nil)
			k.check(t, true)
			for _, r := range k.records {
				if w := k.windows[r.Block]; r.Due < w.Start || r.Due >= w.End {
					t.Errorf("%s turn %d is due at %v, outside of block %d: %v to %v", r.Session, r.Turn, r.Due, r.Block, w.Start, w.End)
				}
			}
			if u := k.unasked(); u.Over < 20 || u.NoAnswer+u.Context > 0 {
				t.Errorf("%+v not asked", u)
			}
			if k.plan.Open() {
				k.accounts(t)
			}
		})
	}
}

// TestSessionsEndEarly: a session ends with the first turn that has no answer,
// and before the turn that would outgrow the context.
func TestSessionsEndEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := converse(t, t.Context(), "{step: 2ms, faults: {error_before: 4%, error_inside: 3%, truncate: 3%, cut: 2%}}",
			"{arrivals: {poisson: 5/s}, requests: 600, prompts: {synthetic: 10}, output: 10, sessions: {turns: 5, think: 1s}}", 2, nil)
		failed := 0
		for name, turns := range k.check(t, true) {
			for i, r := range turns {
				if last := i == len(turns)-1; r.Outcome != record.OK && !last {
					t.Errorf("%s goes on after turn %d: %s", name, i, r.Outcome)
				}
			}
			if turns[len(turns)-1].Outcome != record.OK {
				failed++
			}
		}
		if u := k.unasked(); failed < 20 || u.NoAnswer < 20 || u.Context+u.Over > 0 {
			t.Errorf("%d sessions failed, %+v not asked", failed, u)
		}
		k.accounts(t)
	})
	synctest.Test(t, func(t *testing.T) {
		// A turn adds 40 tokens of prompt, 20 of answer and 4 of template; the first
		// has the salt, too.
		k := converse(t, t.Context(), "{step: 2ms}", "{arrivals: {constant: 2/s}, requests: 100, prompts: {synthetic: 40}, output: 20, sessions: {turns: 10, context: 210}}", 1, nil)
		for name, turns := range k.check(t, true) {
			for _, r := range turns {
				prompt, _ := r.Prompt.N()
				if r.Outcome != record.OK || prompt+20 > 210 {
					t.Errorf("%s turn %d: %s with %d tokens of prompt", name, r.Turn, r.Outcome, prompt)
				}
			}
			if len(turns) != 2 && len(turns) != 3 {
				t.Errorf("%s has %d turns", name, len(turns))
			}
		}
		if u := k.unasked(); u.Context < 60 || u.NoAnswer+u.Over > 0 {
			t.Errorf("%+v not asked", u)
		}
		k.accounts(t)
	})
}

// TestSessionsKeepTheCapAndStop: turns wait for the cap as all requests do, and
// a stopped run asks nothing more.
func TestSessionsKeepTheCapAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := converse(t, t.Context(), "{step: 50ms}", "{arrivals: {poisson: 6/s}, requests: 200, prompts: {synthetic: 10}, output: 20, cap: 3, sessions: {turns: 4, think: 100ms}}", 2, nil)
		k.check(t, true)
		k.accounts(t)
		delayed := 0
		for _, r := range k.records {
			if r.Flags&record.FlagDelayedByCap != 0 {
				delayed++
			}
		}
		if delayed < 50 || len(k.records) != 200 {
			t.Errorf("%d of %d waited for the cap", delayed, len(k.records))
		}
	})
	stop := errors.New("stop")
	for _, arrivals := range []string{"poisson: 3/s", "concurrency: 8"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(20*time.Second, func() { cancel(stop) })
			begin := time.Now()
			k := converse(t, ctx, "{step: 5ms}", "{arrivals: {"+arrivals+"}, requests: 5000, prompts: {synthetic: 10}, output: 20, sessions: {turns: 9, think: 5s}}", 1, nil)
			k.check(t, true)
			if took := time.Since(begin); !errors.Is(k.err, stop) || took > 21*time.Second {
				t.Errorf("%v after %v", k.err, took)
			}
			if u := k.unasked(); u.Over < 20 {
				t.Errorf("%+v not asked", u)
			}
		})
	}
}

// TestHitIsWhatACacheFinds: an engine finds the share of prompt tokens in its
// prefix cache that the workload asked for.
func TestHitIsWhatACacheFinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := converse(t, t.Context(), "{step: 2ms, kv_blocks: 1000000}",
			"{arrivals: {constant: 10/s}, requests: 1000, prompts: {synthetic: {lognormal: {median: 300, sigma: 0.8, max: 4k}}}, output: 2, prefix: {hit: 50%, groups: 8, reuse: 16}}", 1, nil)
		var cached, prompt int64
		for _, e := range k.server.Ledger() {
			cached, prompt = cached+e.Cached, prompt+e.Prompt
		}
		got := float64(cached) / float64(prompt)
		if len(k.records) != 1000 || got < 0.48 || got > 0.52 {
			t.Errorf("%.1f %% of the tokens of %d prompts were cached, want 50 %%", 100*got, len(k.records))
		}
		t.Logf("%.2f %% cached", 100*got)
	})
}

// TestSessionsHitThePrefixCache: turn k finds all full blocks of turn k−1 and its
// answer in the cache, and of the first turn what its group shares.
func TestSessionsHitThePrefixCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const block = 16
		k := converse(t, t.Context(), "{step: 2ms, block_tokens: 16, kv_blocks: 100000}",
			"{arrivals: {constant: 1/s}, requests: 120, prompts: {synthetic: 50}, output: 30, prefix: {tokens: 64, groups: 2}, sessions: {turns: 4, think: 10s}}", 1, nil)
		var cached, prompt int64
		for name, turns := range k.check(t, true) {
			for i, r := range turns {
				got, ok := r.Cached.N()
				n, known := r.Prompt.N()
				cached, prompt = cached+got, prompt+n
				if i == 0 {
					if got > 5*block { // salt, template and 64 tokens
						t.Errorf("%s: %d cached tokens in its first turn", name, got)
					}
					continue
				}
				before, _ := turns[i-1].Prompt.N()
				answer, _ := turns[i-1].Output.N()
				// The last token of the answer was never an input of the engine.
				if want := (before + answer - 1) / block * block; !ok || !known || got != want {
					t.Errorf("%s turn %d: %d of %d tokens cached, want %d", name, i, got, n, want)
				}
			}
		}
		stats := k.server.Ledger()
		var theirs int64
		for _, e := range stats {
			theirs += e.Cached
		}
		if theirs != cached || float64(cached)/float64(prompt) < 0.6 {
			t.Errorf("%d of %d tokens cached, %d by the server's ledger", cached, prompt, theirs)
		}
		t.Logf("prefix hit share %.1f %%", 100*float64(cached)/float64(prompt))
	})
}
