package record

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Instant is a time point of one run on the run's monotonic clock: an offset
// from the run's epoch. The zero Instant means "did not happen"; it is not the
// epoch. Build one with At, read one with Offset or Sub.
type Instant int64 // nanoseconds since the epoch, plus one

// At returns the instant at the given offset from the epoch. Nothing of a run
// happens before its epoch: a negative offset is taken as 0.
func At(offset time.Duration) Instant { return Instant(max(offset, 0)) + 1 }

// Set reports whether the instant happened.
func (t Instant) Set() bool { return t > 0 }

// Offset returns the offset from the epoch; ok is false for the zero Instant.
func (t Instant) Offset() (offset time.Duration, ok bool) {
	if t <= 0 {
		return 0, false
	}
	return time.Duration(t - 1), true
}

// Sub returns t − u; ok is false when either did not happen.
func (t Instant) Sub(u Instant) (d time.Duration, ok bool) {
	if t <= 0 || u <= 0 {
		return 0, false
	}
	return time.Duration(t - u), true
}

// MarshalJSON writes the offset in nanoseconds, or null.
func (t Instant) MarshalJSON() ([]byte, error) { return Count(t).MarshalJSON() }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Instant) UnmarshalJSON(b []byte) error { return (*Count)(t).UnmarshalJSON(b) }

// Count is a number of tokens that may be unknown. The zero Count is unknown;
// it is not 0. Build one with Tokens, read one with N.
type Count int64 // the number plus one

// Tokens returns the known count n; a negative n gives the unknown count.
func Tokens(n int64) Count { return Count(max(n, -1)) + 1 }

// Known reports whether the count is known.
func (c Count) Known() bool { return c > 0 }

// N returns the count; ok is false when it is unknown.
func (c Count) N() (n int64, ok bool) {
	if c <= 0 {
		return 0, false
	}
	return int64(c - 1), true
}

