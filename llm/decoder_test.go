package llm

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// seen is what a decoder gave, for comparing.
type seen struct {
	Name, Data, ID string
	Emit           int64
	Comment, Tail  bool
}

// decode feeds the pieces, as reads 1, 2, … and returns everything.
func decodeAll(t testing.TB, limit int, pieces ...[]byte) (all []seen, reads []uint32, err error) {
	t.Helper()
	d := Decoder{Max: limit}
	yield := func(e *Event) error {
		all = append(all, seen{string(e.Name), string(e.Data), string(e.ID), e.Emit, e.Comment, e.Tail})
		reads = append(reads, e.Read)
		return nil
	}
	for i, p := range pieces {
		// The decoder may keep no reference to a chunk: spoil it afterwards.
		p = bytes.Clone(p)
		err = d.Feed(p, uint32(i+1), yield)
		for j := range p {
			p[j] = '#'
		}
		if err != nil {
			return all, reads, err
		}
	}
	return all, reads, d.End(uint32(len(pieces)), yield)
}

// naive decodes a whole stream with another algorithm: it normalises line ends,
// splits, and interprets each block. It is the oracle of the tests.
func naive(stream []byte) (all []seen) {
	s := strings.TrimPrefix(string(stream), "\ufeff")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(s, "\n")
	id := ""
	name, emit := "", int64(0)
	var data []string
	for i, line := range lines {
		partial := i == len(lines)-1 // no line end behind it
		if partial {
			if strings.HasPrefix(line, ":") || line == "" {
				line = "ignored"
			}
		} else if line == "" {
			if data != nil {
				all = append(all, seen{Name: name, Data: strings.Join(data, "\n"), ID: id, Emit: emit})
			}
			name, emit, data = "", 0, nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "":
			if number, ok := strings.CutPrefix(value, "emit "); ok && len(number) <= 19 && strings.Trim(number, "0123456789") == "" {
				if n, err := strconv.ParseInt(number, 10, 64); err == nil {
					emit = n
					continue
				}
			}
			all = append(all, seen{Data: value, ID: id, Comment: true})
		case "data":
			data = append(data, value)
		case "event":
			name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		}
	}
	if data != nil {
		all = append(all, seen{Name: name, Data: strings.Join(data, "\n"), ID: id, Emit: emit, Tail: true})
	}
	return all
}

