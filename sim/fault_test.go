package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/config"
)

// TestServerFaults checks what a client meets of each fault, streamed and not.
func TestServerFaults(t *testing.T) {
	const prompt = `{"prompt":"x","max_tokens":8`
	stream := prompt + `,"stream":true,"stream_options":{"include_usage":true}}`
	whole := prompt + `}`
	for _, test := range []struct {
		fault        Fault
		share        func(*Faults) *config.Percent
		stream, once func(g *got) bool
		end          End
	}{
		{FaultError, func(f *Faults) *config.Percent { return &f.Error }, status(500), status(500), EndFault},
		{FaultBusy, func(f *Faults) *config.Percent { return &f.Busy }, status(503), status(503), EndFault},
		{FaultRate, func(f *Faults) *config.Percent { return &f.Rate }, retry, retry, EndFault},
		{FaultRefuse, func(f *Faults) *config.Percent { return &f.Refuse }, status(400), status(400), EndFault},
		{FaultResetEarly, func(f *Faults) *config.Percent { return &f.ResetEarly }, resetBefore, resetBefore, EndFault},
		{FaultSlow, func(f *Faults) *config.Percent { return &f.Slow }, good, goodOnce, EndComplete},
		{FaultGarbage, func(f *Faults) *config.Percent { return &f.Garbage }, html, html, EndFault},
		{FaultErrorInside, func(f *Faults) *config.Percent { return &f.ErrorInside }, errorInside, errorBody, EndFault},
		{FaultReset, func(f *Faults) *config.Percent { return &f.Reset }, resetInside, resetInside, EndFault},
		{FaultCut, func(f *Faults) *config.Percent { return &f.Cut }, cutShort, cutShort, EndFault},
		{FaultStall, func(f *Faults) *config.Percent { return &f.Stall }, good, goodOnce, EndComplete},
		{FaultTruncate, func(f *Faults) *config.Percent { return &f.Truncate }, truncated, noFinish, EndFault},
		{FaultNoDone, func(f *Faults) *config.Percent { return &f.NoDone }, noDone, goodOnce, EndComplete},
		{FaultMalformed, func(f *Faults) *config.Percent { return &f.Malformed }, malformed, malformedBody, EndFault},
		{FaultHuge, func(f *Faults) *config.Percent { return &f.Huge }, huge, huge, EndFault},
		{FaultEmpty, func(f *Faults) *config.Percent { return &f.Empty }, empty, emptyOnce, EndFault},
		{FaultUsage, func(f *Faults) *config.Percent { return &f.Usage }, wrongUsage, wrongUsageOnce, EndComplete},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			var c Config
			*test.share(&c.Faults) = 1
			inBubble(t, c, func(t *testing.T, r *rig) {
				rounds := 6
				if test.fault == FaultHuge {
					rounds = 1
				}
				for i := range rounds {
					start := time.Now()
					if g := r.post(t, strconv.Itoa(i), "/v1/completions", stream); !test.stream(g) {
						t.Errorf("streamed: %d %v %.300s %v", g.Status, g.Err, g.Body, g.Events)
					}
					if took := time.Since(start); (test.fault == FaultSlow || test.fault == FaultStall) != (took > time.Second) {
						t.Errorf("it took %v", took)
					}
					if g := r.post(t, strconv.Itoa(i), "/v1/completions", whole); !test.once(g) {
						t.Errorf("whole: %d %v %.300s", g.Status, g.Err, g.Body)
					}
				}
				time.Sleep(10 * time.Millisecond) // the step under way ends
				synctest.Wait()
				for _, e := range r.Ledger() {
					if e.Fault != test.fault || e.End != test.end {
						t.Errorf("ledger: %+v", e)
					}
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				if s := r.engine.Stats(); s.Running+s.Waiting+s.BlocksUsed+len(r.streams) != 0 {
					t.Errorf("left over in the engine: %+v, %d streams", s, len(r.streams))
				}
			})
		})
	}
}

