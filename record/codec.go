package record

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Validate returns why the record cannot be kept: a value that is not a finite
// number, a phase that does not exist, more than 2^20 events. All that is wrong
// is reported at once.
func (r *Record) Validate() error {
	var faults []error
	for key, v := range r.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			faults = append(faults, fmt.Errorf("value %q is %v: leave out what is not known", key, v))
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if r.Phase > WarmUp {
		faults = append(faults, fmt.Errorf("phase %d does not exist", r.Phase))
	}
	if len(r.Events) > maxEvents {
		faults = append(faults, fmt.Errorf("%d events are more than %d", len(r.Events), maxEvents))
	}
	return errors.Join(faults...)
}

// encoder turns records into the payload of a frame. It keeps its scratch space,
// so that encoding does not allocate. The zero encoder is ready.
type encoder struct {
	column []byte
	keys   []string
}

// appendRecord appends the record's canonical encoding: protobuf wire format,
// fields in a fixed order, maps in the order of their keys, what is zero left
// out. Text that is not UTF-8 has its bad bytes replaced by U+FFFD; a negative
// Instant or Count is what it means: none.
func (e *encoder) appendRecord(b []byte, r *Record) []byte {
	for i := range intFields {
		if v := intFields[i].get(r); v != 0 || i == 0 { // the first is always there: no payload is empty
			b = protowire.AppendTag(b, intFields[i].num, protowire.VarintType)
			b = protowire.AppendVarint(b, protowire.EncodeZigZag(v))
		}
	}
	for i := range textFields {
		if s := *textFields[i].of(r); s != "" {
			b = appendText(b, textFields[i].num, s)
		}
	}
	for i := range instantFields {
		b = appendPositive(b, instantFields[i].num, int64(*instantFields[i].of(r)))
	}
	for i := range countFields {
		b = appendPositive(b, countFields[i].num, int64(*countFields[i].of(r)))
	}
	b = e.appendMaps(b, r)
	return e.appendEvents(b, r)
}

func (e *encoder) appendMaps(b []byte, r *Record) []byte {
	for _, key := range sortedKeys(e, r.Server) {
		e.column = protowire.AppendTag(appendText(e.column[:0], 1, key), 2, protowire.VarintType)
		e.column = protowire.AppendVarint(e.column, protowire.EncodeZigZag(int64(r.Server[key])))
		b = e.flush(b, fieldServer)
	}
	for _, key := range sortedKeys(e, r.Labels) {
		e.column = appendText(appendText(e.column[:0], 1, key), 2, r.Labels[key])
		b = e.flush(b, fieldLabels)
	}
	for _, key := range sortedKeys(e, r.Values) {
		e.column = protowire.AppendTag(appendText(e.column[:0], 1, key), 2, protowire.Fixed64Type)
		e.column = protowire.AppendFixed64(e.column, math.Float64bits(r.Values[key]))
		b = e.flush(b, fieldValues)
	}
	return b
}

func sortedKeys[V any](e *encoder, m map[string]V) []string {
	e.keys = e.keys[:0]
	for key := range m {
		e.keys = append(e.keys, key)
	}
	slices.Sort(e.keys)
	return e.keys
}