func TestDecoderFollowsTheStandard(t *testing.T) {
	message := func(data ...string) (all []seen) {
		for _, d := range data {
			all = append(all, seen{Data: d})
		}
		return all
	}
	for _, tt := range []struct {
		name, in string
		want     []seen
	}{
		// Examples of the HTML standard, section 9.2.6.
		{"three lines", "data: YHOO\ndata: +2\ndata: 10\n\n", message("YHOO\n+2\n10")},
		{"empty data", "data\n\ndata\ndata\n\ndata:", []seen{{}, {Data: "\n"}, {Tail: true}}},
		{"space is optional", "data:test\n\ndata: test\n\n", message("test", "test")},
		{
			"ids", ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
			[]seen{{Data: "test stream", Comment: true}, {Data: "first event", ID: "1"}, {Data: "second event"}, {Data: " third event"}},
		},
		{"unfinished", "data: a\n\ndata: b\n", []seen{{Data: "a"}, {Data: "b", Tail: true}}},
		{"unfinished line", "data: a\n\ndata: b", []seen{{Data: "a"}, {Data: "b", Tail: true}}},
		{"unfinished comment", "data: a\n\n: b", message("a")},

		{"CRLF", "data: a\r\ndata: b\r\n\r\n", message("a\nb")},
		{"CR", "data: x\r\r", message("x")},
		{"CR and LF mixed", "data: a\r\ndata: b\n\n", message("a\nb")},
		{"LF CR is two ends", "data: a\n\rdata: b\n\n", message("a", "b")},
		{"mark dropped", "\ufeffdata: a\n\n", message("a")},
		{"one mark only", "\ufeff\ufeffdata: a\n\n", nil},
		{"later mark is content", "data: a\n\ndata: \ufeffb\n\n", message("a", "\ufeffb")},
		{"half a mark", "\xef\xbbdata: a\n\n", nil},
		{"half a mark alone", "\xef\xbb", nil},
		{"name without data", "event: x\n\ndata: a\n\n", message("a")},
		{"name", "event: error\ndata: a\n\ndata: b\n\n", []seen{{Name: "error", Data: "a"}, {Data: "b"}}},
		{"unknown field", "foo: bar\ndata: a\nfoo\n\n", message("a")},
		{"colons in data", "data: a: b\n\n", message("a: b")},
		{"id with NUL", "id: a\x00b\ndata: x\n\n", message("x")},
		{"emit", ": emit 17\ndata: a\n\ndata: b\n\n", []seen{{Data: "a", Emit: 17}, {Data: "b"}}},
		{"emit of an empty block", ": emit 17\n\ndata: b\n\n", message("b")},
		{"emit that is none", ": emit x\ndata: a\n\n", []seen{{Data: "emit x", Comment: true}, {Data: "a"}}},
		{"nothing", "", nil},
	} {
		got, _, err := decodeAll(t, 0, []byte(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(naive([]byte(tt.in)), got); diff != "" {
			t.Errorf("%s: the oracle differs (-oracle +got):\n%s", tt.name, diff)
		}
	}
}

func TestDecoderRetry(t *testing.T) {
	var d Decoder
	none := func(*Event) error { return nil }
	for _, tt := range []struct {
		in   string
		want time.Duration
	}{
		{"retry: 1500\n", 1500 * time.Millisecond},
		{"retry: 1.5\nretry: x\nretry:\n", 1500 * time.Millisecond},
		{"retry: 99999999999999\n", 24 * time.Hour},
	} {
		if err := d.Feed([]byte(tt.in), 1, none); err != nil || d.Retry() != tt.want {
			t.Errorf("%q: Retry() = %v, %v; want %v", tt.in, d.Retry(), err, tt.want)
		}
	}
}

// TestDecoderSplits cuts every stream of the corpus at every position, and
// byte by byte: the events are the same, and each has the read that completed it.
func TestDecoderSplits(t *testing.T) {
	for _, w := range wireRows() {
		stream := []byte(w.body)
		want, _, err := decodeAll(t, 0, stream)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(naive(stream), want); diff != "" {
			t.Errorf("%s: the oracle differs (-oracle +got):\n%s", w.name, diff)
		}
		if len(stream) > 4<<10 {
			continue
		}
		for cut := range len(stream) + 1 {
			got, reads, err := decodeAll(t, 0, stream[:cut], stream[cut:])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s cut at %d (-whole +cut):\n%s", w.name, cut, diff)
			}
			prefix, _, _ := decodeAll(t, 0, stream[:cut])
			for i, read := range reads {
				if i < len(prefix) && !prefix[i].Tail && read != 1 {
					t.Fatalf("%s cut at %d: event %d is of read %d, but the first read completed it", w.name, cut, i, read)
				}
			}
		}
		pieces := make([][]byte, len(stream))
		for i := range stream {
			pieces[i] = stream[i : i+1]
		}
		got, _, err := decodeAll(t, 0, pieces...)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s byte by byte: %v (-whole +bytes):\n%s", w.name, err, diff)
		}
	}
}

