package record

import (
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// eventColumns holds the packed columns of a record's events, by field number
// from fieldEventAt. A stream of tokens is regular, so each column says only
// what it could not have been told from the event before:
//
//	at      the gap to the event before, less the expected one (zigzag); the first
//	        gap is counted from Due, see pace
//	kind    runs: value, length
//	read    runs: step from the read before less one (zigzag), length
//	bytes   one number an event in nibbles, the lower half of a byte first: three
//	        bits each, the lowest first, and the top bit says that more follow
//	tokens  runs: the Count, length
//	lag     nanoseconds plus one, 0 for unknown; left out when all are unknown
//	emit    0 for none, else At − Emit in zigzag plus one; left out when all are none
//
// In a steady stream the gap is within a millisecond of the expected: three bytes
// an event, two for a lag below 16 µs, a half for its size, nothing for the rest.
type eventColumns [fieldEventEmit - fieldEventAt + 1][]byte

// unknownLag is the one negative lag that is kept: negative means unknown.
const unknownLag time.Duration = -1

func (e *encoder) appendEvents(b []byte, r *Record) []byte {
	if len(r.Events) == 0 {
		return b
	}
	b = e.appendTimes(b, r)
	b = e.appendRuns(b, fieldEventKind, r.Events, func(i int) uint64 { return uint64(kept(r.Events[i].Kind)) })
	b = e.appendRuns(b, fieldEventRead, r.Events, func(i int) uint64 {
		before := uint32(0)
		if i > 0 {
			before = r.Events[i-1].Read
		}
		return protowire.EncodeZigZag(int64(r.Events[i].Read) - int64(before) - 1)
	})
	b = e.appendSizes(b, r)
	b = e.appendRuns(b, fieldEventTokens, r.Events, func(i int) uint64 { return uint64(max(r.Events[i].Tokens, 0)) })

	some := false
	e.column = e.column[:0]
	for i := range r.Events {
		lag := max(r.Events[i].Lag, unknownLag)
		some = some || lag != unknownLag
		e.column = protowire.AppendVarint(e.column, uint64(lag)+1)
	}
	if some {
		b = e.flush(b, fieldEventLag)
	}
	some = false
	e.column = e.column[:0]
	for i := range r.Events {
		v := uint64(0)
		if ev := &r.Events[i]; ev.Emit > 0 {
			v, some = protowire.EncodeZigZag(int64(max(ev.At, 0)-ev.Emit))+1, true
		}
		e.column = protowire.AppendVarint(e.column, v)
	}
	if some {
		b = e.flush(b, fieldEventEmit)
	}
	return b
}

func (e *encoder) appendTimes(b []byte, r *Record) []byte {
	e.column = e.column[:0]
	p := pace{last: int64(max(r.Due, 0))}
	for i := range r.Events {
		at := int64(max(r.Events[i].At, 0))
		e.column = protowire.AppendVarint(e.column, protowire.EncodeZigZag(at-p.next()))
		p.happened(at)
	}
	return e.flush(b, fieldEventAt)
}

// pace expects the next event after the mean of the gap before and of what was
// expected then, which is steadier than the gap before alone. Its arithmetic may
// wrap, for absurd times, and then wraps back when it is decoded.
type pace struct{ last, gap int64 }

func (p *pace) next() int64 { return p.last + p.gap }

func (p *pace) happened(at int64) {
	p.gap = (p.gap + at - p.last) / 2
	p.last = at
}

func (e *encoder) appendSizes(b []byte, r *Record) []byte {
	e.column = e.column[:0]
	half := false
	nibble := func(n byte) {
		if half = !half; half {
			e.column = append(e.column, n)
		} else {
			e.column[len(e.column)-1] |= n << 4
		}
	}
	for i := range r.Events {
		v := r.Events[i].Bytes
		for ; v > 7; v >>= 3 {
			nibble(byte(v&7) | 8)
		}
		nibble(byte(v))
	}
	return e.flush(b, fieldEventBytes)
}

// sizes decodes what appendSizes made.
func sizes(column []byte, events []Event) error {
	at := 0 // in nibbles
	for i := range events {
		v, more := uint64(0), true
		for shift := 0; more; shift += 3 {
			if at/2 >= len(column) || shift > 30 {
				return fmt.Errorf("event %d is out of range", i)
			}
			n := column[at/2] >> (4 * (at % 2)) & 15
			v |= uint64(n&7) << shift
			more = n > 7
			at++
		}
		if events[i].Bytes = uint32(v); v > math.MaxUint32 {
			return fmt.Errorf("event %d is out of range", i)
		}
	}
	if (at+1)/2 != len(column) {
		return fmt.Errorf("%d bytes for %d", len(column), (at+1)/2)
	}
	return nil
}

func (e *encoder) appendRuns(b []byte, num protowire.Number, events []Event, of func(i int) uint64) []byte {
	e.column = e.column[:0]
	for i := 0; i < len(events); {
		v, run := of(i), 1
		for i+run < len(events) && of(i+run) == v {
			run++
		}
		e.column = protowire.AppendVarint(protowire.AppendVarint(e.column, v), uint64(run))
		i += run
	}
	return e.flush(b, num)
}

func (e *encoder) flush(b []byte, num protowire.Number) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), e.column)
}

