package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// columns is the schema of records.parquet: its fields are the file's columns,
// in the order that people see them. No value of it is ever made; the cells are
// read and written by the tables of fields.go, by name. An optional column
// is null where there is nothing to say.
type columns struct {
	Shot        int64  `parquet:"shot,delta"`
	Variant     string `parquet:"variant,dict"`
	Workload    string `parquet:"workload,dict"`
	Phase       string `parquet:"phase,dict"`
	Block       int64  `parquet:"block,delta"`
	Case        string `parquet:"case,optional,dict"`
	Session     string `parquet:"session,optional,dict"`
	Turn        int64  `parquet:"turn,delta"`
	Tenant      string `parquet:"tenant,optional,dict"`
	Stream      bool   `parquet:"stream"`
	MaxTokens   int64  `parquet:"max_tokens,delta"`
	PromptBytes int64  `parquet:"prompt_bytes,delta"`
	Jitter      int64  `parquet:"jitter_ns,delta"`

	Outcome string `parquet:"outcome,dict"`
	Status  int64  `parquet:"status,optional,delta"`
	Code    string `parquet:"code,optional,dict"`
	Detail  string `parquet:"detail,optional,dict"`
	Finish  string `parquet:"finish,optional,dict"`
	Flags   int64  `parquet:"flags,delta"`

	// Derived from the rest for people and their queries; never read back.
	TTFT        int64   `parquet:"ttft_ns,optional,delta"`
	TTFTService int64   `parquet:"ttft_service_ns,optional,delta"`
	TTFA        int64   `parquet:"ttfa_ns,optional,delta"`
	TTST        int64   `parquet:"ttst_ns,optional,delta"`
	TPOT        float64 `parquet:"tpot_ns,optional"`
	GapMax      int64   `parquet:"gap_max_ns,optional,delta"`
	E2E         int64   `parquet:"e2e_ns,optional,delta"`
	E2EService  int64   `parquet:"e2e_service_ns,optional,delta"`
	Lag         int64   `parquet:"lag_ns,optional,delta"`
	Connect     int64   `parquet:"connect_ns,optional,delta"`

	PromptTokens    int64 `parquet:"prompt_tokens,optional,delta"`
	OutputTokens    int64 `parquet:"output_tokens,optional,delta"`
	CachedTokens    int64 `parquet:"cached_tokens,optional,delta"`
	ReasoningTokens int64 `parquet:"reasoning_tokens,optional,delta"`

	Due       int64 `parquet:"due_ns,optional,delta"`
	Admit     int64 `parquet:"admit_ns,optional,delta"`
	ConnStart int64 `parquet:"conn_start_ns,optional,delta"`
	ConnEnd   int64 `parquet:"conn_end_ns,optional,delta"`
	Send      int64 `parquet:"send_ns,optional,delta"`
	Sent      int64 `parquet:"sent_ns,optional,delta"`
	Header    int64 `parquet:"header_ns,optional,delta"`
	EOF       int64 `parquet:"eof_ns,optional,delta"`
	Reused    bool  `parquet:"reused"`

	OutputBytes int64              `parquet:"output_bytes,delta"`
	Body        string             `parquet:"body,optional"`
	Server      map[string]int64   `parquet:"server_ns,optional" parquet-key:",dict"`
	Labels      map[string]string  `parquet:"labels,optional" parquet-key:",dict" parquet-value:",dict"`
	Values      map[string]float64 `parquet:"values,optional" parquet-key:",dict"`

	EventAt     []int64 `parquet:"event_at_ns,list,optional" parquet-element:",optional,delta"`
	EventKind   []int64 `parquet:"event_kind,list,optional" parquet-element:",dict"`
	EventRead   []int64 `parquet:"event_read,list,optional" parquet-element:",delta"`
	EventBytes  []int64 `parquet:"event_bytes,list,optional" parquet-element:",delta"`
	EventTokens []int64 `parquet:"event_tokens,list,optional" parquet-element:",optional,dict"`
	EventLag    []int64 `parquet:"event_lag_ns,list,optional" parquet-element:",optional,delta"`
	EventEmit   []int64 `parquet:"event_emit_ns,list,optional" parquet-element:",optional,delta"`
}

var tableSchema = parquet.SchemaOf(columns{})

