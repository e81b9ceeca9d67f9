package sim

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

const maxStops = 16

// answer is one request being answered. It belongs to the request's goroutine.
type answer struct {
	s       *Server
	w       http.ResponseWriter
	request *llm.ChatRequest
	entry   Entry
	left    <-chan struct{} // closed when the client goes away
	detail  uint64          // the details of the fault are drawn from it

	total     int64     // tokens that the answer will have
	reasoning int64     // of them the first, sent as reasoning
	visible   int       // bytes of text before the stop string, if cut
	cut       bool      // a stop string ends the text
	text      int       // bytes of text so far, including what is hidden
	produced  int64     // tokens taken from the engine
	chunk     llm.Chunk // what all chunks have in common
	timing    timing
	role      bool // the role was sent
	spoilt    bool // the answer goes on to its end, but is not good

	held       []byte // text of the tokens that wait for their event
	heldTokens int64
	data, buf  []byte
}

// timing is what the engine knows about the time of a request.
type timing struct {
	arrival, first, last, queued time.Duration
}

func (a *answer) refuse(status int, message string) {
	a.entry.End, a.entry.Status = EndRefused, status
	a.entry.Bytes += int64(writeError(a.w, status, message))
}

// fail is refuse by an injected fault.
func (a *answer) fail(status int, message string) {
	a.refuse(status, message)
	a.entry.End = EndFault
}

// serve has the request generated and writes the answer, with the fault that
// was drawn for it.
func (a *answer) serve() {
	switch a.entry.Fault {
	case FaultError:
		a.fail(http.StatusInternalServerError, "injected: internal error")
		return
	case FaultBusy:
		a.fail(http.StatusServiceUnavailable, "injected: overloaded")
		return
	case FaultRate:
		a.w.Header().Set("Retry-After", "1")
		a.fail(http.StatusTooManyRequests, "injected: rate limit")
		return
	case FaultRefuse:
		a.fail(http.StatusBadRequest, "injected: refused")
		return
	case FaultResetEarly:
		a.reset()
		return
	case FaultGarbage:
		a.garbage()
		return
	case FaultSlow:
		if !a.wait() {
			return
		}
	}
	r := a.plan()
	st, err := a.s.submit(r)
	switch {
	case err == nil:
	case errors.Is(err, ErrQueueFull):
		a.w.Header().Set("Retry-After", "1")
		a.refuse(http.StatusTooManyRequests, err.Error())
		return
	case errors.Is(err, errStopped):
		a.refuse(http.StatusServiceUnavailable, err.Error())
		return
	default:
		a.refuse(http.StatusBadRequest, err.Error())
		return
	}
	defer a.s.abandon(st)
	a.timing.arrival = st.arrival
	a.chunk = llm.Chunk{API: a.request.API, ID: "cmpl-" + a.entry.ID, Model: a.request.Model, Created: time.Now().Unix()}
	if a.chunk.Model == "" {
		a.chunk.Model = a.s.name
	}
	if a.request.Stream {
		a.stream(st)
	} else {
		a.whole(st)
	}
}

// plan turns the protocol's request into the engine's.
func (a *answer) plan() Request {
	q, c := a.request, &a.s.config
	r := Request{Prompt: promptTokens(q), MaxTokens: q.MaxTokens, Priority: q.Priority, Draw: mix(c.Seed, 0x74657874)}
	for _, t := range r.Prompt {
		r.Draw = mix(r.Draw, uint64(t))
	}
	if q.Seed != nil && q.Temperature != nil && *q.Temperature > 0 {
		r.Draw = mix(r.Draw, uint64(*q.Seed))
	}
	a.entry.Prompt = int64(len(r.Prompt))
	if r.MaxTokens == 0 {
		r.MaxTokens = max(1, min(a.s.limit, a.s.engine.p.context-a.entry.Prompt))
	}
	if h := mix(r.Draw, 0x73746f70); !q.IgnoreEOS && uniform(h) < float64(c.Output.Stop) {
		r.StopAfter = 1 + int64(mix(h, 1)%uint64(r.MaxTokens))
	}
	if a.entry.Fault == FaultEmpty {
		r.MaxTokens, r.StopAfter = 1, 0
	}
	if len(q.Stop) > 0 && r.MaxTokens <= a.s.engine.p.context {
		a.findStop(&r)
	}
	a.total = r.MaxTokens
	if r.StopAfter > 0 {
		a.total = min(a.total, r.StopAfter)
	}
	if q.API == llm.APIChat {
		a.reasoning = int64(float64(c.Reasoning) * float64(a.total))
	}
	return r
}

