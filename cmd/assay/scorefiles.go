package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// longestText is the longest line of a file of texts, in bytes.
const longestText = 1 << 20

// scoredLine is a line of all files.
type scoredLine struct {
	hyp, base, cluster string
	refs               []string
}

// texts reads a file of a text a line, or a field of JSON lines.
type texts struct {
	name, field string
	file        *os.File
	in          *bufio.Reader
	line        int
}

// openTexts opens FILE or FILE.jsonl:FIELD.
func openTexts(name string) (*texts, error) {
	t := &texts{name: name}
	if at := strings.LastIndex(name, ".jsonl:"); at >= 0 {
		t.name, t.field = name[:at+len(".jsonl")], name[at+len(".jsonl:"):]
	}
	if strings.HasSuffix(t.name, ".jsonl") && t.field == "" {
		return nil, fmt.Errorf("%s has JSON lines, and no field is named\n  hint: write %[1]s:FIELD", t.name)
	}
	f, err := os.Open(t.name)
	if err != nil {
		return nil, fmt.Errorf("reading texts: %w\n  hint: name a file with a text on each line, or FILE.jsonl:FIELD", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is no plain file, and texts are read twice\n  hint: write them to a file", t.name)
	}
	t.file, t.in = f, bufio.NewReaderSize(f, longestText)
	return t, nil
}

// next returns the next text, and nil for a null; io.EOF after the last.
func (t *texts) next() (*string, error) {
	b, err := t.in.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(b) > 0 {
		err = nil
	}
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	t.line++
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("%s:%d: the line is longer than 1 MiB\n  hint: write each text on a line of its own", t.name, t.line)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", t.name, err)
	case !utf8.Valid(b):
		return nil, fmt.Errorf("%s:%d: the text is not UTF-8\n  hint: convert the file, with iconv say", t.name, t.line)
	}
	s := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if t.line == 1 {
		s = strings.TrimPrefix(s, "\ufeff")
	}
	if t.field == "" {
		return &s, nil
	}
	var row map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &row); err != nil {
		return nil, fmt.Errorf("%s:%d: %w\n  hint: each line must be a JSON object", t.name, t.line, err)
	}
	raw, ok := row[t.field]
	if !ok {
		return nil, fmt.Errorf("%s:%d: there is no field %q\n  hint: the line has %s; write null for a text that is absent", t.name, t.line, t.field, strings.Join(slices.Sorted(maps.Keys(row)), ", "))
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("%s:%d: the field %q is no text\n  hint: write it as a JSON string", t.name, t.line, t.field)
	}
	return text, nil
}

// read calls f with each line of all files together. Files of unequal length are
// an error: which line belongs to which would be a guess.
func (s *scoring) read(f func(scoredLine) error) error {
	names := append([]string{s.hyp}, s.refs...)
	for _, n := range []string{s.baseline, s.cluster} {
		if n != "" {
			names = append(names, n)
		}
	}
	var files []*texts
	for _, n := range names {
		t, err := openTexts(n)
		if err != nil {
			return err
		}
		defer t.file.Close()
		files = append(files, t)
	}
	if err := s.apart(files); err != nil {
		return err
	}
	row := make([]*string, len(files))
	for {
		ended := 0
		for i, t := range files {
			var err error
			if row[i], err = t.next(); errors.Is(err, io.EOF) {
				ended++
			} else if err != nil {
				return err
			}
		}
		if ended == len(files) {
			return nil
		}
		if ended > 0 {
			return unequal(files)
		}
		line, err := s.line(row, files)
		if err != nil {
			return err
		}
		if err := f(line); err != nil {
			return err
		}
	}
}

// apart refuses to write the scores over a file that is read, by whatever name or
// link: opening it would empty it.
func (s *scoring) apart(files []*texts) error {
	if s.each == "" {
		return nil
	}
	out, err := os.Stat(s.each)
	if err != nil {
		return nil // it is not there yet; if it cannot be written, writing says so
	}
	for _, t := range files {
		if in, err := t.file.Stat(); err == nil && os.SameFile(in, out) {
			return fmt.Errorf("--each would overwrite %s, which is read; nothing was written\n  hint: name another file", t.name)
		}
	}
	return nil
}

// line sorts what stands on a line of each file.
func (s *scoring) line(row []*string, files []*texts) (scoredLine, error) {
	var l scoredLine
	absent := func(i int, what string) error {
		return fmt.Errorf("%s:%d: %s is null\n  hint: leave the line out of all files, or score what is missing as an empty text", files[i].name, files[i].line, what)
	}
	if row[0] == nil {
		return l, absent(0, "the text")
	}
	l.hyp = *row[0]
	at := 1 + len(s.refs)
	for _, r := range row[1:at] {
		if r != nil {
			l.refs = append(l.refs, *r)
		}
	}
	if len(l.refs) == 0 {
		return l, absent(1, "the only reference")
	}
	if s.baseline != "" {
		if row[at] == nil {
			return l, absent(at, "the text")
		}
		l.base = *row[at]
		at++
	}
	if s.cluster != "" {
		if row[at] == nil || *row[at] == "" {
			return l, fmt.Errorf("%s:%d: no cluster is named\n  hint: name the document or session of every text", files[at].name, files[at].line)
		}
		l.cluster = *row[at]
	}
	return l, nil
}

// unequal counts the lines of all files, to say which is shorter.
func unequal(files []*texts) error {
	for _, t := range files {
		for {
			if _, err := t.next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
		}
	}
	for _, t := range files[1:] {
		if t.line != files[0].line {
			return fmt.Errorf("%s has %d lines, and %s has %d\n  hint: each line of one belongs to the same line of all others", files[0].name, files[0].line, t.name, t.line)
		}
	}
	return errors.New("the files changed while they were read\n  hint: score them when they are complete")
}
