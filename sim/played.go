package sim

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// played is one request of a player.
type played struct {
	b       *stretch
	shot    workload.Shot
	rec     *record.Record
	due     time.Duration
	delayed bool // waited for the cap
	then    func()
	ended   bool

	handle  Handle
	a       answer // what the server would send
	spoilAt int64  // token at which the fault strikes
	stalled time.Duration
	pending []Emission // during a stall
	read    uint32
	came    int64 // payload events
	text    strings.Builder
}

// admit lets the request pass the cap; its jitter is still to come.
func (f *played) admit() {
	b := f.b
	b.flight[f] = true
	f.rec.Admit = record.At(b.now)
	send := f.due + f.shot.Jitter
	if f.delayed {
		send = b.now + f.shot.Jitter
	}
	if c := f.shot.Cancel; c.When == workload.CutTime {
		b.at(f.due+c.After, f.cancel)
	}
	if send > b.now {
		b.at(send, f.send)
	} else {
		f.send()
	}
}

func (f *played) cancel() { f.end(record.ClientCancelled, llm.ErrPlanned.Error()) }

// send reaches the server at once.
func (f *played) send() {
	if f.ended {
		return
	}
	b := f.b
	f.rec.Send, f.rec.Sent = record.At(b.now), record.At(b.now)
	if f.shot.Cancel.When == workload.CutPrefill {
		f.cancel()
		return
	}
	fault, detail := b.server.config.Faults.draw(b.server.config.Seed, llm.RequestID(f.rec))
	f.a = answer{s: b.server, request: b.request(&f.shot), detail: detail, entry: Entry{Fault: fault}}
	switch fault {
	case FaultError:
		f.refuse(500, "injected: internal error")
	case FaultBusy:
		f.refuse(503, "injected: overloaded")
	case FaultRate:
		f.refuse(429, "injected: rate limit")
	case FaultRefuse:
		f.refuse(400, "injected: refused")
	case FaultResetEarly:
		f.end(record.ResetBefore, "injected: the connection was reset")
	case FaultGarbage:
		f.rec.Status, f.rec.Header = 200, record.At(b.now)
		f.end(garbled(f.shot.Stream), "injected: a page of HTML")
	case FaultSlow:
		b.at(b.now+b.server.config.Faults.duration(), f.submit)
	default:
		f.submit()
	}
}

// garbled is what a page of HTML is taken for: a stream of no events, or a body that
// is no answer.
func garbled(stream bool) record.Outcome {
	if stream {
		return record.Truncated
	}
	return record.Malformed
}

func (f *played) refuse(status int, message string) {
	f.rec.Status, f.rec.Header = status, record.At(f.b.now)
	f.end(refusal(status), message)
}

// submit enters the request into the engine.
func (f *played) submit() {
	if f.ended {
		return
	}
	r := f.a.plan()
	h, err := f.b.engine.Submit(r, f.b.now)
	switch {
	case errors.Is(err, ErrQueueFull):
		f.refuse(429, err.Error())
		return
	case err != nil:
		f.refuse(400, err.Error())
		return
	}
	f.handle = h
	f.b.Player.flying[h] = f
	f.spoilAt = -1
	if f.a.entry.Fault.inside() {
		f.spoilAt = min(1+int64(f.a.detail%uint64(max(f.a.total-1, 1))), f.a.total-1)
	}
	f.rec.Status = 200
	if f.shot.Stream {
		f.rec.Header = record.At(f.b.now)
	}
}

// emitted takes a token from the engine.
func (f *played) emitted(em Emission) {
	switch {
	case f.ended:
	case f.stalled > f.b.now:
		f.pending = append(f.pending, em)
	case !f.shot.Stream:
		f.whole(&em)
	default:
		f.read++
		f.token(&em)
	}
}

// token sends a token of a stream, and what belongs around it.
func (f *played) token(em *Emission) {
	a := &f.a
	if em.Index == f.spoilAt && !f.spoil() {
		if f.stalled > 0 {
			f.pending = append(f.pending, *em)
		}
		return
	}
	a.take(em)
	if !a.role {
		a.role = true
		if a.request.API == llm.APIChat {
			f.event(record.KindRole, 0)
		}
	}
	if a.entry.Fault != FaultEmpty {
		a.held = append(a.held, em.Text...)
	}
	a.heldTokens++
	if a.heldTokens >= max(int64(a.s.config.TokensPerEvent), 1) || em.Finish != "" || a.produced == a.reasoning {
		f.payload(em.Finish)
	}
	if em.Finish == "" || f.ended {
		return
	}
	f.rec.Finish = string(em.Finish)
	if usage := a.s.config.Usage; usage != usageNever && usage != usageFinish {
		f.event(record.KindUsage, 0)
	}
	if a.entry.Fault == FaultNoDone {
		f.rec.Flags |= record.FlagNoDone
	} else {
		f.event(record.KindDone, 0)
	}
	f.complete()
}

// payload writes the event of the tokens that are held.
func (f *played) payload(finish Finish) {
	a := &f.a
	switch {
	case len(a.held) > 0:
		kind := record.KindContent
		if a.produced <= a.reasoning {
			kind = record.KindReasoning
		} else if f.b.grows {
			f.text.Write(a.held)
		}
		if f.came > 0 && f.rec.Events[len(f.rec.Events)-1].Read == f.read {
			f.rec.Flags |= record.FlagCoalesced
		}
		f.event(kind, len(a.held))
		f.came++
	case finish != "":
		f.event(record.KindFinish, 0)
	}
	a.held, a.heldTokens = a.held[:0], 0
	if n := f.shot.Cancel.Tokens; f.shot.Cancel.When == workload.CutTokens && f.came >= n {
		f.cancel()
	}
}