// promptTokens applies the chat template: one token before a message, which
// names its role, one after it, and one that opens the answer.
func promptTokens(q *llm.ChatRequest) []Token {
	if q.API == llm.APICompletions {
		if q.Prompt == "" {
			return []Token{tokenID("<|begin|>")}
		}
		return Tokens(q.Prompt)
	}
	var tokens []Token
	for _, m := range q.Messages {
		tokens = append(tokens, tokenID("<|"+m.Role+"|>"))
		tokens = append(tokens, Tokens(m.Content)...)
		tokens = append(tokens, tokenID("<|end|>"))
	}
	return append(tokens, tokenID("<|assistant|>"))
}

// findStop looks for the request's stop strings in the text that the engine will
// generate, which is known beforehand, and ends it at the first.
func (a *answer) findStop(r *Request) {
	limit := r.MaxTokens
	if r.StopAfter > 0 {
		limit = min(limit, r.StopAfter)
	}
	var text strings.Builder
	ends := make([]int, limit)
	for i := range limit {
		word, _ := wordAt(r.Draw, i)
		text.WriteString(word)
		ends[i] = text.Len()
	}
	first, end := -1, 0
	for _, stop := range a.request.Stop {
		if at := strings.Index(text.String(), stop); stop != "" && at >= 0 && (first < 0 || at < first) {
			first, end = at, at+len(stop)
		}
	}
	if first < 0 {
		return
	}
	a.cut, a.visible = true, first
	for i, e := range ends {
		if e >= end {
			r.StopAfter = int64(i) + 1
			return
		}
	}
}

// show returns the part of the next piece of text that the client may see.
func (a *answer) show(text string) string {
	start := a.text
	a.text += len(text)
	if a.cut {
		text = text[:max(0, min(len(text), a.visible-start))]
	}
	return text
}

// wait blocks for the time of a fault; false means that the client has left.
func (a *answer) wait() bool {
	t := time.NewTimer(a.s.config.Faults.duration())
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.left:
		a.entry.End = EndLeft
		return false
	}
}

// next waits for emissions; false means that there will be none, and the
// account says why.
func (a *answer) next(st *stream, spare []Emission) ([]Emission, bool) {
	for {
		pending, dead := st.take(spare)
		if len(pending) > 0 {
			return pending, true
		}
		if dead {
			a.entry.End = EndStopped
			return nil, false
		}
		spare = pending
		select {
		case <-st.ready:
		case <-a.left:
			a.entry.End = EndLeft
			return nil, false
		}
	}
}

// take accounts for a token that came from the engine.
func (a *answer) take(em *Emission) {
	if em.Index == 0 {
		a.entry.Cached = em.Cached
		a.timing.first, a.timing.queued = em.At, em.Queued
	}
	a.timing.last = em.At
	a.produced = em.Index + 1
}

// usage returns the account of tokens after so many of output, as the fault has
// it; nil is none.
func (a *answer) usage(produced int64) *llm.Usage {
	u := &llm.Usage{Prompt: a.entry.Prompt, Output: produced, Cached: record.Tokens(a.entry.Cached)}
	if a.s.config.Reasoning > 0 && a.request.API == llm.APIChat {
		u.Reasoning = record.Tokens(min(produced, a.reasoning))
	}
	switch a.entry.Fault {
	case FaultEmpty:
		u.Output, u.Reasoning = 0, record.Count(0)
	case FaultUsage:
		switch a.detail % 3 {
		case 0:
			u.Prompt, u.Cached = 0, record.Count(0)
		case 1:
			u.Output += 1000
		default:
			return nil
		}
	}
	return u
}

// timings returns what vLLM tells about a request when asked to.
func (a *answer) timings() map[string]float64 {
	t := a.timing
	m := map[string]float64{
		"queue_time_ms":          t.queued.Seconds() * 1e3,
		"time_to_first_token_ms": (t.first - t.arrival).Seconds() * 1e3,
		"generation_time_ms":     (t.last - t.first).Seconds() * 1e3,
	}
	if a.produced > 1 {
		m["mean_itl_ms"] = (t.last - t.first).Seconds() * 1e3 / float64(a.produced-1)
	}
	return m
}

