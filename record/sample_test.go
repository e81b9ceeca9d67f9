package record

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// stream returns the record of one streamed answer of about n tokens, as a
// client with kernel stamps sees it: a step every 20 ms with a jitter of 0.5 ms.
func stream(rng *rand.Rand, shot int64, n int) Record {
	due := time.Duration(shot) * 5 * time.Millisecond
	r := Record{
		Shot: shot, Variant: []string{"baseline", "candidate"}[shot%2], Workload: "chat", Case: fmt.Sprintf("case-%d", shot%100),
		Block: int(shot / 100), Stream: true, MaxTokens: 128, PromptBytes: 2048 + rng.Int64N(500),
		Due: At(due), Admit: At(due + 3*time.Microsecond), Send: At(due + 90*time.Microsecond), Sent: At(due + 120*time.Microsecond),
		Header: At(due + 30*time.Millisecond), Reused: true,
		Outcome: OK, Status: 200, Finish: "stop",
		Prompt: Tokens(512), Output: Tokens(int64(n)), OutputBytes: int64(n) * 4,
		Body:   strings.Repeat("0123456789abcdef", 4),
		Labels: map[string]string{"tier": "gold"},
	}
	at := due + 31*time.Millisecond
	event := func(kind Kind, size uint32, tokens Count) {
		lag := time.Duration(8000 * math.Exp(0.4*rng.NormFloat64()))
		r.Events = append(r.Events, Event{At: At(at), Kind: kind, Read: uint32(len(r.Events)), Bytes: size, Tokens: tokens, Lag: lag})
	}
	event(KindRole, 0, 0)
	at += 100 * time.Millisecond
	for range n {
		event(KindContent, 1+uint32(rng.IntN(8)), Tokens(1))
		at += 20*time.Millisecond + time.Duration(rng.NormFloat64()*float64(500*time.Microsecond))
	}
	event(KindFinish, 0, 0)
	at += 100 * time.Microsecond
	event(KindUsage, 0, 0)
	at += 50 * time.Microsecond
	event(KindDone, 0, 0)
	r.EOF = At(at + 20*time.Microsecond)
	return r
}

// streams returns n records with answers of a few tokens.
func streams(seed uint64, n, tokens int) []Record {
	rng := rand.New(rand.NewPCG(seed, 1))
	records := make([]Record, n)
	for i := range records {
		records[i] = stream(rng, int64(i), rng.IntN(tokens+1))
	}
	return records
}

// anyText draws texts of all kinds, some of which are not UTF-8.
func anyText(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"chat", "ok", "\xff\xfe", "a\x00b", "Grüße 世界 \u202e"}), rapid.StringN(0, 20, -1)).Draw(t, label)
}

func anyInt(t *rapid.T, label string) int64 {
	return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 1000), rapid.SampledFrom([]int64{0, 1, math.MaxInt64, math.MinInt64})).Draw(t, label)
}

// anyRecord draws any record that may be kept.
func anyRecord(t *rapid.T) Record {
	r := Record{Phase: Phase(rapid.IntRange(0, 1).Draw(t, "phase"))}
	for _, f := range textFields {
		*f.of(&r) = anyText(t, f.name)
	}
	for _, f := range intFields {
		switch v := anyInt(t, f.name); f.name {
		case "phase":
		case "stream", "reused":
			f.set(&r, v&1)
		default:
			f.set(&r, v)
		}
	}
	for _, f := range instantFields {
		*f.of(&r) = Instant(anyInt(t, f.name))
	}
	for _, f := range countFields {
		*f.of(&r) = Count(anyInt(t, f.name))
	}
	key := rapid.OneOf(rapid.Just(""), rapid.StringN(0, 6, -1))
	r.Server = rapid.MapOfN(key, rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }), 0, 3).Draw(t, "server")
	r.Labels = rapid.MapOfN(key, rapid.StringN(0, 9, -1), 0, 3).Draw(t, "labels")
	r.Values = rapid.MapOfN(key, rapid.Float64(), 0, 3).Draw(t, "values")
	if rapid.Bool().Draw(t, "no labels") {
		r.Labels = nil
	}
	n := rapid.IntRange(0, 6).Draw(t, "events")
	for i := range n {
		r.Events = append(r.Events, Event{
			At: Instant(anyInt(t, "at")), Emit: Instant(anyInt(t, "emit")), Lag: time.Duration(anyInt(t, "lag")),
			Read: rapid.Uint32().Draw(t, "read"), Bytes: rapid.Uint32().Draw(t, "bytes"),
			Tokens: Count(anyInt(t, "tokens")), Kind: Kind(rapid.Uint8().Draw(t, "kind")),
		})
		if i > 0 && rapid.Bool().Draw(t, "alike") {
			r.Events[i].Lag, r.Events[i].Emit, r.Events[i].Tokens = r.Events[0].Lag, r.Events[0].Emit, r.Events[0].Tokens
		}
	}
	return r
}

// normal returns the record as both forms at rest give it back: what means the
// same is the same.
func normal(r Record) Record {
	text := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	for _, f := range textFields {
		*f.of(&r) = text(*f.of(&r))
	}
	for _, f := range instantFields {
		*f.of(&r) = max(*f.of(&r), 0)
	}
	for _, f := range countFields {
		*f.of(&r) = max(*f.of(&r), 0)
	}
	events := r.Events
	r.Events = nil
	for _, e := range events {
		e.At, e.Emit, e.Tokens = max(e.At, 0), max(e.Emit, 0), max(e.Tokens, 0)
		e.Lag = max(e.Lag, -1)
		if e.Kind >= kindCount {
			e.Kind = KindUnknown
		}
		r.Events = append(r.Events, e)
	}
	return r
}

func normals(records []Record) []Record {
	out := make([]Record, len(records))
	for i, r := range records {
		out[i] = normal(r)
	}
	return out
}

func diffRecords(want, got []Record) string {
	if reflect.DeepEqual(want, got) { // much faster
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

// journalOf returns the bytes of a journal, and the offset behind each record.
func journalOf(records []Record) (data []byte, ends []int64) {
	data = journalHeader()
	var e encoder
	for i := range records {
		frame := e.appendRecord(appendFrameHead(nil), &records[i])
		closeFrame(frame)
		data = append(data, frame...)
		ends = append(ends, int64(len(data)))
	}
	return data, ends
}

// sealed puts the records on a disk as a sealed run.
func sealed(tb testing.TB, records []Record) *disk {
	tb.Helper()
	d := newDisk(1)
	data, _ := journalOf(records)
	d.put("run/"+journalName, data)
	if err := Seal(d, "run"); err != nil {
		tb.Fatal(err)
	}
	return d
}
