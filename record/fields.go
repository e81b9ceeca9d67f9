package record

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of a Record, once for both forms at rest: num is the field number
// in the journal, name the column in the Parquet file. A number or a name is
// never used again for something else.
type (
	textField struct {
		num  protowire.Number
		name string
		of   func(*Record) *string
	}
	intField struct {
		num  protowire.Number
		name string
		get  func(*Record) int64
		set  func(*Record, int64)
	}
	instantField struct {
		num  protowire.Number
		name string
		of   func(*Record) *Instant
	}
	countField struct {
		num  protowire.Number
		name string
		of   func(*Record) *Count
	}
)

var textFields = []textField{
	{2, "variant", func(r *Record) *string { return &r.Variant }},
	{3, "workload", func(r *Record) *string { return &r.Workload }},
	{6, "case", func(r *Record) *string { return &r.Case }},
	{7, "session", func(r *Record) *string { return &r.Session }},
	{9, "tenant", func(r *Record) *string { return &r.Tenant }},
	{30, "outcome", func(r *Record) *string { return (*string)(&r.Outcome) }},
	{32, "code", func(r *Record) *string { return &r.Code }},
	{33, "detail", func(r *Record) *string { return &r.Detail }},
	{34, "finish", func(r *Record) *string { return &r.Finish }},
	{41, "body", func(r *Record) *string { return &r.Body }},
}

var intFields = []intField{
	{1, "shot", func(r *Record) int64 { return r.Shot }, func(r *Record, v int64) { r.Shot = v }},
	{4, "phase", func(r *Record) int64 { return int64(r.Phase) }, func(r *Record, v int64) { r.Phase = Phase(v) }},
	{5, "block", func(r *Record) int64 { return int64(r.Block) }, func(r *Record, v int64) { r.Block = int(v) }},
	{8, "turn", func(r *Record) int64 { return int64(r.Turn) }, func(r *Record, v int64) { r.Turn = int(v) }},
	{10, "stream", func(r *Record) int64 { return number(r.Stream) }, func(r *Record, v int64) { r.Stream = v != 0 }},
	{11, "max_tokens", func(r *Record) int64 { return r.MaxTokens }, func(r *Record, v int64) { r.MaxTokens = v }},
	{12, "prompt_bytes", func(r *Record) int64 { return r.PromptBytes }, func(r *Record, v int64) { r.PromptBytes = v }},
	{28, "reused", func(r *Record) int64 { return number(r.Reused) }, func(r *Record, v int64) { r.Reused = v != 0 }},
	{31, "status", func(r *Record) int64 { return int64(r.Status) }, func(r *Record, v int64) { r.Status = int(v) }},
	{35, "flags", func(r *Record) int64 { return int64(r.Flags) }, func(r *Record, v int64) { r.Flags = Flag(v) }},
	{13, "jitter_ns", func(r *Record) int64 { return int64(r.Jitter) }, func(r *Record, v int64) { r.Jitter = time.Duration(v) }},
	{40, "output_bytes", func(r *Record) int64 { return r.OutputBytes }, func(r *Record, v int64) { r.OutputBytes = v }},
}

var instantFields = []instantField{
	{20, "due_ns", func(r *Record) *Instant { return &r.Due }},
	{21, "admit_ns", func(r *Record) *Instant { return &r.Admit }},
	{22, "conn_start_ns", func(r *Record) *Instant { return &r.ConnStart }},
	{23, "conn_end_ns", func(r *Record) *Instant { return &r.ConnEnd }},
	{24, "send_ns", func(r *Record) *Instant { return &r.Send }},
	{25, "sent_ns", func(r *Record) *Instant { return &r.Sent }},
	{26, "header_ns", func(r *Record) *Instant { return &r.Header }},
	{27, "eof_ns", func(r *Record) *Instant { return &r.EOF }},
}

var countFields = []countField{
	{36, "prompt_tokens", func(r *Record) *Count { return &r.Prompt }},
	{37, "output_tokens", func(r *Record) *Count { return &r.Output }},
	{38, "cached_tokens", func(r *Record) *Count { return &r.Cached }},
	{39, "reasoning_tokens", func(r *Record) *Count { return &r.Reasoning }},
}

// The fields that are not scalars.
const (
	fieldServer protowire.Number = 42 // entries {1: key, 2: nanoseconds, zigzag}
	fieldLabels protowire.Number = 43 // entries {1: key, 2: text}
	fieldValues protowire.Number = 44 // entries {1: key, 2: double}

	fieldEventAt     protowire.Number = 50 // see eventColumns
	fieldEventKind   protowire.Number = 51
	fieldEventRead   protowire.Number = 52
	fieldEventBytes  protowire.Number = 53
	fieldEventTokens protowire.Number = 54
	fieldEventLag    protowire.Number = 55
	fieldEventEmit   protowire.Number = 56
)

// maxEvents bounds the events of one record: the memory that a hostile journal
// can ask for, and far above any real answer.
const maxEvents = 1 << 20

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// check returns why a number cannot be the field's, from whichever file it came.
func (f intField) check(v int64) error {
	ok := true
	switch f.name {
	case "phase":
		ok = v == int64(Measured) || v == int64(WarmUp)
	case "stream", "reused":
		ok = v == 0 || v == 1
	case "flags":
		ok = v == int64(Flag(v))
	case "block", "turn", "status":
		ok = v == int64(int(v))
	}
	if !ok {
		return fmt.Errorf("%s %d is out of range", f.name, v)
	}
	return nil
}
