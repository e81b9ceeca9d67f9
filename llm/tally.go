package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// Tool is one tool call of an answer, put together from its pieces.
type Tool struct{ ID, Name, Arguments string }

// Answer is the generated output of one request.
type Answer struct {
	Text      string // of the first choice, with refusals
	Reasoning string
	Tools     []Tool
	Clipped   bool // there was more text than Target.KeepText

	// What the server says of itself, as it says it: unlike the record's counts,
	// Claimed is kept also where it cannot be true. Model and Fingerprint are
	// "model" and "system_fingerprint" of OpenAI's APIs, the first that came; both
	// are bounded and printable, and only there if text is kept.
	Claimed     Claim
	Choices     int // by index, at most 64
	Model       string
	Fingerprint string

	// Body is what came, whatever its status, if Request.KeepBody asks for it: at
	// most Target.MaxBody bytes, of an error less. It may quote prompt and key.
	Body []byte
}

// Claim is a server's account of one answer's tokens, unchecked.
type Claim struct{ Prompt, Output, Cached, Reasoning record.Count }

// Bounds on the events that a record keeps. An answer with more events of output
// than maxEvents is refused, about 12 MiB of them; of the others, which a server
// may send without end to keep a connection alive, the first maxQuiet are kept.
const (
	maxEvents = 1 << 18
	maxQuiet  = 4096
)

// maxSpent bounds the times that a server tells of one answer.
const maxSpent = 64

// maxTools bounds the tool calls of one answer.
const maxTools = 1024

// errDone ends the reading of an answer that is complete.
var errDone = errors.New("complete")

// tally reads one answer and writes what it says on the record. It is pooled.
type tally struct {
	call  call   // what Do makes of a request
	id    []byte // behind call.id
	t     *Target
	d     *dialect
	q     *call
	req   *Request
	rec   *record.Record
	spare []record.Event // events are collected here unless the record has room
	lent  bool
	frag  fragment
	dec   Decoder
	chunk chunk
	event func(*Event) error // one closure for all events

	text, reasoning []byte
	tools           []toolCall
	kept            int
	clipped         bool
	digest          hash.Hash
	digestSum       [sha256.Size]byte
	digestText      [2 * sha256.Size]byte
	body            []byte // of an answer that is not streamed

	payloads   int    // payload events
	came       int64  // tokens of them as told, else one an event
	quiet      int    // events without output
	strange    int    // events that are no part of an answer
	lastRead   uint32 // of the last payload event
	finished   uint64 // choices by index mod 64
	seen       uint64
	done       bool // [DONE]
	failed     bool // an error inside the answer
	usage      usage
	usageOnly  int64   // output tokens of the last usage without payload; −1: none
	counts     []int64 // output tokens on payload events as sent; −1: not sent
	countsSent int
	badUsage   bool
	timings    []byte
	model      []byte // raw JSON of the first "model" …
	print      []byte // … and of the first "system_fingerprint" that is not null
	spent      []spent
	hidden     bool // reasoning that may not be shown in full
}

type toolCall struct {
	index    int64
	id, name string
	args     []byte
}

var tallies = sync.Pool{New: func() any {
	t := &tally{digest: sha256.New()}
	t.event = t.onEvent
	return t
}}

func (t *tally) begin(target *Target, q *call, req *Request) {
	t.t, t.d, t.q, t.req, t.rec = target, target.dialect(), q, req, q.rec
	t.dec.Reset()
	t.dec.Max = target.MaxEvent
	t.text, t.reasoning, t.body, t.timings = small(t.text), small(t.reasoning), small(t.body), small(t.timings)
	t.counts, t.tools = t.counts[:0], t.tools[:0]
	t.kept, t.clipped, t.payloads, t.came, t.quiet, t.strange, t.lastRead = 0, false, 0, 0, 0, 0, 0
	t.seen, t.finished, t.done, t.failed = 0, 0, false, false
	t.usage, t.usageOnly, t.countsSent, t.badUsage = noUsage, -1, 0, false
	t.spent, t.hidden = t.spent[:0], false
	t.model, t.print = t.model[:0], t.print[:0]
	t.frag = fragment{}
	t.digest.Reset()
	t.rec.Events = t.rec.Events[:0]
	if t.lent = cap(t.rec.Events) == 0; t.lent {
		if t.spare == nil {
			t.spare = make([]record.Event, 0, 32)
		}
		t.rec.Events = t.spare
	}
}

