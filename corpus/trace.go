package corpus

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Trace is what was asked of a service and when, without its texts: the rows of
// a public trace in the order of their times. Like its Set, it is read-only.
type Trace struct {
	Rows    []Row
	Tenants []string // names of who asked, in the order of their first row; none: the trace does not tell

	// BlockTokens is the length of the blocks of Row.Blocks in tokens; 0: the trace
	// has none.
	BlockTokens int64

	Source     string // who published the trace, and under which licence
	Unanswered int    // rows without an answer, which were left out: failed requests of BurstGPT
	Together   int    // rows that have the same instant as the row before them
}

// Row is one request of a trace.
type Row struct {
	At     int64 // nanoseconds after the first row
	Input  int32 // tokens of the prompt, at least 1
	Output int32 // tokens of the answer, at least 1
	Tenant int32 // index in Trace.Tenants; 0 if the trace does not tell

	// Blocks are the identities of the prompt's blocks of Trace.BlockTokens tokens,
	// of which the last may be shorter; nil if the trace does not tell. Prompts that
	// start with the same identities started with the same text.
	Blocks []uint32
}

// Span returns the nanoseconds from the first row to the last.
func (t *Trace) Span() int64 { return t.Rows[len(t.Rows)-1].At }

// The bounds of a trace.
const (
	maxTenants   = 10_000
	maxRowTokens = 2_000_000
	maxSpan      = 366 * 24 * 3600 * second
	maxBlocks    = 1 << 26 // of all rows

	second = 1_000_000_000
)

var traceBounds = bounds{row: 4 << 20, file: 1 << 30, cases: 10_000_000}

// traceFormat reads the rows of one published format.
type traceFormat struct {
	source string
	block  int64
	// columns of a table by their names in lower case: instant, input, output and,
	// if there is one, tenant; nil: rows are JSON objects.
	columns []string
	decode  func(t *tracer, row []byte) (Row, error)
}

var traceFormats = map[string]traceFormat{
	"azure": {
		source:  "Azure LLM inference trace, Microsoft Azure, CC-BY-4.0",
		columns: []string{"timestamp", "contexttokens", "generatedtokens"}, decode: azureRow,
	},
	"burstgpt": {
		source:  "BurstGPT, HPMLL, CC-BY-4.0",
		columns: []string{"timestamp", "request tokens", "response tokens", "model", "log type"}, decode: burstGPTRow,
	},
	"mooncake": {source: "Mooncake trace, Moonshot AI, Apache-2.0", block: 512, decode: mooncakeRow},
}

// traceOf names the trace format that the first bytes of a file are in; "" if
// they are in none.
func traceOf(head []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), []byte("\n"))
	switch lower := strings.ToLower(string(bytes.TrimSpace(line))); {
	case strings.HasPrefix(lower, "timestamp,") && strings.Contains(lower, "contexttokens"):
		return "azure"
	case strings.HasPrefix(lower, "timestamp,") && strings.Contains(lower, "request tokens"):
		return "burstgpt"
	case strings.HasPrefix(lower, "{") && strings.Contains(lower, `"timestamp"`) && strings.Contains(lower, `"input_length"`):
		return "mooncake"
	}
	return ""
}

// tracer collects the rows of a trace.
type tracer struct {
	name   string
	most   bounds
	format traceFormat
	set    *Set
	trace  *Trace

	columns [5]int // where the columns of the format are; −1: nowhere
	fields  [][]byte
	tenants map[string]int32
	first   int64 // instant of the first row
	last    int64
	rows    int
	blocks  int
}

// errUnanswered marks a row that is sound but got no answer.
var errUnanswered = errors.New("no answer")

func readTrace(most bounds, name string, r io.Reader, format string) (*Set, error) {
	t := &tracer{
		name: name, most: most, format: traceFormats[format], tenants: map[string]int32{},
		set: &Set{Name: name, Format: format},
	}
	t.trace = &Trace{Source: t.format.source, BlockTokens: t.format.block}
	t.set.Trace = t.trace
	rows, err := newRows(most, name, r)
	if err != nil {
		return nil, err
	}
	if rows.list {
		return nil, &Fault{File: name, Line: 1, What: "a list is no trace of format " + format, Hint: "write one row a line"}
	}
	for header := t.format.columns != nil; ; header = false {
		row, line, err := rows.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if header {
			if err := t.header(row); err != nil {
				return nil, &Fault{File: name, Line: line, What: err.Error(), Hint: "the first line names the columns: " + strings.Join(t.format.columns, ", ")}
			}
			continue
		}
		if err := t.row(row, line); err != nil {
			return nil, err
		}
	}
	return t.finish()
}

