package sim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"sync"
)

// ledgerLimit is how many requests the ledger remembers; older ones are dropped
// and counted.
const ledgerLimit = 1 << 20

// End says how a request ended, as the server saw it.
type End string

// The ends. EndOpen is a request that has not ended.
const (
	EndOpen     End = "open"
	EndComplete End = "complete" // a whole good answer was written, even if a fault delayed it or falsified its usage
	EndFault    End = "fault"    // spoilt on purpose; Fault says how
	EndRefused  End = "refused"  // answered with an error that the request or the load deserved
	EndLeft     End = "left"     // the client went away first
	EndStopped  End = "stopped"  // the engine was stopped first
)

// Entry is the server's own account of one request. Times are Unix nanoseconds;
// 0 did not happen.
type Entry struct {
	ID        string `json:"id"` // X-Request-ID, or sim-N if the client sent none
	API       string `json:"api,omitempty"`
	Stream    bool   `json:"stream"`
	Arrival   int64  `json:"arrival_ns"`
	First     int64  `json:"first_ns,omitempty"` // the first payload was written
	Last      int64  `json:"last_ns,omitempty"`  // the last payload was written
	Prompt    int64  `json:"prompt_tokens"`
	Cached    int64  `json:"cached_tokens"`
	Output    int64  `json:"output_tokens"`    // tokens of the part that was written, as usage counts them
	Reasoning int64  `json:"reasoning_tokens"` // part of Output
	Events    int64  `json:"events"`           // payload events written
	Bytes     int64  `json:"bytes"`            // of the body, as handed to the connection
	TextBytes int64  `json:"text_bytes"`       // of generated text, part of Bytes
	Status    int    `json:"status,omitempty"` // 0: no header was written
	Finish    Finish `json:"finish,omitempty"` // as written
	Fault     Fault  `json:"fault,omitempty"`  // drawn for the request
	End       End    `json:"end"`
}

// ledger keeps the entries in the order of arrival.
type ledger struct {
	limit int // entries kept; zero: ledgerLimit

	mu      sync.Mutex
	entries []Entry
	dropped int
}

// open enters a request and returns its number.
func (l *ledger) open(e Entry) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit := cmp.Or(l.limit, ledgerLimit); len(l.entries) >= limit {
		half := len(l.entries) / 2
		l.entries = append(l.entries[:0], l.entries[half:]...)
		l.dropped += half
	}
	e.End = EndOpen
	l.entries = append(l.entries, e)
	return l.dropped + len(l.entries) - 1
}

// close replaces the entry of a number by its final state.
func (l *ledger) close(number int, e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := number - l.dropped; i >= 0 {
		l.entries[i] = e
	}
}

func (l *ledger) copy() (entries []Entry, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Entry(nil), l.entries...), l.dropped
}

// Ledger returns the server's own account of every request so far, in the order
// of arrival; the last million is kept. An entry is final once its End is not
// EndOpen, which is after the last byte was written.
func (s *Server) Ledger() []Entry {
	entries, _ := s.ledger.copy()
	return entries
}

// serveLedger writes the ledger as JSON lines.
func (s *Server) serveLedger(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/jsonl")
	enc := json.NewEncoder(w)
	for _, e := range s.Ledger() {
		if enc.Encode(e) != nil {
			return // the reader is gone
		}
	}
}