// The keys of the file's own metadata.
const (
	metaSchema  = "assay.schema"  // tableVersion
	metaRecords = "assay.records" // how many
	metaDigest  = "assay.sha256"  // of the records' canonical encodings, each behind its length
	metaColumns = "assay.columns" // columnsDigest of the schema; the file's footer has no checksum of its own
	metaKinds   = "assay.event_kinds"

	tableVersion = "assay.records/1"
)

// columnsDigest sums the paths of a schema's columns: hex SHA-256.
func columnsDigest(s *parquet.Schema) string {
	h := sha256.New()
	for _, path := range s.Columns() {
		io.WriteString(h, strings.Join(path, "/")+"\n")
	}
	return hex.EncodeToString(h.Sum(nil))
}

// cells makes a row out of a record. Texts live in its arena until reset.
type cells struct {
	row   parquet.Row
	arena []byte
}

func (c *cells) null(column int) {
	c.row = append(c.row, parquet.Value{}.Level(0, 0, column))
}

func (c *cells) put(v parquet.Value, repetition, definition, column int) {
	c.row = append(c.row, v.Level(repetition, definition, column))
}

func (c *cells) text(s string) parquet.Value {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	from := len(c.arena)
	c.arena = append(c.arena, s...)
	return parquet.ByteArrayValue(c.arena[from:len(c.arena):len(c.arena)])
}

// leaf is one column at rest: how a record fills it, and how it fills a record.
type leaf struct {
	path []string
	put  func(c *cells, r *Record, column int)
	take func(t *taker, r *Record, values []parquet.Value) error // nil: derived, not read
}

// leaves are the columns of this version, in the order of tableSchema.
var leaves = func() []leaf {
	byPath := make(map[string]leaf)
	add := func(ls ...leaf) {
		for _, l := range ls {
			byPath[strings.Join(l.path, "/")] = l
		}
	}
	for i := range textFields {
		add(textLeaf(&textFields[i]))
	}
	for i := range intFields {
		add(intLeaf(&intFields[i]))
	}
	for i := range instantFields {
		of := instantFields[i].of
		add(positiveLeaf(instantFields[i].name, func(r *Record) *int64 { return (*int64)(of(r)) }))
	}
	for i := range countFields {
		of := countFields[i].of
		add(positiveLeaf(countFields[i].name, func(r *Record) *int64 { return (*int64)(of(r)) }))
	}
	for _, name := range []string{"ttft", "ttft.service", "ttfa", "ttst", "tpot", "gap.max", "e2e", "e2e.service", "lag", "connect"} {
		add(derivedLeaf(name))
	}
	add(mapLeaves("server_ns", func(r *Record) *map[string]time.Duration { return &r.Server },
		func(c *cells, d time.Duration) parquet.Value { return parquet.Int64Value(int64(d)) },
		func(t *taker, v parquet.Value) (time.Duration, bool) { return time.Duration(v.Int64()), true })...)
	add(mapLeaves("labels", func(r *Record) *map[string]string { return &r.Labels },
		func(c *cells, s string) parquet.Value { return c.text(s) },
		func(t *taker, v parquet.Value) (string, bool) {
			return t.text(v.ByteArray()), utf8.Valid(v.ByteArray())
		})...)
	add(mapLeaves("values", func(r *Record) *map[string]float64 { return &r.Values },
		func(c *cells, f float64) parquet.Value { return parquet.DoubleValue(f) },
		func(t *taker, v parquet.Value) (float64, bool) {
			f := v.Double()
			return f, !math.IsNaN(f) && !math.IsInf(f, 0)
		})...)
	for i := range eventFields {
		add(eventLeaf(&eventFields[i]))
	}

	var ordered []leaf
	for _, path := range tableSchema.Columns() {
		l, ok := byPath[strings.Join(path, "/")]
		if !ok {
			panic("record: no field fills the column " + strings.Join(path, "/"))
		}
		ordered = append(ordered, l)
	}
	if len(ordered) != len(byPath) {
		panic("record: a field has no column")
	}
	return ordered
}()

// definition returns the definition level of a value of a top-level column.
func definition(name string) int {
	l, ok := tableSchema.Lookup(name)
	if !ok {
		panic("record: no column " + name)
	}
	return l.MaxDefinitionLevel
}