// header finds the columns. Only the first three must be there.
func (t *tracer) header(line []byte) error {
	for i := range t.columns {
		t.columns[i] = -1
	}
	names := strings.Split(strings.ToLower(string(line)), ",")
	for k, want := range t.format.columns {
		for i, name := range names {
			if strings.TrimSpace(name) != want {
				continue
			}
			if t.columns[k] >= 0 {
				return fmt.Errorf("the column %s is there twice", quote(want))
			}
			t.columns[k] = i
		}
		if t.columns[k] < 0 && k < 3 {
			return fmt.Errorf("there is no column %s", quote(want))
		}
	}
	t.fields = make([][]byte, len(names))
	return nil
}

// split cuts a row of a table into its fields.
func (t *tracer) split(row []byte) error {
	if bytes.IndexByte(row, '"') >= 0 {
		return bad("", "quotes have no place in this table")
	}
	for i := range t.fields {
		field, rest, more := bytes.Cut(row, []byte(","))
		if last := i == len(t.fields)-1; last == more {
			return bad("", "want %d fields, got %d", len(t.fields), i+1+bytes.Count(rest, []byte(","))+btoi(more))
		}
		t.fields[i], row = bytes.TrimSpace(field), rest
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// field returns a field of the current row by the place of its column in the
// format; nil if the table has no such column.
func (t *tracer) field(k int) []byte {
	if i := t.columns[k]; i >= 0 {
		return t.fields[i]
	}
	return nil
}

// row imports one row. Its error ends the import; a bad row alone does not.
func (t *tracer) row(row []byte, line int) error {
	if t.rows++; t.rows > t.most.cases {
		return &Fault{File: t.name, Line: line, What: fmt.Sprintf("more than %d rows", t.most.cases), Hint: "split the file"}
	}
	got, err := t.format.decode(t, row)
	unanswered := errors.Is(err, errUnanswered)
	if err == nil || unanswered {
		err = t.clock(&got)
	}
	switch {
	case err == nil && unanswered:
		t.trace.Unanswered++
		return nil
	case err == nil:
		if n := len(t.trace.Rows); n > 0 && t.trace.Rows[n-1].At == got.At {
			t.trace.Together++
		}
		if t.blocks += len(got.Blocks); t.blocks > maxBlocks {
			return &Fault{File: t.name, Line: line, What: fmt.Sprintf("more than %d blocks in all", maxBlocks), Hint: "split the file"}
		}
		t.trace.Rows = append(t.trace.Rows, got)
		return nil
	}
	t.set.Skipped++
	if len(t.set.Faults) < maxFaults {
		in := reader{name: t.name}
		t.set.Faults = append(t.set.Faults, in.fault(line, row, err))
	}
	if t.set.Skipped > t.most.cases/tolerance {
		_, err := t.finish()
		return err
	}
	return nil
}

// clock makes the instant of a row relative to that of the first, and refuses one
// that goes back.
func (t *tracer) clock(r *Row) error {
	if len(t.trace.Rows) == 0 && t.trace.Unanswered == 0 {
		t.first, t.last = r.At, r.At
	}
	switch {
	case r.At < t.last:
		return bad("sort the file by its timestamps", "the row is earlier than the one before it")
	case r.At-t.first > maxSpan:
		return bad("split the file", "the row is more than a year later than the first")
	}
	t.last = r.At
	r.At -= t.first
	return nil
}

// tenant returns the index of a name.
func (t *tracer) tenant(name string) (int32, error) {
	if i, ok := t.tenants[name]; ok {
		return i, nil
	}
	switch {
	case len(name) > maxLabel || !printable(name):
		return 0, bad("", "the name %s is longer than %d bytes or not printable", quote(name), maxLabel)
	case len(t.trace.Tenants) == maxTenants:
		return 0, bad("", "more than %d different names", maxTenants)
	}
	i := int32(len(t.trace.Tenants))
	t.tenants[name] = i
	t.trace.Tenants = append(t.trace.Tenants, name)
	return i, nil
}

// finish decides whether what was read is still the trace.
func (t *tracer) finish() (*Set, error) {
	if t.rows == 0 || t.rows == t.trace.Unanswered {
		return nil, &Fault{File: t.name, What: "no rows with an answer: the trace is empty", Hint: "fetch it again; is it a Git LFS pointer?"}
	}
	in := reader{name: t.name, most: t.most, set: t.set, rows: t.rows}
	if _, err := in.judge(); err != nil {
		return nil, err
	}
	start := t.trace.Rows[0].At // not 0 if the first rows got no answer
	for i := range t.trace.Rows {
		t.trace.Rows[i].At -= start
	}
	t.set.Digest = t.trace.digest()
	return t.set, nil
}

// digest is of the content alone, in an encoding that tells traces apart.
func (t *Trace) digest() string {
	d := digester{h: sha256.New()}
	d.text("assay.trace/1")
	d.number(uint64(t.BlockTokens))
	d.number(uint64(len(t.Tenants)))
	for _, name := range t.Tenants {
		d.text(name)
	}
	d.number(uint64(len(t.Rows)))
	before := int64(0)
	for i := range t.Rows {
		r := &t.Rows[i]
		d.number(uint64(r.At - before))
		d.number(uint64(r.Input))
		d.number(uint64(r.Output))
		d.number(uint64(r.Tenant))
		d.number(uint64(len(r.Blocks)))
		for _, b := range r.Blocks {
			d.number(uint64(b))
		}
		d.text("")
		before = r.At
	}
	d.flush()
	return hex.EncodeToString(d.h.Sum(nil))
}

// lengths reads the numbers of tokens of a row. An output of 0 is a request
// without an answer.
func lengths(input, output []byte) (in, out int32, err error) {
	read := func(text []byte, what string, least int64) (int32, error) {
		n, ok := fixedPoint(text, 0)
		if !ok || n < least || n > maxRowTokens {
			return 0, bad("", "want %s from %d to %d, got %s", what, least, maxRowTokens, quote(string(text)))
		}
		return int32(n), nil
	}
	if out, err = read(output, "tokens of the answer", 0); err != nil {
		return 0, 0, err
	}
	if in, err = read(input, "tokens of the prompt", int64(btoi(out > 0))); err == nil && out == 0 {
		err = errUnanswered
	}
	return in, out, err
}

// fixedPoint reads a plain decimal number of at least 0 as a multiple of
// 10^−digits. Further digits must be 0, since rounding would move what was
// measured; 9 are nanoseconds.
func fixedPoint(text []byte, digits int) (n int64, ok bool) {
	whole, part, dot := strings.Cut(string(text), ".")
	if len(whole) == 0 || len(whole) > 18-digits || dot && part == "" {
		return 0, false
	}
	if len(part) > digits {
		if strings.Trim(part[digits:], "0") != "" {
			return 0, false
		}
		part = part[:digits]
	}
	for _, c := range []byte(whole + part) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	return n, err == nil
}

// azureRow reads a row of the Azure LLM inference traces of 2023 and 2024:
// TIMESTAMP, ContextTokens, GeneratedTokens. The trace of 2025 has NumImages
// beside them, which is ignored.
func azureRow(t *tracer, row []byte) (r Row, err error) {
	if err := t.split(row); err != nil {
		return r, err
	}
	if r.At, err = civil(string(t.field(0))); err != nil {
		return r, err
	}
	r.Input, r.Output, err = lengths(t.field(1), t.field(2))
	return r, err
}

// civil reads "2023-11-16 18:17:03.9799600" as nanoseconds since 1970. Without a
// zone, and with "Z" or "+00:00", it is UTC; other zones are refused.
//
// Note: package time would do, but this package has no clock, and a test holds
// that by forbidding the import.
func civil(s string) (int64, error) {
	const form = "0000-00-00 00:00:00"
	wrong := bad("write it as 2023-11-16 18:17:03.9799600", "not a timestamp: %s", quote(s))
	body := strings.TrimSuffix(strings.TrimSuffix(s, "Z"), "+00:00")
	if len(body) < len(form) {
		return 0, wrong
	}
	var n [6]int64
	k := 0
	for i, c := range []byte(body[:len(form)]) {
		switch {
		case form[i] == '0' && c >= '0' && c <= '9':
			n[k] = n[k]*10 + int64(c-'0')
		case form[i] != '0' && (c == form[i] || c == 'T' && form[i] == ' '):
			k++
		default:
			return 0, wrong
		}
	}
	year, month, day := n[0], n[1], n[2]
	if year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > daysOf(year, month) || n[3] > 23 || n[4] > 59 || n[5] > 59 {
		return 0, wrong
	}
	days := (year-1970)*365 + (year-1969)/4 - (year-1901)/100 + (year-1601)/400 + day - 1
	for m := int64(1); m < month; m++ {
		days += daysOf(year, m)
	}
	at := (days*86400 + n[3]*3600 + n[4]*60 + n[5]) * second
	if part := body[len(form):]; part != "" {
		fraction, ok := fixedPoint([]byte("0"+part), 9)
		if !ok || part[0] != '.' {
			return 0, wrong
		}
		at += fraction
	}
	return at, nil
}

func daysOf(year, month int64) int64 {
	switch {
	case month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}

// burstGPTRow reads a row of BurstGPT: Timestamp in seconds, Request tokens,
// Response tokens (0: the request failed), Model and Log Type, which together
// name the tenant.
func burstGPTRow(t *tracer, row []byte) (r Row, err error) {
	if err := t.split(row); err != nil {
		return r, err
	}
	at, ok := fixedPoint(t.field(0), 9)
	if !ok {
		return r, bad("", "not a number of seconds: %s", quote(string(t.field(0))))
	}
	r.At = at
	if r.Input, r.Output, err = lengths(t.field(1), t.field(2)); err != nil {
		return r, err
	}
	var names []string
	for _, k := range []int{3, 4} {
		if f := t.field(k); len(f) > 0 {
			names = append(names, string(f))
		}
	}
	if len(names) > 0 {
		r.Tenant, err = t.tenant(strings.Join(names, ", "))
	}
	return r, err
}

// mooncakeRow reads a row of the Mooncake traces: {"timestamp": milliseconds,
// "input_length", "output_length", "hash_ids": one for each started block of 512
// tokens}. Other keys are ignored.
func mooncakeRow(t *tracer, row []byte) (r Row, err error) {
	c := &cursor{data: row}
	var at, input, output string
	hashes := false
	err = c.object(func(key string) (err error) {
		switch key {
		case "timestamp":
			at, err = c.number()
		case "input_length":
			input, err = c.number()
		case "output_length":
			output, err = c.number()
		case "hash_ids":
			hashes = true
			r.Blocks, err = c.blocks()
		default:
			err = c.skip()
		}
		return err
	})
	if err == nil {
		err = c.end()
	}
	if err != nil {
		return r, err
	}
	ms, ok := fixedPoint([]byte(at), 6)
	if !ok {
		return r, bad("", "the timestamp is missing, or not a number of milliseconds: %s", quote(at))
	}
	r.At = ms
	if r.Input, r.Output, err = lengths([]byte(input), []byte(output)); err != nil {
		return r, err
	}
	if want := (int(r.Input) + 511) / 512; hashes && len(r.Blocks) != want {
		return r, bad("hash_ids are of blocks of 512 tokens", "%d hash_ids do not fit an input_length of %d, want %d", len(r.Blocks), r.Input, want)
	}
	return r, nil
}

// blocks reads a list of identities.
func (c *cursor) blocks() (ids []uint32, err error) {
	// One pass to count, so that a row of n blocks holds just n.
	if c.peek() != '[' {
		return nil, c.fail(c.pos, "want a list, got %s", c.kind())
	}
	rest := c.data[c.pos:]
	if end := bytes.IndexByte(rest, ']'); end > 0 {
		ids = make([]uint32, 0, 1+bytes.Count(rest[:end], []byte(",")))
	}
	err = c.list(func() error {
		c.space()
		at := c.pos
		s, err := c.number()
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || n > math.MaxUint32-1 {
			return c.fail(at, "want a whole number from 0 to %d, got %s", uint32(math.MaxUint32-1), quote(s))
		}
		ids = append(ids, uint32(n))
		return nil
	})
	return ids, err
}

// peekFormat names the trace format of what a reader is about to give, and
// returns a reader that still gives all of it.
func peekFormat(r io.Reader) (string, io.Reader) {
	in := bufio.NewReaderSize(r, 1<<16)
	head, _ := in.Peek(1 << 12) // an error comes again with the first read
	return cmp.Or(traceOf(head), harmOf(head)), in
}
