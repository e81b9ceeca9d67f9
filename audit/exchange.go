package audit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// question is what one request asks.
type question struct {
	prompt      string
	max         int64
	temperature float64
	seed        int64 // 0: none
	whole       bool  // not streamed
	stop        []string
	n           int64 // answers asked for; 0: 1
}

// exchange is one question and what became of it.
type exchange struct {
	id        string
	loaded    bool // asked while the load ran
	disturbed bool // the client stood still meanwhile: the times prove nothing
	q         question
	rec       record.Record
	llm.Answer
}

// usable reports whether the exchange has a whole answer. One of a wrong length
// is an answer too: the length is a finding, not a failure.
func (x *exchange) usable() bool {
	return x != nil && (x.rec.Outcome == record.OK || x.rec.Outcome == record.LengthMismatch)
}

// refused reports whether the server said openly that it does not do this.
func (x *exchange) refused() bool {
	return x != nil && x.rec.Outcome == record.HTTP4xx && x.rec.Status != 429
}

// when is the instant of an event as the kernel received it, else as read, in
// seconds since the epoch.
func when(e *record.Event) float64 {
	at, _ := e.At.Offset()
	if e.Lag > 0 {
		at -= e.Lag
	}
	return at.Seconds()
}

// ttft is the time from the first byte sent to the first output; ok is false
// without one, and for an answer that is not streamed.
func (x *exchange) ttft() (seconds float64, ok bool) {
	first := x.rec.First()
	sent, was := x.rec.Send.Offset()
	if !x.usable() || x.disturbed || first == nil || !was || x.q.whole {
		return 0, false
	}
	return when(first) - sent.Seconds(), true
}

// decode is the time from the first to the last output. It is 0 when all came at
// once.
func (x *exchange) decode() (seconds float64, ok bool) {
	if !x.usable() || x.disturbed || x.q.whole || x.rec.First() == nil {
		return 0, false
	}
	return max(when(x.rec.Last())-when(x.rec.First()), 0), true
}

// gap is the time from the first to the second output, and pace the mean time
// between those behind it; ok is false with fewer than four events of output.
func (x *exchange) gap() (first, pace float64, ok bool) {
	if !x.usable() || x.disturbed {
		return 0, 0, false
	}
	events := x.payloads()
	if events < 4 {
		return 0, 0, false
	}
	second := when(x.rec.Second())
	return max(second-when(x.rec.First()), 0), max(when(x.rec.Last())-second, 0) / float64(events-2), true
}

// longestLater is the longest time between two outputs behind the second one.
func (x *exchange) longestLater() (longest float64) {
	last := 0.0
	for i, n := 0, 0; i < len(x.rec.Events); i++ {
		e := &x.rec.Events[i]
		if !e.Kind.Payload() {
			continue
		}
		if n++; n > 2 {
			longest = max(longest, when(e)-last)
		}
		last = when(e)
	}
	return longest
}

func (x *exchange) payloads() (n int) {
	for i := range x.rec.Events {
		if x.rec.Events[i].Kind.Payload() {
			n++
		}
	}
	return n
}

// opening is the text up to the end of the first event that is not blank, and
// whether it is reasoning.
func (x *exchange) opening() (text string, reasoning bool) {
	first := x.rec.First()
	if first == nil {
		return "", false
	}
	text, reasoning = x.Text, first.Kind == record.KindReasoning
	if reasoning {
		text = x.Reasoning
	}
	end := 0
	for i := range x.rec.Events {
		if e := &x.rec.Events[i]; e.Kind == first.Kind && strings.TrimSpace(text[:end]) == "" {
			end = min(end+int(e.Bytes), len(text))
		}
	}
	return text[:end], reasoning
}

// output is the number of tokens claimed for the visible output; ok is false
// without a claim.
func (x *exchange) output() (n int64, ok bool) {
	n, ok = x.Claimed.Output.N()
	if hidden, told := x.Claimed.Reasoning.N(); told && x.Reasoning == "" {
		n -= hidden
	}
	return n, ok
}

// shown is all text of the answer, thoughts included.
func (x *exchange) shown() string { return x.Reasoning + x.Text }

// asker puts questions, one after another or from several goroutines.
type asker struct {
	*auditor
	probe string
}

// maxInRow is how many requests may fail in a row before the audit stops asking:
// a dead server is not to be hammered.
const maxInRow = 20

// maxLoad is how many answers to the load are kept whole. Of more only the counts
// are kept: a slow task can take as long as thousands of stories.
const maxLoad = 4096

// ask puts one question and waits for the end of its answer. It returns nil once
// the audit has given up or its time is over.
func (a *asker) ask(ctx context.Context, q question) *exchange {
	a.mu.Lock()
	if ctx.Err() != nil || a.failed >= maxInRow {
		a.mu.Unlock()
		return nil
	}
	x := &exchange{q: q, loaded: a.loaded}
	// The id goes to the server, and must not tell it which probe asks.
	id := rand.New(rand.NewPCG(a.cfg.Seed, 1<<32+uint64(a.asked))).Uint32()
	x.rec = record.Record{
		Shot: a.asked, Variant: fmt.Sprintf("%08x", id), Workload: "chat", Stream: !q.whole, MaxTokens: q.max + a.cfg.Thinking, PromptBytes: int64(len(q.prompt)),
	}
	a.asked++
	a.mu.Unlock()

	x.id = llm.RequestID(&x.rec)
	x.rec.Due = record.At(time.Since(a.epoch))
	x.rec.Admit = x.rec.Due
	req := &llm.Request{
		Messages: []corpus.Message{{Role: "user", Content: q.prompt}}, MaxTokens: x.rec.MaxTokens, Stream: !q.whole,
		Temperature: &q.temperature, Stop: q.stop,
	}
	if q.seed != 0 {
		req.Seed = &q.seed
	}
	if q.n > 1 {
		req.Extra = map[string]any{"n": q.n}
	}
	x.Answer = a.client.Do(ctx, a.epoch, req, &x.rec)

	a.mu.Lock()
	defer a.mu.Unlock()
	if x.rec.Outcome == record.Interrupted {
		return nil
	}
	a.all = append(a.all, x)
	if a.probe == loadProbe { // which waits by itself when it is refused
		if a.asked-a.own > maxLoad {
			x.rec.Events, x.Text, x.Reasoning = nil, "", ""
		}
		return x
	}
	a.failed++
	if x.usable() || x.refused() {
		a.failed = 0
	}
	a.own++
	if a.cfg.Watch != nil {
		a.cfg.Watch(Progress{Probe: a.probe, Asked: a.own, Of: a.planned, About: a.about})
	}
	return x
}

// contains reports whether a text has a code, whatever the case.
func contains(text, code string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(code))
}