// whole writes the answer in one piece.
func (a *answer) whole(st *stream) {
	var text, thought strings.Builder
	var spare []Emission
	for a.chunk.Finish == "" {
		pending, ok := a.next(st, spare)
		if !ok {
			if a.entry.End == EndStopped {
				a.refuse(http.StatusServiceUnavailable, errStopped.Error())
				a.entry.End = EndStopped
			}
			return
		}
		for i := range pending {
			em := &pending[i]
			a.take(em)
			if em.Index < a.reasoning {
				thought.WriteString(a.show(em.Text))
			} else {
				text.WriteString(a.show(em.Text))
			}
			a.chunk.Finish = string(em.Finish)
		}
		spare = pending
	}
	c := a.chunk
	if a.request.API == llm.APIChat {
		c.Role = "assistant"
	}
	c.Content, c.Reasoning = text.String(), thought.String()
	c.Usage, c.Timings = a.usage(a.produced), a.timings()
	if a.s.config.Usage == usageNever {
		c.Usage, c.Timings = nil, nil
	}
	a.finishWhole(&c)
}

// finishWhole sends a finished answer, or what the fault makes of it.
func (a *answer) finishWhole(c *llm.Chunk) {
	a.spoilt = true
	send, stop := 1.0, 1.0 // share of the body to send at first; share to send at all
	switch a.entry.Fault {
	case FaultErrorInside:
		a.data = llm.AppendError(nil, http.StatusInternalServerError, "server_error", "injected: error inside the answer")
		a.sendWhole(1, 1)
		return
	case FaultTruncate:
		c.Finish = ""
	case FaultEmpty:
		c.Content, c.Reasoning = "", ""
	case FaultHuge:
		c.Content = strings.Repeat("huge ", hugeBytes/5)
	case FaultReset, FaultCut:
		send, stop = 0.5, 0.5
	case FaultStall:
		send, a.spoilt = 0.5, false
	default:
		a.spoilt = false
	}
	a.data = llm.AppendAnswer(nil, c)
	if a.entry.Fault == FaultMalformed {
		a.data, a.spoilt = a.data[:len(a.data)/2], true
	}
	if a.sendWhole(send, stop) {
		a.entry.Output, a.entry.Events = a.produced, 1
		a.entry.Reasoning = min(a.produced, a.reasoning)
		a.entry.TextBytes = int64(len(c.Content) + len(c.Reasoning))
		a.entry.Finish = Finish(c.Finish)
		if a.entry.Fault == FaultEmpty {
			a.entry.Output, a.entry.Reasoning, a.entry.Events = 0, 0, 0
		}
	}
}

// sendWhole writes the body, in two parts if the first is not all, and not all
// of it if stop is below 1. It reports whether all was written.
func (a *answer) sendWhole(first, stop float64) bool {
	a.w.Header().Set("Content-Type", "application/json")
	a.w.Header().Set("Content-Length", strconv.Itoa(len(a.data)))
	a.header()
	now := time.Now().UnixNano()
	a.entry.First, a.entry.Last = now, now
	n := int(float64(len(a.data)) * first)
	if !a.write(a.data[:n]) {
		return false
	}
	if stop < 1 {
		if a.entry.Fault == FaultReset {
			a.reset()
		}
		a.entry.End = EndFault // a body shorter than said closes the connection
		return false
	}
	if n < len(a.data) {
		if !a.wait() || !a.write(a.data[n:]) {
			return false
		}
	}
	a.entry.End = EndComplete
	if a.spoilt {
		a.entry.End = EndFault
	}
	return true
}

func (a *answer) header() {
	a.w.WriteHeader(http.StatusOK)
	a.entry.Status = http.StatusOK
}

// write sends bytes at once; false means that the client has left.
func (a *answer) write(b []byte) bool {
	n, err := a.w.Write(b)
	a.entry.Bytes += int64(n)
	if err == nil {
		err = http.NewResponseController(a.w).Flush()
	}
	if err != nil {
		a.entry.End = EndLeft
	}
	return err == nil
}