// end lets go of what belongs to the request. The record gets its events in
// memory of their own, as much as they need.
func (t *tally) end() {
	if t.lent {
		if t.spare = t.rec.Events[:0]; cap(t.spare) > 2048 {
			t.spare = nil
		}
		t.rec.Events = append([]record.Event(nil), t.rec.Events...)
	}
	t.t, t.d, t.q, t.req, t.rec, t.call = nil, nil, nil, nil, nil, call{}
	t.frag = fragment{}
	t.chunk.reset(nil)
	t.chunk.small()
	clear(t.tools)
	tallies.Put(t)
}

// small empties a buffer and lets a large one go.
func small(b []byte) []byte {
	if cap(b) > 256<<10 {
		return nil
	}
	return b[:0]
}

// read reads the whole answer. Its error is what ended it too early.
func (t *tally) read(s stream, h head) error {
	t.rec.Status = h.status
	if t.d.timed {
		t.takeHead(&h.told)
	}
	switch {
	case h.encoding != "":
		return fail(record.Malformed, "a body with content coding %q, which nobody asked for", h.encoding)
	case h.status < 200 || h.status > 299:
		return t.refused(s, h)
	case h.sse || t.req.Stream && (!h.json || t.d.lines):
		t.dec.plain = t.d.lines && !h.sse
		return t.readEvents(s)
	}
	if err := t.readBody(s, t.t.MaxBody); err != nil {
		return err
	}
	return t.onBody()
}

func (t *tally) readEvents(s stream) error {
	size := int64(0)
	for {
		f, err := s.next()
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF {
			if f = t.frag; f.read == 0 {
				f.at = time.Now()
			}
			t.rec.EOF = t.q.instant(f.at)
			t.frag = f
			return complete(t.dec.End(f.read, t.event))
		}
		t.frag = f
		if size += int64(len(f.p)); size > t.t.MaxBody {
			return fail(record.BodyTooLarge, "an answer of more than %d bytes", t.t.MaxBody)
		}
		if err := t.dec.Feed(f.p, f.read, t.event); err != nil {
			t.rec.EOF = t.q.instant(f.at)
			return complete(err)
		}
	}
}

func complete(err error) error {
	if err == errDone {
		return nil
	}
	return err
}

func (t *tally) onEvent(e *Event) error {
	if t.payloads == maxEvents {
		return fail(record.BodyTooLarge, "an answer of more than %d events", maxEvents)
	}
	if e.Comment {
		t.add(record.KindComment, e, 0)
		return nil
	}
	data := bytes.TrimSpace(e.Data)
	name := string(e.Name)
	switch {
	case name == "error":
		t.inband(data, e)
		return errDone
	case len(data) == 0, string(data) == `""`, name == "ping", name == "heartbeat", name == "keepalive":
		t.add(record.KindComment, e, 0)
		return nil
	case string(data) == "[DONE]":
		t.done = !e.Tail
		t.seenTail(e)
		t.add(record.KindDone, e, 0)
		return errDone
	}
	c := &t.chunk
	if err := t.d.read(c, e.Name, data); err != nil {
		if e.Tail {
			return nil // half an event: what came before it decides
		}
		t.add(record.KindUnknown, e, 0)
		return &failure{record.Malformed, err}
	}
	t.seenTail(e)
	if c.err != nil {
		t.inband(c.err, e)
		return errDone
	}
	t.onChunk(c)
	t.add(t.kind(c), e, c.payload)
	if n := t.req.LeaveAfter; n > 0 && t.came >= n {
		return ErrPlanned
	}
	if c.has&hasDone != 0 {
		t.done = !e.Tail
		return errDone
	}
	return nil
}

// seenTail marks an event that was whole but for its blank line.
func (t *tally) seenTail(e *Event) {
	if e.Tail {
		t.rec.Flags |= record.FlagNoDone
	}
}

// kind classes a chunk. Output decides before everything else.
func (t *tally) kind(c *chunk) record.Kind {
	switch {
	case c.has&hasContent != 0:
		return record.KindContent
	case c.has&hasTool != 0:
		return record.KindTool
	case c.has&hasReasoning != 0:
		return record.KindReasoning
	case c.has&hasFinish != 0:
		return record.KindFinish
	case c.has&hasDone != 0:
		return record.KindDone
	case c.has&hasPing != 0:
		return record.KindComment
	case c.has&hasUsage != 0 && c.has&hasDelta == 0:
		return record.KindUsage
	case c.has&hasDelta != 0 && t.payloads == 0:
		return record.KindRole
	}
	return record.KindUnknown
}