func textLeaf(f *textField) leaf {
	level := definition(f.name)
	return leaf{
		path: []string{f.name},
		put: func(c *cells, r *Record, column int) {
			if s := *f.of(r); s == "" && level == 1 {
				c.null(column)
			} else {
				c.put(c.text(s), 0, level, column)
			}
		},
		take: func(t *taker, r *Record, values []parquet.Value) error {
			if b := values[0].ByteArray(); !values[0].IsNull() {
				*f.of(r) = t.text(b)
				if !utf8.Valid(b) {
					return errors.New("not UTF-8")
				}
			}
			return nil
		},
	}
}

func intLeaf(f *intField) leaf {
	level := definition(f.name)
	l := leaf{path: []string{f.name}}
	switch f.name {
	case "phase":
		l.put = func(c *cells, r *Record, column int) { c.put(c.text(r.Phase.String()), 0, 0, column) }
		l.take = func(t *taker, r *Record, values []parquet.Value) error {
			for _, p := range []Phase{Measured, WarmUp} {
				if string(values[0].ByteArray()) == p.String() {
					r.Phase = p
					return nil
				}
			}
			return fmt.Errorf("phase %q does not exist", values[0].ByteArray())
		}
	case "stream", "reused":
		l.put = func(c *cells, r *Record, column int) { c.put(parquet.BooleanValue(f.get(r) != 0), 0, 0, column) }
		l.take = func(t *taker, r *Record, values []parquet.Value) error {
			f.set(r, number(values[0].Boolean()))
			return nil
		}
	default:
		l.put = func(c *cells, r *Record, column int) {
			if v := f.get(r); v == 0 && level == 1 {
				c.null(column)
			} else {
				c.put(parquet.Int64Value(v), 0, level, column)
			}
		}
		l.take = func(t *taker, r *Record, values []parquet.Value) error {
			if values[0].IsNull() {
				return nil
			}
			v := values[0].Int64()
			f.set(r, v)
			return f.check(v)
		}
	}
	return l
}

// positiveLeaf is the column of an Instant or a Count: its number without the
// one that is added to tell 0 from none.
func positiveLeaf(name string, of func(*Record) *int64) leaf {
	return leaf{
		path: []string{name},
		put: func(c *cells, r *Record, column int) {
			if v := *of(r); v > 0 {
				c.put(parquet.Int64Value(v-1), 0, 1, column)
			} else {
				c.null(column)
			}
		},
		take: func(t *taker, r *Record, values []parquet.Value) error {
			if values[0].IsNull() {
				return nil
			}
			v := values[0].Int64()
			*of(r) = v + 1
			if v < 0 || v == math.MaxInt64 {
				return fmt.Errorf("%d is out of range", v)
			}
			return nil
		},
	}
}

// derivedLeaf is the column of a metric of the catalogue, asked as the catalogue
// asks: of completed records only.
func derivedLeaf(metric string) leaf {
	name := strings.ReplaceAll(metric, ".", "_") + "_ns"
	m, ok := Find(metric)
	if !ok {
		panic("record: no metric " + metric)
	}
	column, _ := tableSchema.Lookup(name)
	whole := column.Node.Type().Kind() == parquet.Int64
	return leaf{
		path: []string{name},
		put: func(c *cells, r *Record, column int) {
			var one [1]float64
			var values []float64
			if r.Success() {
				values = m.Values(r, one[:0])
			}
			switch {
			case len(values) == 0:
				c.null(column)
			case whole:
				c.put(parquet.Int64Value(int64(values[0])), 0, 1, column)
			default:
				c.put(parquet.DoubleValue(values[0]), 0, 1, column)
			}
		},
	}
}

// mapLeaves are the two columns of a map; a map without entries is null.
func mapLeaves[V any](name string, of func(*Record) *map[string]V, value func(*cells, V) parquet.Value, take func(*taker, parquet.Value) (V, bool)) []leaf {
	each := func(c *cells, r *Record, column int, of func(key string) parquet.Value, keys []string) {
		if len(keys) == 0 {
			c.null(column)
		}
		for i, key := range keys {
			c.put(of(key), min(i, 1), 2, column)
		}
	}
	return []leaf{
		{
			path: []string{name, "key_value", "key"},
			put: func(c *cells, r *Record, column int) {
				each(c, r, column, c.text, slices.Sorted(maps.Keys(*of(r))))
			},
			take: func(t *taker, r *Record, values []parquet.Value) error {
				t.keys = t.keys[:0]
				for _, v := range values {
					if v.DefinitionLevel() == 2 {
						t.keys = append(t.keys, t.text(v.ByteArray()))
					}
				}
				return nil
			},
		},
		{
			path: []string{name, "key_value", "value"},
			put: func(c *cells, r *Record, column int) {
				m := *of(r)
				each(c, r, column, func(key string) parquet.Value { return value(c, m[key]) }, slices.Sorted(maps.Keys(m)))
			},
			take: func(t *taker, r *Record, values []parquet.Value) error {
				n := 0
				for _, v := range values {
					if v.DefinitionLevel() != 2 {
						continue
					}
					x, ok := take(t, v)
					if n == len(t.keys) || !ok {
						return errors.New("keys and values do not match")
					}
					put(of(r), t.keys[n], x)
					n++
				}
				if n != len(t.keys) {
					return errors.New("keys and values do not match")
				}
				return nil
			},
		},
	}
}