func TestFaultInsideComesAfterWhatIsHeld(t *testing.T) {
	inBubble(t, Config{TokensPerEvent: 100, Faults: Faults{Reset: 1}}, func(t *testing.T, r *rig) {
		for i := range 10 {
			g := r.post(t, strconv.Itoa(i), "/v1/completions", `{"prompt":"x","max_tokens":50,"stream":true}`)
			synctest.Wait()
			if n, e := len(Tokens(g.text())), r.Ledger()[i]; n < 1 || int64(n) != e.Output || e.Events != 1 {
				t.Errorf("%d tokens came before the reset, ledger %+v", n, e)
			}
		}
	})
}

// TestLedgerReconcilesWithClients mixes all faults and checks that clients and
// ledger tell the same of every request.
func TestLedgerReconcilesWithClients(t *testing.T) {
	const share = 0.03
	c := Config{MaxSeqs: 32, KVBlocks: 50, QueueLimit: 40, TokensPerEvent: 2, Seed: 11, Faults: Faults{
		Error: share, Busy: share, Rate: share, Refuse: share, ResetEarly: share, Slow: share, Garbage: share, ErrorInside: share,
		Reset: share, Cut: share, Stall: share, Truncate: share, NoDone: share, Malformed: share, Empty: share, Usage: share,
	}}
	inBubble(t, c, func(t *testing.T, r *rig) {
		const users, each = 60, 20
		answers := make([]*got, users*each)
		var wg sync.WaitGroup
		for u := range users {
			wg.Go(func() {
				for i := u * each; i < (u+1)*each; i++ {
					body := fmt.Sprintf(`{"prompt":"`+strings.Repeat("word ", 40)+`question %d","max_tokens":%d,"stream":%t,"stream_options":{"include_usage":true}}`, i/3, 2+i%40, i%4 > 0)
					answers[i] = r.post(t, strconv.Itoa(i), "/v1/completions", body)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		ends, faults := map[End]int{}, map[Fault]int{}
		seen := map[string]bool{}
		for _, e := range r.Ledger() {
			i, err := strconv.Atoi(e.ID)
			if err != nil || seen[e.ID] {
				t.Fatalf("in the ledger: %+v", e)
			}
			seen[e.ID] = true
			ends[e.End]++
			faults[e.Fault]++
			g := answers[i]
			whole := g.Err == nil && g.Status == 200 && (has(g, "[DONE]") || e.Fault == FaultNoDone || json.Valid([]byte(g.Body)))
			switch {
			case g.Status != e.Status && e.Fault != FaultResetEarly:
				t.Errorf("status %d, ledger %+v", g.Status, e)
			case e.End == EndComplete && (!whole || int64(bodyLen(g)) != e.Bytes):
				t.Errorf("%d bytes, %v, ledger %+v", bodyLen(g), g.Err, e)
			case e.End == EndComplete && e.Stream && (len(g.payload()) != int(e.Events) || len(g.text()) != int(e.TextBytes) || len(Tokens(g.text())) != int(e.Output)):
				t.Errorf("%d events, %q, ledger %+v", len(g.payload()), g.text(), e)
			case e.End == EndComplete && e.Output != int64(2+i%40):
				t.Errorf("asked for %d tokens, ledger %+v", 2+i%40, e)
			case e.End == EndOpen, e.End == EndLeft, e.End == EndStopped:
				t.Errorf("nobody left, ledger %+v", e)
			}
		}
		if len(seen) != users*each || ends[EndComplete]+ends[EndFault]+ends[EndRefused] != users*each || len(faults) != 17 {
			t.Errorf("%d requests, ends %v, faults %v", len(seen), ends, faults)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if s := r.engine.Stats(); s.Preemptions == 0 || s.PrefixHits == 0 {
			t.Errorf("the load reaches neither preemption nor the prefix cache: %+v", s)
		}
	})
}

func status(code int) func(*got) bool {
	return func(g *got) bool { return g.Status == code && g.Err == nil && strings.Contains(g.Body, `"error"`) }
}
func retry(g *got) bool       { return status(429)(g) && g.Header.Get("Retry-After") == "1" }
func resetBefore(g *got) bool { return g.Status == 0 && errors.Is(g.Err, syscall.ECONNRESET) }
func html(g *got) bool        { return g.Status == 200 && strings.Contains(g.Body, "<h1>") && g.Err == nil }

func good(g *got) bool {
	return g.Err == nil && len(g.payload()) == 8 && has(g, `"finish_reason":"length"`) && has(g, "[DONE]")
}

func goodOnce(g *got) bool {
	return g.Status == 200 && g.Err == nil && strings.Contains(g.Body, `"finish_reason":"length"`) && strings.Contains(g.Body, `"completion_tokens":8,`)
}

func errorInside(g *got) bool {
	return g.Status == 200 && g.Err == nil && has(g, `"error":{`) && !has(g, `"finish_reason":"length"`) && some(g)
}

func errorBody(g *got) bool {
	return g.Status == 200 && g.Err == nil && strings.HasPrefix(g.Body, `{"error":{`)
}

func resetInside(g *got) bool {
	return g.Status == 200 && errors.Is(g.Err, syscall.ECONNRESET) && (some(g) || g.Body != "")
}

func cutShort(g *got) bool {
	return g.Status == 200 && errors.Is(g.Err, io.ErrUnexpectedEOF) && (some(g) || g.Body != "")
}

func truncated(g *got) bool {
	return g.Err == nil && some(g) && !has(g, `"finish_reason":"length"`) && !has(g, "[DONE]")
}

func noFinish(g *got) bool {
	return g.Err == nil && strings.Contains(g.Body, `"finish_reason":null`)
}

func noDone(g *got) bool {
	return g.Err == nil && len(g.payload()) == 8 && has(g, `"finish_reason":"length"`) && !has(g, "[DONE]")
}

func malformed(g *got) bool {
	bad := 0
	for _, e := range g.Events {
		if e.Data != "[DONE]" && !json.Valid([]byte(e.Data)) {
			bad++
		}
	}
	return g.Err == nil && bad == 1 && has(g, "[DONE]")
}
func malformedBody(g *got) bool { return g.Err == nil && !json.Valid([]byte(g.Body)) }
func huge(g *got) bool {
	largest := len(g.Body)
	for _, e := range g.Events {
		largest = max(largest, len(e.Data))
		if e.Data != "[DONE]" && !json.Valid([]byte(e.Data)) {
			return false
		}
	}
	return g.Err == nil && largest > 16<<20
}

func empty(g *got) bool {
	return g.Err == nil && len(g.payload()) == 0 && has(g, `"finish_reason":"length"`) && has(g, `"completion_tokens":0,`)
}

func emptyOnce(g *got) bool {
	return g.Err == nil && strings.Contains(g.Body, `"text":""`) && strings.Contains(g.Body, `"completion_tokens":0,`)
}

func wrongUsage(g *got) bool {
	return g.Err == nil && len(g.payload()) == 8 && has(g, "[DONE]") && !has(g, `"prompt_tokens":1,"completion_tokens":8,`)
}

func wrongUsageOnce(g *got) bool {
	return g.Err == nil && json.Valid([]byte(g.Body)) && !strings.Contains(g.Body, `"prompt_tokens":1,"completion_tokens":8,`)
}

func has(g *got, part string) bool {
	return slices.ContainsFunc(g.Events, func(e gotEvent) bool { return strings.Contains(e.Data, part) })
}
func some(g *got) bool { n := len(g.payload()); return n > 0 && n < 8 }

func TestFaultsAreDrawnFromTheRequest(t *testing.T) {
	f := Faults{Error: 0.1, Reset: 0.2, Usage: 0.05}
	const n = 20_000
	count := map[Fault]int{}
	for i := range n {
		id := strconv.Itoa(i)
		fault, detail := f.draw(7, id)
		if again, d := f.draw(7, id); again != fault || d != detail {
			t.Fatalf("request %s meets %q, then %q", id, fault, again)
		}
		count[fault]++
	}
	for fault, want := range map[Fault]float64{FaultError: 0.1, FaultReset: 0.2, FaultUsage: 0.05, NoFault: 0.65} {
		sigma := want * (1 - want) * n
		if got := float64(count[fault]); (got-want*n)*(got-want*n) > 16*sigma {
			t.Errorf("%q met %v of %d requests, want about %v", fault, got, n, want*n)
		}
	}
	first, _ := f.draw(1, "x")
	differs := false
	for seed := range uint64(100) {
		fault, _ := f.draw(seed, "x")
		differs = differs || fault != first
	}
	if !differs {
		t.Error("the seed changes nothing")
	}
}
