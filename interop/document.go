package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/assay-llm/assay/config"
)

// document walks one JSON text without holding more of it than one element, and
// knows where it is.
type document struct {
	file string
	data []byte
	line int // of the first byte of data, from 1
	dec  *json.Decoder
	mark int // where the value begins that is looked at
}

func newDocument(file string, data []byte, line int) *document {
	return &document{file: file, data: data, line: line, dec: json.NewDecoder(bytes.NewReader(data))}
}

// fault is an error at the value that is looked at.
func (d *document) fault(path, what, hint string) error {
	off := min(max(d.mark, 0), len(d.data))
	for off < len(d.data) && strings.IndexByte(" \t\r\n,:", d.data[off]) >= 0 {
		off++ // to the value itself
	}
	before := d.data[:off]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return config.Fault{
		File: d.file, Line: d.line + bytes.Count(before, []byte{'\n'}), Column: utf8.RuneCount(before[begin:]) + 1,
		Path: path, What: what, Hint: hint,
	}
}

const cutHint = "the file was cut off or is not JSON; copy it again from where it was written"

// broken puts a place to an error of the JSON reader.
func (d *document) broken(path string, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		d.mark = len(d.data)
		return d.fault(path, "the text ends in the middle", cutHint)
	case errors.As(err, &syntax):
		return d.fault(path, "broken JSON: "+clean(syntax.Error(), 100), cutHint)
	case errors.As(err, &kind):
		if kind.Field != "" {
			path = join(path, kind.Field)
		}
		return d.fault(path, fmt.Sprintf("a JSON %s does not fit here", kind.Value), "is this the file of another tool? say which with --from")
	}
	return d.fault(path, clean(err.Error(), 160), "is this the file of another tool? say which with --from")
}

func join(path, key string) string {
	key = clean(key, 60)
	if path == "" {
		return key
	}
	return path + "." + key
}

// value decodes the next value.
func (d *document) value(path string, into any) error {
	d.mark = int(d.dec.InputOffset())
	if err := d.dec.Decode(into); err != nil {
		return d.broken(path, err)
	}
	return nil
}

// ignored is a value that nobody wants.
type ignored struct{}

func (*ignored) UnmarshalJSON([]byte) error { return nil }

func (d *document) skip(path string) error { return d.value(path, new(ignored)) }

// enter reads the opening token; none means null.
func (d *document) enter(path string, open json.Delim) (none bool, err error) {
	d.mark = int(d.dec.InputOffset())
	tok, err := d.dec.Token()
	switch {
	case err != nil:
		return false, d.broken(path, err)
	case tok == nil:
		return true, nil
	case tok != open:
		want := "an object"
		if open == '[' {
			want = "a list"
		}
		return false, d.fault(path, want+" is wanted here", "is this the file of another tool? say which with --from")
	}
	return false, nil
}

func (d *document) leave(path string) error {
	d.mark = int(d.dec.InputOffset())
	if _, err := d.dec.Token(); err != nil {
		return d.broken(path, err)
	}
	return nil
}

// object calls each for every key of the next object; each takes its value.
func (d *document) object(path string, each func(key, path string) error) error {
	none, err := d.enter(path, '{')
	if none || err != nil {
		return err
	}
	for d.dec.More() {
		d.mark = int(d.dec.InputOffset())
		tok, err := d.dec.Token()
		if err != nil {
			return d.broken(path, err)
		}
		key, _ := tok.(string)
		if err := each(key, join(path, key)); err != nil {
			return err
		}
	}
	return d.leave(path)
}

// array calls each for every element of the next list; each takes it.
func (d *document) array(path string, each func(i int, path string) error) error {
	none, err := d.enter(path, '[')
	if none || err != nil {
		return err
	}
	for i := 0; d.dec.More(); i++ {
		if err := each(i, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return d.leave(path)
}

// done reports whether only white space is left.
func (d *document) done() bool {
	return len(bytes.TrimSpace(d.data[min(int(d.dec.InputOffset()), len(d.data)):])) == 0
}
