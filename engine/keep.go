package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// FileName is the name of the snapshots in a run directory.
const FileName = "engine.jsonl"

// Append adds the snapshots of a span to a file, one line each, and makes them durable.
func Append(file string, s Span) (err error) {
	var b bytes.Buffer
	for _, x := range s.Snapshots {
		line, err := json.Marshal(x)
		if err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
		b.Write(append(line, '\n'))
	}
	if b.Len() == 0 {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("writing the engine's metrics: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil && e != nil {
			err = fmt.Errorf("writing %s: %w", file, e)
		}
	}()
	if _, err := f.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return f.Sync()
}

// maxSnapshot bounds a line of the file.
const maxSnapshot = 4 << 20

// Read reads a file of snapshots. A last line without an end is what a crash cut; it is
// left out and torn is true. Fields that are not known are skipped.
func Read(r io.Reader) (snapshots []*Snapshot, torn bool, err error) {
	b := bufio.NewReaderSize(io.LimitReader(r, 1<<30), 64<<10)
	for number := 1; ; number++ {
		line, err := readLine(b)
		if errors.Is(err, io.EOF) {
			return snapshots, len(line) > 0, nil
		}
		if err != nil {
			return snapshots, false, fmt.Errorf("line %d of the snapshots: %w", number, err)
		}
		x := new(Snapshot)
		if err := json.Unmarshal(line, x); err != nil {
			return snapshots, false, fmt.Errorf("line %d of the snapshots: %w", number, err)
		}
		snapshots = append(snapshots, x)
	}
}

// readLine reads a line with its end; without one the error is io.EOF.
func readLine(b *bufio.Reader) (line []byte, err error) {
	for {
		piece, err := b.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > maxSnapshot {
			return nil, fmt.Errorf("has more than %d bytes", maxSnapshot)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Spans puts snapshots that were read back, in the order of their file, together to
// the spans that they were taken in.
func Spans(snapshots []*Snapshot) []Span {
	var spans []Span
	var last *Snapshot
	for _, x := range snapshots {
		if last == nil || x.Edge == edgeStart || x.Variant != last.Variant || x.Workload != last.Workload || x.Block != last.Block || x.Engine != last.Engine {
			spans = append(spans, Span{})
		}
		s := &spans[len(spans)-1]
		s.Snapshots = append(s.Snapshots, x)
		last = x
	}
	return spans
}