// MarshalJSON writes the number, or null.
func (c Count) MarshalJSON() ([]byte, error) {
	n, ok := c.N()
	if !ok {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, n, 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Count) UnmarshalJSON(b []byte) error {
	*c = 0
	if string(b) == "null" {
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n < 0 || n == math.MaxInt64 {
		return fmt.Errorf("%.40q is neither a number from 0 on nor null", b)
	}
	*c = Tokens(n)
	return nil
}

// Kind says what an Event carried.
type Kind uint8

// The kinds of events. Content, Reasoning and Tool are payload: they carry
// generated output, and only they make a first token.
const (
	KindUnknown   Kind = iota // well formed, of no kind below
	KindRole                  // role or empty delta before the output
	KindContent               // answer text
	KindReasoning             // reasoning text
	KindTool                  // tool call name or arguments
	KindFinish                // finish_reason without payload
	KindUsage                 // token usage without payload
	KindError                 // error inside the stream
	KindComment               // keep-alive: comment, empty event, ping
	KindDone                  // [DONE]
	kindCount
)

var kindNames = [kindCount]string{"unknown", "role", "content", "reasoning", "tool", "finish", "usage", "error", "comment", "done"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if k >= kindCount {
		return "unknown"
	}
	return kindNames[k]
}

// Payload reports whether events of this kind carry generated output.
func (k Kind) Payload() bool { return k == KindContent || k == KindReasoning || k == KindTool }

// Event is one event of a streamed answer, or the single body of an unstreamed
// one. It keeps times and sizes, never text.
type Event struct {
	At     Instant       // when its last byte left the socket read, before parsing
	Emit   Instant       // when the server says that it wrote it (ground truth of the simulated engine); zero: it does not say
	Lag    time.Duration // At minus the kernel's receive stamp: the client's own delay; negative: unknown
	Read   uint32        // ordinal of the socket read that completed it: events of one read came together, their gaps carry no information
	Bytes  uint32        // length of the payload text in bytes
	Tokens Count         // output tokens in this event, when the server says so
	Kind   Kind
}

// Outcome is the one class in which a request ends. The zero Outcome means that
// it has not ended; only OK is success.
type Outcome string

// The outcomes. metrics.md 2.2 of the design; one request ends in exactly one.
const (
	OK Outcome = "ok" // 2xx, no error event, a well-formed terminal, at least one output token

	DNS             Outcome = "dns"                 // the name did not resolve
	Dial            Outcome = "dial"                // no connection
	TLS             Outcome = "tls"                 // handshake or certificate
	Write           Outcome = "write"               // the request could not be written
	HTTP4xx         Outcome = "http_4xx"            // Status has the code
	HTTP5xx         Outcome = "http_5xx"            // Status has the code
	HTTPOther       Outcome = "http_other"          // neither 2xx, 4xx nor 5xx
	ResetBefore     Outcome = "reset_before_first"  // connection lost before the first payload
	ResetMid        Outcome = "reset_mid_stream"    // connection lost after it
	Truncated       Outcome = "truncated_no_finish" // clean end without finish_reason or [DONE]
	ErrorEvent      Outcome = "error_event"         // an error inside a 200 answer
	Malformed       Outcome = "malformed_event"     // broken JSON, framing or protocol
	EventTooLarge   Outcome = "event_too_large"     // one event above the limit
	BodyTooLarge    Outcome = "body_too_large"      // the whole answer above the limit
	StallTimeout    Outcome = "stall_timeout"       // no byte for the stall limit
	TotalTimeout    Outcome = "total_timeout"       // not done by the deadline
	Goaway          Outcome = "goaway"              // HTTP/2 GOAWAY or refused stream
	ClientCancelled Outcome = "client_cancelled"    // as planned by the workload
	EmptyOutput     Outcome = "empty_output"        // finished, but no output
	LengthMismatch  Outcome = "length_mismatch"     // finish_reason length, but not the asked number of tokens

	Filtered Outcome = "content_filter" // a filter of the service refused the request or its answer: of a check, which asks for it to be told apart

	ClientOverload Outcome = "client_overload" // not sent: the client's cap on requests in flight was reached
	ClientFault    Outcome = "client_fault"    // the client's own failure: descriptors, memory, ports
	Interrupted    Outcome = "interrupted"     // not sent, or cut at the end of the drain, because the run was stopped
)

// Group is the part of the ledger that an outcome counts in:
// offered = completed + failed + dropped, exactly.
type Group uint8

// The groups of outcomes.
const (
	GroupFailed    Group = iota // answered wrongly, late or not at all; also the zero Outcome
	GroupCompleted              // success
	GroupDropped                // never given a fair try, for a reason of the client's own
)

// Group returns the part of the ledger that the outcome counts in.
func (o Outcome) Group() Group {
	switch o {
	case OK:
		return GroupCompleted
	case ClientOverload, ClientFault, Interrupted, ClientCancelled:
		return GroupDropped
	default:
		return GroupFailed
	}
}

// Flag marks something about a record that is not its outcome but that a reader
// of its numbers must know.
type Flag uint32

// The flags.
const (
	FlagNoDone            Flag = 1 << iota // one terminal of two: a stream without [DONE], a whole answer without finish_reason
	FlagUsageMissing                       // the server sent no usage
	FlagUsageInconsistent                  // usage contradicts itself or the text
	FlagTokensFromEvents                   // Output counts payload events, since the variant says so
	FlagCoalesced                          // two or more payload events in one read
	FlagRetried                            // sent twice: the reused connection failed before any byte
	FlagDelayedByCap                       // waited for the cap on requests in flight
	FlagShortOutput                        // stopped before the asked length although told to ignore the end of text
	FlagInvalidUTF8                        // output bytes that are not UTF-8
	FlagCancelPlanned                      // the workload planned to cancel it, whether or not it was still under way then
	FlagReissued                           // sent by a resumed run: when the run stopped, an earlier try was under way or may have been
	flagEnd
)

var flagNames = []string{"no_done", "usage_missing", "usage_inconsistent", "tokens_from_events", "coalesced", "retried", "delayed_by_cap", "short_output", "invalid_utf8", "cancel_planned", "reissued"}

// Names returns the names of the set flags, in a fixed order.
func (f Flag) Names() []string {
	var names []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Phase is the part of a run that a request belongs to.
type Phase uint8

// The phases. Only Measured counts.
const (
	Measured Phase = iota
	WarmUp
)

// String returns "measured" or "warm-up".
func (p Phase) String() string {
	if p == WarmUp {
		return "warm-up"
	}
	return "measured"
}

// Record is what became of one request. Every shot of a plan gives exactly one
// Record. A Record is plain data: whoever holds it owns it; it is not safe for
// concurrent writes. All instants are on the run's one monotonic clock.
type Record struct {
	// What was asked.
	Shot        int64  // index in the workload's plan, from 0; −1 for live traffic
	Variant     string // who served it
	Workload    string
	Phase       Phase
	Block       int    // which interleaved block of the run, from 0
	Case        string // id of the prompt
	Session     string // conversation or virtual user; the unit of independence
	Turn        int    // turn in the session, from 0
	Tenant      string
	Stream      bool
	MaxTokens   int64 // asked limit of output tokens; 0: the server's default
	PromptBytes int64 // bytes of prompt text sent

	Jitter time.Duration // how long the plan held the request back, as a slow uplink would; no lag of the client's

	// When. A request that never got so far has zero Instants.
	Due       Instant // intended arrival from the schedule (open loop), or the moment the virtual user became ready (closed loop)
	Admit     Instant // passed the client's cap on requests in flight
	ConnStart Instant // dial began; zero on a reused connection
	ConnEnd   Instant // dial and TLS done; zero on a reused connection
	Send      Instant // first byte of the request was written
	Sent      Instant // last byte of the request was written
	Header    Instant // response header parsed
	EOF       Instant // the answer's body ended, or the request was given up
	Reused    bool    // keep-alive connection
	Events    []Event // every event of the answer, in order of arrival; of a flood of keep-alives the first few thousand

	// How it ended.
	Outcome Outcome
	Status  int    // HTTP status; 0: no answer
	Code    string // the server's own error code, bounded and printable
	Detail  string // what went wrong, bounded and printable; never prompt, key or output text
	Finish  string // why the answer ended, in OpenAI's words (stop, length, tool_calls …) where the API has others; else as sent
	Flags   Flag

	// Tokens as the server counts them.
	Prompt    Count
	Output    Count
	Cached    Count // prompt tokens served from a prefix cache
	Reasoning Count // part of Output

	// Server timings that came with the answer, in the engine's own terms.
	Server map[string]time.Duration

	OutputBytes int64              // bytes of generated text
	Body        string             // hex SHA-256 of the generated text; "" if none
	Labels      map[string]string  // free dimensions of the workload
	Values      map[string]float64 // what checks found; a NaN is never stored
}

// Success reports whether the request completed.
func (r *Record) Success() bool { return r.Outcome == OK }

// OwnLag returns how late the client sent for reasons of its own: from the due
// instant to the first byte, less the wait for the cap (which has its own count),
// less the planned jitter and less dialling (which is the network's and the
// server's). It is what a
// certificate of the client judges; ok is false when nothing was sent.
func (r *Record) OwnLag() (lag time.Duration, ok bool) {
	if lag, ok = r.Send.Sub(r.Due); !ok {
		return 0, false
	}
	lag -= r.Jitter
	if wait, ok := r.Admit.Sub(r.Due); ok && r.Flags&FlagDelayedByCap != 0 {
		lag -= wait
	}
	if dial, ok := r.ConnEnd.Sub(r.ConnStart); ok && !r.Reused {
		lag -= dial
	}
	return max(lag, 0), true
}

// First returns the first payload event, or nil.
func (r *Record) First() *Event { return r.payload(0) }

// Second returns the second payload event, or nil.
func (r *Record) Second() *Event { return r.payload(1) }

// FirstAnswer returns the first payload event that is not reasoning, or nil.
func (r *Record) FirstAnswer() *Event {
	for i := range r.Events {
		if k := r.Events[i].Kind; k.Payload() && k != KindReasoning {
			return &r.Events[i]
		}
	}
	return nil
}

// Last returns the last payload event, or nil.
func (r *Record) Last() *Event {
	for i := len(r.Events) - 1; i >= 0; i-- {
		if r.Events[i].Kind.Payload() {
			return &r.Events[i]
		}
	}
	return nil
}

func (r *Record) payload(skip int) *Event {
	for i := range r.Events {
		if r.Events[i].Kind.Payload() {
			if skip == 0 {
				return &r.Events[i]
			}
			skip--
		}
	}
	return nil
}

// maxTokens bounds the tokens of one answer that are spread over its events. It
// is far above any real answer; a server that claims more is not believed.
const maxTokens = 1 << 22

// eventTokens returns the tokens of each payload event, in order: as the server
// said where it did, else the known total spread over the events in proportion
// to their bytes, at least one each (largest remainder, the earlier event first).
// ok is false when the total is unknown, smaller than the number of events or
// beyond belief.
func (r *Record) eventTokens() (tokens []int64, ok bool) {
	var sizes []uint64
	known, bytes, sum := true, uint64(0), int64(0)
	for i := range r.Events {
		e := &r.Events[i]
		if !e.Kind.Payload() {
			continue
		}
		k, has := e.Tokens.N()
		known = known && has && k > 0
		sum += min(k, maxTokens+1)
		tokens = append(tokens, k)
		sizes = append(sizes, uint64(e.Bytes))
		bytes += uint64(e.Bytes)
	}
	if known {
		return tokens, len(tokens) > 0 && sum <= maxTokens
	}
	total, has := r.Output.N()
	if !has || len(tokens) == 0 || total < int64(len(tokens)) || total > maxTokens {
		return nil, false
	}
	if bytes == 0 {
		for i := range sizes {
			sizes[i] = 1
		}
		bytes = uint64(len(sizes))
	}
	// Whole numbers throughout: spare·size is below 2^22·2^32.
	spare := uint64(total) - uint64(len(tokens))
	left := spare
	order := make([]int, len(tokens))
	for i := range tokens {
		whole := spare * sizes[i] / bytes
		tokens[i] = 1 + int64(whole)
		left -= whole
		order[i] = i
	}
	rest := func(i int) uint64 { return spare * sizes[i] % bytes }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest(b), rest(a)) })
	for _, i := range order[:left] {
		tokens[i]++
	}
	return tokens, true
}

// Window is a stretch of a run in which one variant was measured on one
// workload: from the block's first due instant to its end by the schedule.
type Window struct {
	Variant  string  `json:"variant"`
	Workload string  `json:"workload"`
	Block    int     `json:"block"`
	Start    Instant `json:"start_ns"`
	End      Instant `json:"end_ns"` // zero: the run was killed in it

	From time.Duration `json:"from_ns,omitempty"` // open loop: due offset in the plan at Start
	Cut  bool          `json:"cut,omitempty"`     // the block was not over at End: the run stopped, and a later window of the block goes on with it

	Unasked *Unasked `json:"unasked,omitempty"` // turns of sessions; nil: none, or there are no sessions
}

// Unasked counts the planned turns of sessions that were never due, since their
// session ended before: what was planned for a window is what was offered in it
// and these.
type Unasked struct {
	NoAnswer int64 `json:"no_answer"` // an earlier turn failed, was dropped, or gave no whole text to go on with
	Context  int64 `json:"context"`   // the dialogue reached its limit of tokens
	Over     int64 `json:"over"`      // the window, or the run, was over
}