// TestDecoderLimit holds that an event of the limit passes, one byte more does
// not, however it is cut, and that memory stays below twice the limit.
func TestDecoderLimit(t *testing.T) {
	for _, limit := range []int{16, 65_536, 1 << 20} {
		for _, extra := range []int{-1, 0, 1} {
			line := "data:" + strings.Repeat("x", limit+extra-5)
			for _, piece := range []int{len(line) + 2, 1 + limit/3, 4096} {
				var pieces [][]byte
				for rest := []byte(line + "\n\n"); len(rest) > 0; {
					n := min(piece, len(rest))
					pieces = append(pieces, rest[:n])
					rest = rest[n:]
				}
				_, _, err := decodeAll(t, limit, pieces...)
				if tooLarge := errors.Is(err, ErrEventTooLarge); tooLarge != (extra > 0) {
					t.Errorf("a line of %d bytes in pieces of %d, limit %d: %v", len(line), piece, limit, err)
				}
			}
		}
	}
	// All that is allocated on the way, kept or not, is twice the limit.
	var before, after runtime.MemStats
	line := []byte("data:" + strings.Repeat("x", DefaultMaxEvent))
	runtime.ReadMemStats(&before)
	var d Decoder
	var err error
	for p := line; len(p) > 0 && err == nil; p = p[min(len(p), readBuffer):] {
		err = d.Feed(p[:min(len(p), readBuffer)], 1, func(*Event) error { return nil })
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrEventTooLarge) || used > 2*DefaultMaxEvent+1<<20 {
		t.Errorf("%v after allocating %d bytes, want less than twice %d", err, used, DefaultMaxEvent)
	}
	// The data of several lines counts together.
	half := "data:" + strings.Repeat("x", 40) + "\n"
	if _, _, err := decodeAll(t, 80, []byte(half+half+"\n")); !errors.Is(err, ErrEventTooLarge) {
		t.Errorf("two lines of 40 bytes, limit 80: %v, want %v", err, ErrEventTooLarge)
	}
	if _, _, err := decodeAll(t, 81, []byte(half+half+"\n")); err != nil {
		t.Errorf("two lines of 40 bytes, limit 81: %v", err)
	}
}

func TestDecoderErrorStays(t *testing.T) {
	var d Decoder
	mine := errors.New("mine")
	n := 0
	for range 2 {
		if err := d.Feed([]byte("data: a\n\ndata: b\n\n"), 1, func(*Event) error { n++; return mine }); err != mine {
			t.Errorf("Feed = %v, want %v", err, mine)
		}
	}
	if err := d.End(1, func(*Event) error { n++; return nil }); err != mine || n != 1 {
		t.Errorf("End = %v after %d events, want %v after 1", err, n, mine)
	}
}

func TestDecoderDoesNotAllocate(t *testing.T) {
	stream := []byte(strings.Repeat(": emit 1790000000000000000\n"+vllmChunk+": ping\n\n", 20))
	var d Decoder
	events := 0
	yield := func(e *Event) error { events++; return nil }
	feed := func() {
		d.Reset()
		for p := stream; len(p) > 0; {
			n := min(1000, len(p)) // cuts events
			if err := d.Feed(p[:n], 1, yield); err != nil {
				t.Fatal(err)
			}
			p = p[n:]
		}
	}
	feed()
	if n := testing.AllocsPerRun(100, feed); n != 0 {
		t.Errorf("%v allocations for %d events, want 0", n, 40)
	}
}

// TestDecoderTakesLinearTime feeds what makes a decoder that looks for the
// nearest line end again and again quadratic: 40 MB would take minutes.
func TestDecoderTakesLinearTime(t *testing.T) {
	for _, unit := range []string{"\r", ":\r", "a\r", "data:\r", "\n", "a\n\r"} {
		chunk := bytes.Repeat([]byte(unit), 4<<20/len(unit))
		var d Decoder
		start := time.Now()
		if err := d.Feed(chunk, 1, func(*Event) error { return nil }); err != nil && !errors.Is(err, ErrEventTooLarge) {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%d bytes of %q took %v", len(chunk), unit, took)
		}
	}
}

// alphabet of the random streams: every byte and word that means something.
var alphabet = []string{
	"\r", "\n", "\r\n", ":", " ", "data", "data:", "data: ", "event: ", "id:", "retry: 5", ": emit 12", "\ufeff", "\xef", "\xbb\xbf",
	"\x00", "a", "中", "\xe4", "[DONE]", "data: x\n\n", "data: x\r\n\r\n", `{"choices":[{"delta":{"content":"a"}}]}`, "dat", "a:",
}