// add appends an event to the record.
func (t *tally) add(kind record.Kind, e *Event, payload int) {
	ev := record.Event{
		At: t.q.instant(t.frag.at), Lag: t.frag.lag, Read: t.frag.read,
		Bytes: uint32(min(int64(payload), math.MaxUint32)), Kind: kind,
	}
	if e != nil && e.Emit > 0 {
		since := time.Duration(t.frag.at.UnixNano() - e.Emit) // by the wall clock of both, as it is now
		ev.Emit = t.q.instant(t.frag.at.Add(-since))
	}
	if kind.Payload() {
		if t.payloads > 0 && t.lastRead == ev.Read {
			t.rec.Flags |= record.FlagCoalesced
		}
		t.payloads++
		t.came += max(t.chunk.listed, 1)
		t.lastRead = ev.Read
		if t.chunk.listed > 0 {
			ev.Tokens = record.Tokens(t.chunk.listed)
		}
	}
	if kind == record.KindUnknown {
		t.strange++
	}
	if !kind.Payload() {
		if t.quiet++; t.quiet > maxQuiet && kind != record.KindDone && kind != record.KindError {
			return
		}
	}
	t.rec.Events = append(t.rec.Events, ev)
}

// inband records an error inside an answer.
func (t *tally) inband(raw []byte, e *Event) {
	t.failed = true
	t.add(record.KindError, e, 0)
	said := parseError(raw)
	t.rec.Code, t.rec.Detail = said.code, "error inside the answer: "+said.message
}

// onChunk takes over what a chunk says.
func (t *tally) onChunk(c *chunk) {
	t.seen |= c.seen
	t.finished |= c.finished
	if len(c.finish) > 0 {
		t.rec.Finish = finishReason(c.finish)
	}
	if c.has&hasInvalid != 0 {
		t.rec.Flags |= record.FlagInvalidUTF8
	}
	t.keep(&t.reasoning, c.reasoning)
	t.keep(&t.text, c.content)
	for i := range c.tools {
		t.onTool(&c.tools[i], i, len(c.tools))
	}
	t.rec.OutputBytes += int64(c.payload)
	t.hidden = t.hidden || c.has&hasHidden != 0
	t.onUsage(c)
	if t.t.KeepText > 0 {
		name(&t.model, c.model)
		name(&t.print, c.print)
	}
	if len(c.spent) > 0 {
		t.spent = append(t.spent, c.spent[:min(len(c.spent), maxSpent-len(t.spent))]...)
	}
	if len(c.timings) > 0 && len(c.timings) <= 8<<10 {
		t.timings = append(t.timings[:0], c.timings...)
	}
}

// name keeps the first raw value that is there, up to a bound.
func name(to *[]byte, raw []byte) {
	if len(*to) == 0 && len(raw) > 0 && raw[0] == '"' && len(raw) <= 1<<10 {
		*to = append(*to, raw...)
	}
}

// finishReason returns the reason as a string; the usual ones cost no allocation.
func finishReason(b []byte) string {
	for _, usual := range [...]string{"stop", "length", "tool_calls", "content_filter"} {
		if string(b) == usual {
			return usual
		}
	}
	return printable(string(b))
}

// keep digests generated text, and keeps it up to the limit.
func (t *tally) keep(to *[]byte, piece []byte) {
	if len(piece) == 0 {
		return
	}
	t.digest.Write(piece)
	room := t.t.KeepText - t.kept
	if len(piece) > room {
		t.clipped = true
		for piece = piece[:max(room, 0)]; len(piece) > 0 && !validEnd(piece); {
			piece = piece[:len(piece)-1]
		}
		t.kept = t.t.KeepText
	} else {
		t.kept += len(piece)
	}
	*to = append(*to, piece...)
}

// onTool adds a piece of a tool call to its slot: by id, else by index, else by
// its place in the chunk.
func (t *tally) onTool(d *toolDelta, position, of int) {
	slot := t.slot(d, position, of)
	if slot < 0 {
		if len(t.tools) == maxTools {
			t.clipped = true
			return
		}
		t.tools = append(t.tools, toolCall{index: d.index})
		slot = len(t.tools) - 1
	}
	c := &t.tools[slot]
	if len(d.id) > 0 && c.id == "" {
		c.id = string(d.id)
	}
	if len(d.name) > 0 {
		t.digest.Write(d.name)
		c.name += string(d.name[:min(len(d.name), 1024)])
	}
	t.keep(&c.args, d.args)
}

