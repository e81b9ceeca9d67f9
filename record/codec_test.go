package record

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

func TestRecordsComeBackAlikeFromJournalAndTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []Record
		for range rapid.IntRange(0, 4).Draw(t, "records") {
			records = append(records, anyRecord(t))
		}
		d := newDisk(1)
		w, err := Create(d, "run")
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			if err := w.Append(&records[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		before, repair, err := ReadAll(d, "run")
		if err != nil || repair != (Repair{}) {
			t.Fatal(repair, err)
		}
		if err := w.Seal(); err != nil {
			t.Fatal(err)
		}
		after, repair, err := ReadAll(d, "run")
		if err != nil || repair != (Repair{}) {
			t.Fatal(repair, err)
		}
		if diff := diffRecords(normals(records), before); diff != "" {
			t.Fatalf("journal (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("journal and table differ:\n%s", diff)
		}
	})
}

func TestAppendRefusesWhatCannotBeKept(t *testing.T) {
	w, err := Create(newDisk(1), "run")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		r    Record
		want string
	}{
		{"NaN", Record{Values: map[string]float64{"bleu": math.NaN()}}, `value "bleu" is NaN`},
		{"Inf", Record{Values: map[string]float64{"ppl": math.Inf(1)}}, `value "ppl" is +Inf`},
		{"phase", Record{Phase: 2}, "phase 2 does not exist"},
		{"events", Record{Events: make([]Event, maxEvents+1)}, "1048577 events are more than 1048576"},
		{"size", Record{Detail: strings.Repeat("x", maxFrame)}, "bytes are more than"},
	} {
		if err := w.Append(&test.r); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Append = %v, want %q", test.name, err, test.want)
		}
	}
	if err := w.Append(&Record{}); err != nil {
		t.Errorf("a refused record tainted the run: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestDecoderSkipsWhatItDoesNotKnow(t *testing.T) {
	want := streams(1, 1, 5)[0]
	payload := new(encoder).appendRecord(nil, &want)
	payload = protowire.AppendVarint(protowire.AppendTag(payload, 1000, protowire.VarintType), 7)
	payload = protowire.AppendString(protowire.AppendTag(payload, 1001, protowire.BytesType), "later")
	payload = protowire.AppendFixed64(protowire.AppendTag(payload, 60, protowire.Fixed64Type), 7)
	var dec decoder
	var got Record
	if err := dec.record(payload, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if !dec.unknown {
		t.Error("the decoder does not say that it skipped fields")
	}
}

func TestDecoderRefusesBadContent(t *testing.T) {
	varint := func(num protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
	}
	packed := func(num protowire.Number, vs ...uint64) []byte {
		var column []byte
		for _, v := range vs {
			column = protowire.AppendVarint(column, v)
		}
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), column)
	}
	nibbles := func(column ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, fieldEventBytes, protowire.BytesType), column)
	}
	// two events, complete and right
	events := [][]byte{
		packed(fieldEventAt, 20, 2), packed(fieldEventKind, 2, 2), packed(fieldEventRead, 0, 2),
		nibbles(0x11), packed(fieldEventTokens, 0, 2), packed(fieldEventLag, 0, 5), packed(fieldEventEmit, 0, 3),
	}
	if err := new(decoder).record(bytes.Join(events, nil), new(Record)); err != nil {
		t.Fatal(err)
	}
	with := func(i int, column []byte) []byte {
		changed := append([][]byte(nil), events...)
		changed[i] = column
		return bytes.Join(changed, nil)
	}
	entry := func(num protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
	}
	key := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "k")
	nan := protowire.AppendFixed64(protowire.AppendTag(bytes.Clone(key), 2, protowire.Fixed64Type), math.Float64bits(math.NaN()))
	for name, payload := range map[string][]byte{
		"tag cut short":        {0x80},
		"field number zero":    {0x00, 0x01},
		"value cut short":      {0x08},
		"wrong wire type":      protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 1),
		"phase":                varint(4, protowire.EncodeZigZag(2)),
		"bool":                 varint(10, protowire.EncodeZigZag(2)),
		"flags":                varint(35, protowire.EncodeZigZag(1<<40)),
		"instant zero":         varint(20, 0),
		"instant too large":    varint(20, 1<<63),
		"not UTF-8":            protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "\xff"),
		"entry without value":  entry(fieldLabels, key),
		"entry without key":    entry(fieldLabels, nil),
		"entry of a NaN":       entry(fieldValues, nan),
		"entry of other type":  entry(fieldServer, nan),
		"no times":             with(0, nil),
		"too few times":        with(0, packed(fieldEventAt, 20)),
		"no kinds":             with(1, nil),
		"time before epoch":    with(0, packed(fieldEventAt, 1, 2)),
		"run too long":         with(1, packed(fieldEventKind, 2, 3)),
		"run of zero":          with(1, packed(fieldEventKind, 2, 0, 2, 2)),
		"run too short":        with(1, packed(fieldEventKind, 2, 1)),
		"run cut short":        with(1, packed(fieldEventKind, 2, 2, 2)),
		"read out of range":    with(2, packed(fieldEventRead, protowire.EncodeZigZag(-2), 2)),
		"size out of range":    with(3, nibbles(0x81, 0x88, 0x88, 0x88, 0x88, 0xc8, 0x00)),
		"sizes too short":      with(3, nibbles(0x91)),
		"sizes left over":      with(3, nibbles(0x11, 0x01)),
		"tokens out of range":  with(4, packed(fieldEventTokens, 1<<63, 2)),
		"lag out of range":     with(5, packed(fieldEventLag, 1<<63+1, 0)),
		"emit before epoch":    with(6, packed(fieldEventEmit, 0, protowire.EncodeZigZag(1<<40)+1)),
		"sizes without events": events[3],
	} {
		if err := new(decoder).record(payload, new(Record)); err == nil {
			t.Errorf("%s: decoded without an error", name)
		}
	}
}

func TestEventsTakeSixBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	size := func(change func(*Record)) float64 {
		bytes, events := 0, 0
		for shot := range int64(200) {
			r := stream(rng, shot, 200)
			change(&r)
			with := len(new(encoder).appendRecord(nil, &r))
			events += len(r.Events)
			r.Events = nil
			bytes += with - len(new(encoder).appendRecord(nil, &r))
		}
		return float64(bytes) / float64(events)
	}
	for _, test := range []struct {
		name   string
		change func(*Record)
		want   float64
	}{
		{"kernel stamps", func(*Record) {}, 6},
		{"no kernel stamps", func(r *Record) {
			for i := range r.Events {
				r.Events[i].Lag = -1
			}
		}, 4.5},
		{"ten times the jitter", func(r *Record) {
			for i := range r.Events {
				r.Events[i].Lag = -1
				r.Events[i].At += Instant(rng.Int64N(5e6))
			}
		}, 5.2},
	} {
		got := size(test.change)
		t.Logf("%s: %.2f bytes an event", test.name, got)
		if got > test.want {
			t.Errorf("%s: %.2f bytes an event, want at most %.1f", test.name, got, test.want)
		}
	}
}

func FuzzRecordDecode(f *testing.F) {
	for _, r := range streams(3, 5, 6) {
		f.Add(new(encoder).appendRecord(nil, &r))
	}
	full := Record{Shot: -1, Values: map[string]float64{"a": math.Copysign(0, -1), "b": 1e300}, Events: []Event{{At: 5, Emit: 9, Read: 7}, {At: 3, Lag: -1}}}
	f.Add(new(encoder).appendRecord(nil, &full))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var first, second Record
		if new(decoder).record(payload, &first) != nil {
			return
		}
		if err := first.Validate(); err != nil {
			t.Fatalf("decoded what may not be kept: %v", err)
		}
		once := new(encoder).appendRecord(nil, &first)
		if err := new(decoder).record(once, &second); err != nil {
			t.Fatalf("the canonical encoding does not decode: %v", err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("a round trip changes the record:\n%s", diff)
		}
		if twice := new(encoder).appendRecord(nil, &second); !bytes.Equal(once, twice) {
			t.Fatal("the canonical encoding is not")
		}
	})
}
