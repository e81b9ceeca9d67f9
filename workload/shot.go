package workload

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// Shot is one planned request. Its Messages and Labels may be shared with other
// shots and are read-only; the rest is the holder's own.
type Shot struct {
	Index    int64 // in its phase of the plan, from 0
	Workload string
	Phase    record.Phase

	Due   time.Duration // open loop: offset from the workload's start
	User  int           // closed loop: virtual user, from 0
	Think time.Duration // closed loop, and later turns of sessions: wait after the previous answer; for a user's first shot, after the start

	Session string // of Spec.Sessions, else the user of a closed loop; "" in an open loop, where each shot is a session of its own
	Turn    int    // position in the session, from 0
	Turns   int    // planned turns of the session; 0 without Spec.Sessions
	History bool   // Messages go on with the session's dialogue, which is sent before them
	Tenant  string

	Case     string           // id of the case in its set, or of the synthetic prompt
	Messages []corpus.Message // what is asked; exclusive with Prompt
	Prompt   string           // what is asked, when the case is a bare text for completions

	Jitter time.Duration // how long after its due instant the request is sent, as by a slow uplink
	Cancel Cut           // when the client hangs up

	MaxTokens   int64 // limit of output tokens; 0: the server's default
	IgnoreEOS   bool
	Stream      bool
	Temperature *float64 // nil: the server's default
	Seed        int64    // sampling seed of this request, from 0 to 2³¹−1
	Priority    int64    // for engines that schedule by it, lower first; 0: none
	Labels      map[string]string
}

// AppendBinary appends the canonical encoding: every field in order, numbers as
// varints, texts and lists after their length. Two shots have one encoding if
// and only if they are equal. The error is always nil.
func (s Shot) AppendBinary(b []byte) ([]byte, error) {
	text := func(t string) {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	flag := func(f bool) {
		if f {
			b = append(b, 1)
			return
		}
		b = append(b, 0)
	}
	version := byte(1) // of the encoding; 2 has more at its end
	if s.Turns != 0 || s.History || s.Cancel != (Cut{}) || s.Jitter != 0 || s.Priority != 0 {
		version = 2
	}
	b = append(b, version)
	b = binary.AppendVarint(b, s.Index)
	text(s.Workload)
	b = append(b, byte(s.Phase))
	b = binary.AppendVarint(b, int64(s.Due))
	b = binary.AppendVarint(b, int64(s.User))
	b = binary.AppendVarint(b, int64(s.Think))
	text(s.Session)
	b = binary.AppendVarint(b, int64(s.Turn))
	text(s.Tenant)
	text(s.Case)
	b = binary.AppendUvarint(b, uint64(len(s.Messages)))
	for _, m := range s.Messages {
		text(m.Role)
		text(m.Content)
	}
	text(s.Prompt)
	b = binary.AppendVarint(b, s.MaxTokens)
	flag(s.IgnoreEOS)
	flag(s.Stream)
	flag(s.Temperature != nil)
	if s.Temperature != nil {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(*s.Temperature))
	}
	b = binary.AppendVarint(b, s.Seed)
	b = binary.AppendUvarint(b, uint64(len(s.Labels)))
	if len(s.Labels) > 0 {
		for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
			text(k)
			text(s.Labels[k])
		}
	}
	if version > 1 {
		b = binary.AppendVarint(b, int64(s.Turns))
		flag(s.History)
		text(string(s.Cancel.When))
		b = binary.AppendVarint(b, s.Cancel.Tokens)
		b = binary.AppendVarint(b, int64(s.Cancel.After))
		b = binary.AppendVarint(b, int64(s.Jitter))
		b = binary.AppendVarint(b, s.Priority)
	}
	return b, nil
}