// kept returns the kind as it is kept: one that this version does not know is unknown.
func kept(k Kind) Kind {
	if k >= kindCount {
		return KindUnknown
	}
	return k
}

// events decodes the columns into r.Events. r.Due must be set before.
func (c *eventColumns) events(r *Record) error {
	if err := c.times(r); err != nil {
		return err
	}
	column := func(num protowire.Number) []byte { return c[num-fieldEventAt] }
	events := r.Events
	read := int64(0)
	for _, runs := range []struct {
		num protowire.Number
		set func(e *Event, v uint64) bool
	}{
		{fieldEventKind, func(e *Event, v uint64) bool {
			e.Kind = kept(Kind(min(v, math.MaxUint8)))
			return true
		}},
		{fieldEventRead, func(e *Event, v uint64) bool {
			read += protowire.DecodeZigZag(v) + 1
			e.Read = uint32(read)
			return read == int64(e.Read)
		}},
		{fieldEventTokens, func(e *Event, v uint64) bool {
			e.Tokens = Count(v)
			return v <= math.MaxInt64
		}},
	} {
		if err := eachRun(column(runs.num), events, runs.set); err != nil {
			return fmt.Errorf("events, field %d: %w", runs.num, err)
		}
	}
	if err := sizes(column(fieldEventBytes), events); err != nil {
		return fmt.Errorf("event sizes: %w", err)
	}
	for i := range events {
		events[i].Lag = unknownLag
	}
	if lags := column(fieldEventLag); lags != nil {
		if err := eachOne(lags, events, func(e *Event, v uint64) bool {
			e.Lag = time.Duration(v - 1)
			return v <= math.MaxInt64+1
		}); err != nil {
			return fmt.Errorf("event lags: %w", err)
		}
	}
	if emits := column(fieldEventEmit); emits != nil {
		if err := eachOne(emits, events, func(e *Event, v uint64) bool {
			if v > 0 {
				e.Emit = e.At - Instant(protowire.DecodeZigZag(v-1))
			}
			return v == 0 || e.Emit > 0
		}); err != nil {
			return fmt.Errorf("event emit times: %w", err)
		}
	}
	return nil
}

// times makes the events, one for each entry of the column of times.
func (c *eventColumns) times(r *Record) error {
	column := c[0]
	if column == nil {
		for i, other := range c {
			if other != nil {
				return fmt.Errorf("events: field %d without times", fieldEventAt+protowire.Number(i))
			}
		}
		return nil
	}
	n := 0
	for _, b := range column { // each varint ends in a byte below 0x80
		if b < 0x80 {
			n++
		}
	}
	if n == 0 || n > maxEvents {
		return fmt.Errorf("%d events", n)
	}
	r.Events = slices.Grow(r.Events[:0], n)[:n]
	p := pace{last: int64(r.Due)}
	err := eachOne(column, r.Events, func(e *Event, v uint64) bool {
		at := p.next() + protowire.DecodeZigZag(v)
		p.happened(at)
		e.At = Instant(at)
		return at >= 0
	})
	if err != nil {
		return fmt.Errorf("event times: %w", err)
	}
	return nil
}

// eachOne reads exactly one varint for each event.
func eachOne(column []byte, events []Event, set func(*Event, uint64) bool) error {
	for i := range events {
		v, n := protowire.ConsumeVarint(column)
		if n < 0 {
			return fmt.Errorf("event %d: %w", i, protowire.ParseError(n))
		}
		if column = column[n:]; !set(&events[i], v) {
			return fmt.Errorf("event %d is out of range", i)
		}
	}
	if len(column) > 0 {
		return fmt.Errorf("%d bytes left over", len(column))
	}
	return nil
}

// eachRun reads pairs of value and length that add up to exactly the events.
func eachRun(column []byte, events []Event, set func(*Event, uint64) bool) error {
	done := 0
	for len(column) > 0 {
		v, n := protowire.ConsumeVarint(column)
		if n < 0 {
			return protowire.ParseError(n)
		}
		run, m := protowire.ConsumeVarint(column[n:])
		if m < 0 {
			return protowire.ParseError(m)
		}
		column = column[n+m:]
		if run == 0 || run > uint64(len(events)-done) {
			return fmt.Errorf("a run of %d at event %d of %d", run, done, len(events))
		}
		for range run {
			if !set(&events[done], v) {
				return fmt.Errorf("event %d is out of range", done)
			}
			done++
		}
	}
	if done != len(events) {
		return fmt.Errorf("%d of %d events", done, len(events))
	}
	return nil
}
