package record

import (
	"slices"
	"time"
)

// The signature of a stream that something between the engine and the client
// held back and passed on in pieces.
const (
	heldGap   = 200 * time.Microsecond // a shorter gap is no pace of an engine
	heldFirst = 0.8                    // one piece: the first event comes so late in the answer
	heldPiece = 8                      // several: so many events come in one, at the median event
)

// Held reports whether a completed stream arrived in one piece or a few, as
// behind a proxy that buffers it: its gaps are then those of the proxy's buffer
// and say nothing about the engine. More than half of its gaps are shorter than
// an engine's; and either the first event came when four fifths of the answer's
// time was over, or the pieces are of eight events and more while the gaps are
// an engine's on average. An engine that sends the few tokens of one step
// together is not taken for a proxy, nor one that is fast. ok is false where
// there is nothing to tell it by: fewer than two events with payload.
func (r *Record) Held() (held, ok bool) {
	first, last := r.First(), r.Last()
	if !r.Success() || !r.Stream || first == nil || first == last {
		return false, false
	}
	gaps, short := 0, 0
	pieces := []int{1} // events of each
	before := Instant(0)
	for i := range r.Events {
		e := &r.Events[i]
		if !e.Kind.Payload() {
			continue
		}
		if gap, has := e.At.Sub(before); has {
			gaps++
			if gap < heldGap {
				short++
				pieces[len(pieces)-1]++
			} else {
				pieces = append(pieces, 1)
			}
		}
		before = e.At
	}
	if 2*short <= gaps {
		return false, true
	}
	flow, _ := last.At.Sub(first.At)
	if len(pieces) > 1 && flow >= time.Duration(gaps)*heldGap && medianPiece(pieces, gaps+1) >= heldPiece {
		return true, true
	}
	whole, sent := last.At.Sub(r.Send)
	wait, _ := first.At.Sub(r.Send)
	return sent && whole > 0 && float64(wait) > heldFirst*float64(whole), true
}

// medianPiece returns the size of the piece in which the median event came.
func medianPiece(pieces []int, events int) int {
	slices.Sort(pieces)
	for _, n := range pieces {
		if events -= 2 * n; events <= 0 {
			return n
		}
	}
	return 0
}

// maxHeld is the share of held streams from which on their pace is not to be
// believed: one path of several may lead through a proxy.
const maxHeld = 0.1

// HeldBack reports whether more than a tenth of the streams that can tell were
// held back.
func HeldBack(records []*Record) bool {
	told, back := 0, 0
	for _, r := range records {
		held, ok := r.Held()
		if ok {
			told++
		}
		if held {
			back++
		}
	}
	return float64(back) > maxHeld*float64(told)
}