// eventField is one of the parallel lists of events.
type eventField struct {
	name string
	null bool // an element may be null, and the list is when all are
	get  func(*Event) (v int64, ok bool)
	set  func(e *Event, v int64) bool // false: out of range
}

var eventFields = []eventField{
	{"event_at_ns", true, func(e *Event) (int64, bool) { return int64(e.At) - 1, e.At > 0 }, func(e *Event, v int64) bool {
		e.At = Instant(v + 1)
		return e.At > 0
	}},
	{"event_kind", false, func(e *Event) (int64, bool) { return int64(kept(e.Kind)), true }, func(e *Event, v int64) bool {
		e.Kind = kept(Kind(min(max(v, 0), math.MaxUint8)))
		return v >= 0
	}},
	{"event_read", false, func(e *Event) (int64, bool) { return int64(e.Read), true }, func(e *Event, v int64) bool {
		e.Read = uint32(v)
		return v == int64(e.Read)
	}},
	{"event_bytes", false, func(e *Event) (int64, bool) { return int64(e.Bytes), true }, func(e *Event, v int64) bool {
		e.Bytes = uint32(v)
		return v == int64(e.Bytes)
	}},
	{"event_tokens", true, func(e *Event) (int64, bool) { return e.Tokens.N() }, func(e *Event, v int64) bool {
		e.Tokens = Count(v + 1)
		return e.Tokens > 0
	}},
	{"event_lag_ns", true, func(e *Event) (int64, bool) { return int64(e.Lag), e.Lag >= 0 }, func(e *Event, v int64) bool {
		e.Lag = time.Duration(v)
		return v >= 0
	}},
	{"event_emit_ns", true, func(e *Event) (int64, bool) { return int64(e.Emit) - 1, e.Emit > 0 }, func(e *Event, v int64) bool {
		e.Emit = Instant(v + 1)
		return e.Emit > 0
	}},
}

func eventLeaf(f *eventField) leaf {
	path := []string{f.name, "list", "element"}
	first := f == &eventFields[0] // says how many events there are
	level := 2
	if f.null {
		level = 3
	}
	return leaf{
		path: path,
		put: func(c *cells, r *Record, column int) {
			some := first || !f.null
			for i := 0; i < len(r.Events) && !some; i++ {
				_, some = f.get(&r.Events[i])
			}
			if len(r.Events) == 0 || !some {
				c.null(column)
				return
			}
			for i := range r.Events {
				if v, ok := f.get(&r.Events[i]); ok {
					c.put(parquet.Int64Value(v), min(i, 1), level, column)
				} else {
					c.put(parquet.Value{}, min(i, 1), 2, column)
				}
			}
		},
		take: func(t *taker, r *Record, values []parquet.Value) error {
			if values[0].DefinitionLevel() < 2 { // null, or empty
				return nil
			}
			if first {
				if len(values) > maxEvents {
					return fmt.Errorf("%d events", len(values))
				}
				r.Events = make([]Event, len(values))
				for i := range r.Events {
					r.Events[i].Lag = unknownLag
				}
			}
			if len(values) != len(r.Events) {
				return fmt.Errorf("%d elements for %d events", len(values), len(r.Events))
			}
			for i, v := range values {
				if v.DefinitionLevel() == level && !f.set(&r.Events[i], v.Int64()) {
					return fmt.Errorf("%d is out of range", v.Int64())
				}
			}
			return nil
		},
	}
}

// taker makes records out of rows.
type taker struct {
	decoder
	keys []string
}