func randomStream(rng *rand.Rand, size int) []byte {
	b := make([]byte, 0, size+64)
	for len(b) < size {
		b = append(b, alphabet[rng.IntN(len(alphabet))]...)
	}
	return b
}

// TestDecoderDifferential compares random streams, whole and cut at random, with
// the oracle. ASSAY_SLOW=1 compares a thousand million bytes.
func TestDecoderDifferential(t *testing.T) {
	total := int64(20_000_000)
	if os.Getenv("ASSAY_SLOW") != "" {
		total = 1_000_000_000
	}
	if raceEnabled {
		total /= 20
	}
	seed := uint64(20_260_731)
	rng := rand.New(rand.NewPCG(seed, 0))
	var done, streams, events, differences int64
	var d, whole Decoder
	var got, uncut, want digester
	for done < total {
		stream := randomStream(rng, 1+rng.IntN(3000))
		done += int64(len(stream))
		streams++
		uncut.reset()
		whole.Reset()
		if err := errors.Join(whole.Feed(stream, 1, uncut.yield), whole.End(1, uncut.yield)); err != nil {
			t.Fatal(err)
		}
		got.reset()
		d.Reset()
		for p := stream; len(p) > 0; {
			n := 1 + rng.IntN(min(len(p), 1+rng.IntN(400)))
			if err := d.Feed(p[:n], 1, got.yield); err != nil {
				t.Fatal(err)
			}
			p = p[n:]
		}
		if err := d.End(1, got.yield); err != nil {
			t.Fatal(err)
		}
		events += got.n
		want.reset()
		for _, e := range naive(stream) {
			fold(&want, e.Name, e.Data, e.ID, e.Emit, e.Comment, e.Tail)
		}
		if got.sum != uncut.sum || got.n != uncut.n || got.sum != want.sum || got.n != want.n {
			if differences++; differences < 4 {
				t.Errorf("seed %d, stream %d: cut, whole and oracle differ for %q", seed, streams, stream)
			}
		}
	}
	t.Logf("%d bytes in %d streams, %d events, %d differences", done, streams, events, differences)
}

// digester folds events into a number (FNV-1a).
type digester struct {
	sum   uint64
	n     int64
	yield func(*Event) error
}

func (d *digester) reset() {
	d.sum, d.n = 14695981039346656037, 0
	if d.yield == nil {
		d.yield = func(e *Event) error {
			fold(d, e.Name, e.Data, e.ID, e.Emit, e.Comment, e.Tail)
			return nil
		}
	}
}

func fold[T string | []byte](d *digester, name, data, id T, emit int64, comment, tail bool) {
	d.n++
	for _, s := range [...]T{name, data, id} {
		d.sum = (d.sum ^ uint64(len(s))) * 1099511628211
		for i := range len(s) {
			d.sum = (d.sum ^ uint64(s[i])) * 1099511628211
		}
	}
	for _, b := range [...]bool{comment, tail} {
		if b {
			d.sum++
		}
		d.sum *= 1099511628211
	}
	d.sum = (d.sum ^ uint64(emit)) * 1099511628211
}

func FuzzDecoder(f *testing.F) {
	for _, w := range wireRows() {
		if len(w.body) < 4<<10 {
			f.Add([]byte(w.body), uint64(1))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		f.Add(randomStream(rng, 60), rng.Uint64())
	}
	f.Fuzz(func(t *testing.T, stream []byte, cuts uint64) {
		want := naive(stream)
		rng := rand.New(rand.NewPCG(cuts, 0))
		var pieces [][]byte
		for p := stream; len(p) > 0; {
			n := 1 + rng.IntN(len(p))
			pieces = append(pieces, p[:n])
			p = p[n:]
		}
		got, _, err := decodeAll(t, 0, pieces...)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q in %d pieces: %v (-oracle +got):\n%s", stream, len(pieces), err, diff)
		}
	})
}