// event writes down an event that came now.
func (f *played) event(k record.Kind, bytes int) {
	now := record.At(f.b.now)
	if f.rec.Events == nil {
		f.rec.Events = make([]record.Event, 0, f.a.total+4)
	}
	f.rec.Events = append(f.rec.Events, record.Event{At: now, Emit: now, Read: f.read, Bytes: uint32(bytes), Kind: k})
	f.rec.OutputBytes += int64(bytes)
}

// spoil lets the fault strike; false means that the token does not follow now.
func (f *played) spoil() bool {
	f.payload("")
	lost := record.ResetBefore
	if f.came > 0 {
		lost = record.ResetMid
	}
	switch f.a.entry.Fault {
	case FaultErrorInside:
		f.event(record.KindError, 0)
		f.end(record.ErrorEvent, "injected: error inside the stream")
	case FaultReset, FaultCut:
		f.end(lost, "injected: the connection was lost")
	case FaultTruncate:
		f.rec.EOF = f.rec.Events[len(f.rec.Events)-1].At // a client stops at what it read last
		f.end(record.Truncated, "injected: the stream ended without finish_reason")
	case FaultMalformed:
		f.event(record.KindUnknown, 0)
		f.end(record.Malformed, "injected: an event of broken JSON")
	case FaultHuge:
		f.end(record.EventTooLarge, "injected: an event of 17 MiB")
	case FaultStall:
		f.spoilAt = -1
		f.stalled = f.b.now + f.b.server.config.Faults.duration()
		f.b.at(f.stalled, f.goOn)
	}
	return f.a.entry.Fault == FaultStall && f.stalled <= f.b.now
}

// goOn sends what was held back by a stall.
func (f *played) goOn() {
	f.read++
	for i := range f.pending {
		if f.ended {
			return
		}
		if f.shot.Stream {
			f.token(&f.pending[i])
		} else {
			f.whole(&f.pending[i])
		}
	}
	f.pending = nil
}

// whole sends the answer in one piece once it is complete.
func (f *played) whole(em *Emission) {
	a := &f.a
	a.take(em)
	if em.Index >= a.reasoning && f.b.grows {
		f.text.WriteString(em.Text)
	}
	a.text += len(em.Text)
	if em.Finish == "" {
		return
	}
	f.rec.Header, a.entry.Finish = record.At(f.b.now), em.Finish
	switch a.entry.Fault {
	case FaultErrorInside:
		f.event(record.KindError, 0)
		f.end(record.ErrorEvent, "injected: error inside the answer")
		return
	case FaultReset, FaultCut:
		f.end(record.ResetBefore, "injected: the connection was lost")
		return
	case FaultMalformed:
		f.end(record.Malformed, "injected: half a body")
		return
	case FaultStall:
		if f.stalled == 0 {
			f.stalled = f.b.now + f.b.server.config.Faults.duration()
			f.b.at(f.stalled, f.complete)
			return
		}
	case FaultHuge:
		a.text = hugeBytes / 5 * 5 // of whole words, as finishWhole writes it
	case FaultTruncate:
		a.entry.Finish = ""
		f.rec.Flags |= record.FlagNoDone
	}
	f.complete()
}

// complete ends a request whose answer came to its end.
func (f *played) complete() {
	if f.ended {
		return
	}
	a, r := &f.a, f.rec
	if !f.shot.Stream {
		r.Finish = string(a.entry.Finish)
		if a.entry.Fault == FaultEmpty {
			f.event(record.KindUnknown, 0)
		} else {
			f.event(record.KindContent, a.text)
			f.came++
		}
	}
	if a.s.config.Usage != usageNever {
		u := a.usage(a.produced)
		r.Prompt, r.Output, r.Cached, r.Reasoning = record.Tokens(u.Prompt), record.Tokens(u.Output), u.Cached, u.Reasoning
	}
	if !f.shot.Stream && f.came > 0 {
		r.Events[0].Tokens = r.Output
	}
	switch n, told := r.Output.N(); {
	case f.came == 0:
		f.end(record.EmptyOutput, "finished without output")
		return
	case a.request.IgnoreEOS && told && n < a.request.MaxTokens:
		r.Flags |= record.FlagShortOutput
	}
	f.end(record.OK, "")
}

// end gives the request its outcome, takes what is left of it from the engine, and
// lets those that waited for its place go on.
func (f *played) end(o record.Outcome, detail string) {
	if f.ended {
		return
	}
	b := f.b
	f.ended = true
	if f.rec.Status/100 == 2 && !f.rec.Prompt.Known() {
		f.rec.Flags |= record.FlagUsageMissing
	}
	f.rec.Outcome, f.rec.Detail = o, detail
	if !f.rec.EOF.Set() {
		f.rec.EOF = record.At(b.now)
	}
	delete(b.flight, f)
	delete(b.Player.flying, f.handle)
	b.engine.Cancel(f.handle)
	f.rec.Events = slices.Clip(f.rec.Events)
	rec := *f.rec // what follows still reads it
	b.Sink(&rec)
	f.then()
	if len(b.waiting) > 0 && len(b.flight) < b.cap {
		next := b.waiting[0]
		b.waiting = b.waiting[1:]
		next.admit()
	}
}

// reply is what a session needs to know of an answer.
func (f *played) reply() workload.Reply {
	r := workload.Reply{Outcome: f.rec.Outcome, Text: f.text.String(), Tokens: -1}
	prompt, told := f.rec.Prompt.N()
	if output, also := f.rec.Output.N(); told && also {
		r.Tokens = prompt + output
	}
	return r
}