func appendText(b []byte, num protowire.Number, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendPositive(b []byte, num protowire.Number, v int64) []byte {
	if v <= 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
}

// wireTypes has the wire type of each field that this version knows.
var wireTypes = func() map[protowire.Number]protowire.Type {
	types := make(map[protowire.Number]protowire.Type)
	for _, f := range textFields {
		types[f.num] = protowire.BytesType
	}
	for _, f := range intFields {
		types[f.num] = protowire.VarintType
	}
	for _, f := range instantFields {
		types[f.num] = protowire.VarintType
	}
	for _, f := range countFields {
		types[f.num] = protowire.VarintType
	}
	for num := fieldServer; num <= fieldValues; num++ {
		types[num] = protowire.BytesType
	}
	for num := fieldEventAt; num <= fieldEventEmit; num++ {
		types[num] = protowire.BytesType
	}
	return types
}()

// decoder reads payloads. It shares equal short texts between records, since a
// run has few variants, workloads and outcomes. The zero decoder is ready.
type decoder struct {
	texts   map[string]string
	unknown bool // a payload had fields that this version does not know
}

// text returns b as a string, the same one for the same bytes while there are few.
func (d *decoder) text(b []byte) string {
	if len(b) > 64 {
		return string(b)
	}
	if s, ok := d.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	if d.texts == nil {
		d.texts = make(map[string]string)
	}
	if len(d.texts) < 1024 {
		d.texts[s] = s
	}
	return s
}

// record decodes a payload. Fields that this version does not know are skipped;
// a known field of the wrong type or out of range is an error, so that no number
// is ever read as another.
func (d *decoder) record(b []byte, r *Record) error {
	*r = Record{}
	var columns eventColumns
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		want, known := wireTypes[num]
		if known && typ != want {
			return fmt.Errorf("field %d has wire type %d, not %d", num, typ, want)
		}
		n = protowire.ConsumeFieldValue(num, typ, b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		value := b[:n]
		b = b[n:]
		var err error
		switch {
		case !known:
			d.unknown = true
		case typ == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(value)
			err = setNumber(r, num, v)
		default:
			v, _ := protowire.ConsumeBytes(value)
			err = d.setBytes(r, &columns, num, v)
		}
		if err != nil {
			return err
		}
	}
	return columns.events(r)
}

func setNumber(r *Record, num protowire.Number, v uint64) error {
	for i := range intFields {
		if f := &intFields[i]; f.num == num {
			n := protowire.DecodeZigZag(v)
			if err := f.check(n); err != nil {
				return err
			}
			f.set(r, n)
			return nil
		}
	}
	if v == 0 || v > math.MaxInt64 {
		return fmt.Errorf("field %d is out of range", num)
	}
	for i := range instantFields {
		if instantFields[i].num == num {
			*instantFields[i].of(r) = Instant(v)
			return nil
		}
	}
	for i := range countFields {
		if countFields[i].num == num {
			*countFields[i].of(r) = Count(v)
			return nil
		}
	}
	panic("record: a known number has no field")
}

func (d *decoder) setBytes(r *Record, columns *eventColumns, num protowire.Number, v []byte) error {
	switch {
	case num >= fieldEventAt:
		columns[num-fieldEventAt] = v
		return nil
	case num >= fieldServer:
		return d.setEntry(r, num, v)
	}
	for i := range textFields {
		if textFields[i].num == num {
			if !utf8.Valid(v) {
				return fmt.Errorf("%s is not UTF-8", textFields[i].name)
			}
			*textFields[i].of(r) = d.text(v)
			return nil
		}
	}
	panic("record: a known text has no field")
}

// setEntry decodes one entry of a map: a key and a value, both there.
func (d *decoder) setEntry(r *Record, num protowire.Number, b []byte) error {
	bad := func() error { return fmt.Errorf("an entry of field %d is broken", num) }
	tag, typ, n := protowire.ConsumeTag(b)
	if n < 0 || tag != 1 || typ != protowire.BytesType {
		return bad()
	}
	raw, m := protowire.ConsumeBytes(b[n:])
	if m < 0 || !utf8.Valid(raw) {
		return bad()
	}
	key, b := d.text(raw), b[n+m:]
	tag, typ, n = protowire.ConsumeTag(b)
	if n < 0 || tag != 2 {
		return bad()
	}
	b = b[n:]
	switch {
	case num == fieldServer && typ == protowire.VarintType:
		v, n := protowire.ConsumeVarint(b)
		if n != len(b) {
			return bad()
		}
		put(&r.Server, key, time.Duration(protowire.DecodeZigZag(v)))
	case num == fieldLabels && typ == protowire.BytesType:
		v, n := protowire.ConsumeBytes(b)
		if n != len(b) || !utf8.Valid(v) {
			return bad()
		}
		put(&r.Labels, key, d.text(v))
	case num == fieldValues && typ == protowire.Fixed64Type:
		v, n := protowire.ConsumeFixed64(b)
		f := math.Float64frombits(v)
		if n != len(b) || math.IsNaN(f) || math.IsInf(f, 0) {
			return bad()
		}
		put(&r.Values, key, f)
	default:
		return bad()
	}
	return nil
}

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}