func (t *tally) slot(d *toolDelta, position, of int) int {
	last := len(t.tools) - 1
	if d.whole {
		return -1
	}
	if len(d.id) > 0 {
		if i := slices.IndexFunc(t.tools, func(c toolCall) bool { return c.id == string(d.id) }); i >= 0 {
			return i
		}
	}
	if d.index >= 0 {
		for i := last; i >= 0; i-- {
			if t.tools[i].index != d.index {
				continue
			}
			if len(d.id) > 0 && t.tools[i].id != "" {
				return -1 // another call under a number that is taken
			}
			return i
		}
		return -1
	}
	switch {
	case len(d.id) > 0:
		return -1
	case of > 1 && position <= last:
		return position
	case of == 1 && last >= 0 && (len(d.name) == 0 || t.tools[last].name == ""):
		return last
	}
	return -1
}

// readBody reads a body that is not streamed, up to a limit.
func (t *tally) readBody(s stream, limit int64) error {
	for {
		f, err := s.next()
		if err == io.EOF {
			if t.frag.read == 0 {
				t.frag.at = time.Now()
			}
			t.rec.EOF = t.q.instant(t.frag.at)
			return nil
		}
		if err != nil {
			return err
		}
		t.frag = f
		if int64(len(t.body)+len(f.p)) > limit {
			return fail(record.BodyTooLarge, "an answer of more than %d bytes", limit)
		}
		t.body = append(t.body, f.p...)
	}
}

// onBody takes a whole answer as one payload event at its last byte.
func (t *tally) onBody() error {
	data := bytes.TrimSpace(t.body)
	if len(data) == 0 {
		return fail(record.EmptyOutput, "an answer without a body")
	}
	c := &t.chunk
	if err := t.d.read(c, nil, data); err != nil {
		return fail(record.Malformed, "a body that is no answer: %w", err)
	}
	if c.err != nil {
		t.inband(c.err, nil)
		return nil
	}
	if t.req.Stream {
		return fail(record.Malformed, "asked for a stream, got one JSON body; set stream: false for this server")
	}
	if c.seen == 0 {
		return fail(record.Malformed, "a JSON body without %s", t.d.missing)
	}
	t.onChunk(c)
	kind := t.kind(c)
	if !kind.Payload() {
		kind = record.KindUnknown
	}
	t.add(kind, nil, c.payload)
	return nil
}

// maxErrorBody bounds how much is read of a refusal.
const maxErrorBody = 64 << 10

// refused classes an answer whose status is not 2xx.
func (t *tally) refused(s stream, h head) error {
	outcome := record.HTTPOther
	switch h.status / 100 {
	case 4:
		outcome = record.HTTP4xx
	case 5:
		outcome = record.HTTP5xx
	}
	_ = t.readBody(s, maxErrorBody) // the status decides, whatever comes of the body
	var said serverError
	if len(t.body) > 0 {
		said = parseError(t.body)
	}
	t.rec.Code = said.code
	detail := fmt.Sprintf("HTTP %d", h.status)
	if h.status/100 == 3 {
		detail += ": redirects are not followed; give the final URL"
	}
	if h.retryAfter != "" {
		detail += " (retry-after: " + h.retryAfter + ")"
	}
	if said.message != "" {
		detail += ": " + strings.TrimSpace(said.message)
	}
	return &failure{outcome, errors.New(detail)}
}

// timingsOf reads an engine's own times: each number of a name in _ms, under
// its name without that.
func timingsOf(raw []byte) map[string]time.Duration {
	if len(raw) == 0 {
		return nil
	}
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	var out map[string]time.Duration
	for key, v := range m {
		name, ok := strings.CutSuffix(key, "_ms")
		ms, isNumber := v.(float64)
		if !ok || !isNumber || name == "" || len(name) > 64 || math.Abs(ms) > 1e12 || len(out) == 64 {
			continue
		}
		if out == nil {
			out = make(map[string]time.Duration)
		}
		out[printable(name)] = time.Duration(math.Round(ms * 1e6))
	}
	return out
}
