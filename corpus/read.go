package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// bounds of an import.
type bounds struct {
	row   int   // bytes of one line or list element
	file  int64 // bytes of the file
	cases int   // rows of the file
}

var defaultBounds = bounds{row: 64 << 20, file: 1 << 30, cases: 1_000_000}

const (
	maxFaults = 10   // faults that are kept; the rest are counted
	tolerance = 1000 // one bad row in so many is left out, more fail the import
)

// Fault is what is wrong with one row of a file, or with the file.
type Fault struct {
	File string
	Line int // 1-based line on which the row starts; 0: the file as a whole
	What string
	Hint string // one next step; may be empty
}

// Error returns "file:line: what", and the hint on a second line.
func (f *Fault) Error() string {
	s := f.File + ": " + f.What
	if f.Line > 0 {
		s = f.File + ":" + strconv.Itoa(f.Line) + ": " + f.What
	}
	if f.Hint != "" {
		s += "\n  hint: " + f.Hint
	}
	return s
}

// Read imports a set. Name is the file's name, for messages and for Set.Name.
// Format is assay, sharegpt, openai, qa, ifeval, advbench, harmbench or xstest, or that
// of a trace: azure, burstgpt, mooncake or servegen; "" takes the format from the first rows, but that of an
// archive (servegen) must be given. The error is a *[Fault],
// several of them joined, or an error of r.
func Read(name string, r io.Reader, format string) (*Set, error) {
	if format == "" {
		format, r = peekFormat(r)
	}
	if _, ok := harmFormats[format]; ok {
		return readHarm(defaultBounds, name, r, format)
	}
	if format == "servegen" {
		return readServeGen(traceBounds, name, r)
	}
	if _, ok := traceFormats[format]; ok {
		return readTrace(traceBounds, name, r, format)
	}
	return readWithin(defaultBounds, name, r, format)
}

func readWithin(most bounds, name string, r io.Reader, format string) (*Set, error) {
	if _, ok := formats[format]; !ok && format != "" {
		return nil, &Fault{File: name, What: "unknown format " + quote(format), Hint: "formats are " + strings.Join(formatNames, ", ")}
	}
	in := &reader{name: name, most: most, set: &Set{Name: name, Format: format}, ids: map[string]int{}}
	rows, err := newRows(most, name, r)
	if err != nil {
		return nil, err
	}
	ahead := &ahead{rows: rows}
	if format == "" {
		ahead.look()
		if err := in.guess(ahead.seen); err != nil {
			return nil, err
		}
	}
	for {
		row, line, err := ahead.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := in.row(row, line); err != nil {
			return nil, err
		}
	}
	return in.finish()
}

// reader collects cases.
type reader struct {
	name    string
	most    bounds
	set     *Set
	guessed bool           // the format is
	ids     map[string]int // the line of each id
	rows    int
}

// guess takes the format from the first rows.
func (in *reader) guess(seen []seenRow) error {
	if len(seen) == 0 {
		return nil // nothing to read, or an error that comes with the first row
	}
	format, err := detect(seen)
	if err != nil {
		return in.fault(seen[0].line, seen[0].text, err)
	}
	in.set.Format, in.guessed = format, true
	return nil
}

// row imports one row. Its error ends the import; a bad row alone does not.
func (in *reader) row(row []byte, line int) error {
	c := &cursor{data: row}
	got, err := formats[in.set.Format](c)
	if err == nil {
		err = c.end()
	}
	if err != nil && in.guessed {
		err = doubt(in.set.Format, err)
	}
	return in.enter(got, line, row, err)
}

// enter takes a case into the set, or counts what is wrong with its row.
func (in *reader) enter(got Case, line int, row []byte, err error) error {
	if in.rows++; in.rows > in.most.cases {
		return &Fault{File: in.name, Line: line, What: fmt.Sprintf("more than %d cases", in.most.cases), Hint: "split the file"}
	}
	if err == nil {
		if got.ID == "" {
			got.ID = "row-" + strconv.Itoa(in.rows)
		}
		if first, twice := in.ids[got.ID]; twice {
			err = &syntaxError{at: -1, what: fmt.Sprintf("id %s is already used on line %d", quote(got.ID), first), hint: "give each case an id of its own, or leave all ids out"}
		}
	}
	if err != nil {
		in.set.Skipped++
		if len(in.set.Faults) < maxFaults {
			in.set.Faults = append(in.set.Faults, in.fault(line, row, err))
		}
		if in.set.Skipped > in.most.cases/tolerance {
			_, err := in.finish()
			return err
		}
		return nil
	}
	in.ids[got.ID] = line
	in.set.Cases = append(in.set.Cases, got)
	return nil
}

// fault gives an error of a row its file, line and column.
func (in *reader) fault(line int, row []byte, err error) *Fault {
	f := &Fault{File: in.name, Line: line, What: err.Error()}
	var s *syntaxError
	if errors.As(err, &s) {
		f.Hint = s.hint
		if s.at >= 0 {
			at := min(s.at, len(row))
			f.Line += bytes.Count(row[:at], []byte{'\n'})
			column := at - bytes.LastIndexByte(row[:at], '\n')
			f.What = fmt.Sprintf("column %d: %s", column, s.what)
		}
	}
	return f
}

// finish decides whether what was read is still the set.
func (in *reader) finish() (*Set, error) {
	if in.rows == 0 {
		return nil, &Fault{File: in.name, What: "no cases: the file is empty", Hint: `write one JSON object a line, for example {"prompt": "What is a prefix cache?"}`}
	}
	s, err := in.judge()
	if err != nil {
		return nil, err
	}
	s.Digest = digest(s.Cases)
	return s, nil
}

// judge refuses a set of which too many rows were bad.
func (in *reader) judge() (*Set, error) {
	s := in.set
	if s.Skipped*tolerance > in.rows {
		all := make([]error, 0, len(s.Faults)+1)
		for _, f := range s.Faults {
			all = append(all, f)
		}
		if s.Skipped > 1 {
			all = append(all, &Fault{File: in.name, What: fmt.Sprintf("%d of the %d rows read are bad; at most one in %d may be", s.Skipped, in.rows, tolerance)})
		}
		return nil, errors.Join(all...)
	}
	return s, nil
}

// rows cuts a file into rows: the lines of JSON Lines, or the elements of one
// JSON list.
type rows struct {
	name  string
	most  int // bytes of a row
	in    *bufio.Reader
	line  int // of the next byte
	list  bool
	ended bool // the list's ']' was read
	first bool // no element was read yet
	buf   []byte
}

// newRows looks at the first bytes of a file and decides how it is framed.
func newRows(most bounds, name string, r io.Reader) (*rows, error) {
	in := bufio.NewReaderSize(&limited{r: r, name: name, most: most.file, left: most.file}, 1<<16)
	head, err := in.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, reading(name, err)
	}
	for _, m := range []struct{ magic, what, hint string }{
		{"\x1f\x8b", "the file is compressed with gzip", "decompress it first: gunzip -k"},
		{"\x28\xb5\x2f", "the file is compressed with zstd", "decompress it first: zstd -d"},
		{"PK\x03", "the file is a zip archive", "unpack it first"},
		{"PAR", "the file is in Parquet format", "export it as JSON Lines first"},
		{"\xff\xfe", "the file is UTF-16", "convert it first: iconv -f utf-16 -t utf-8"},
		{"\xfe\xff", "the file is UTF-16", "convert it first: iconv -f utf-16 -t utf-8"},
	} {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return nil, &Fault{File: name, Line: 1, What: m.what, Hint: m.hint}
		}
	}
	if string(head) == "\xef\xbb\xbf" {
		in.Discard(3)
	}
	rs := &rows{name: name, most: most.row, in: in, line: 1, first: true}
	b, err := rs.token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return rs, nil
		}
		return nil, err
	}
	if rs.list = b == '['; !rs.list {
		in.UnreadByte()
	}
	return rs, nil
}

// next returns the next row and the line on which it starts; io.EOF after the
// last. The bytes are valid until the next call.
func (r *rows) next() ([]byte, int, error) {
	if r.list {
		return r.element()
	}
	for {
		start := r.line
		row, err := r.readLine(start)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if row = bytes.TrimSpace(row); len(row) > 0 {
			return row, start, nil
		}
		if err != nil {
			return nil, 0, io.EOF
		}
	}
}

// readLine reads up to and including the next newline. At the end of the file
// it returns what there is and io.EOF.
func (r *rows) readLine(start int) ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.buf)+len(part) > r.most {
			return nil, r.tooLong(start)
		}
		if err == nil {
			r.line++
			if len(r.buf) == 0 {
				return part, nil
			}
		}
		r.buf = append(r.buf, part...)
		switch {
		case err == nil || errors.Is(err, io.EOF):
			return r.buf, err
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, reading(r.name, err)
		}
	}
}

// element reads the next element of a list.
func (r *rows) element() ([]byte, int, error) {
	b, err := r.token()
	switch {
	case r.ended && errors.Is(err, io.EOF):
		return nil, 0, io.EOF
	case errors.Is(err, io.EOF):
		return nil, 0, r.broken("the list has no end", "the file is cut off: fetch it again")
	case err != nil:
		return nil, 0, err
	case r.ended:
		return nil, 0, r.broken(describe(b)+" after the end of the list", "")
	case b == ']' && r.first:
		r.ended = true
		return r.element()
	}
	r.first = false
	start := r.line
	if b != '{' {
		return nil, 0, r.broken("want an object as element of the list, got "+describe(b), "")
	}
	if err := r.span(b, start); err != nil {
		return nil, 0, err
	}
	switch b, err = r.token(); {
	case errors.Is(err, io.EOF):
		return nil, 0, r.broken("the list has no end", "the file is cut off: fetch it again")
	case err != nil:
		return nil, 0, err
	case b == ']':
		r.ended = true
	case b != ',':
		return nil, 0, r.broken("want ',' or ']' after an element, got "+describe(b), "")
	}
	return r.buf, start, nil
}

// span reads from an opening brace to the one that closes it, by counting
// braces outside strings. What is between is judged later.
func (r *rows) span(open byte, start int) error {
	r.buf = append(r.buf[:0], open)
	depth, quoted := 1, false
	for depth > 0 {
		b, err := r.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return &Fault{File: r.name, Line: start, What: "the element has no end", Hint: "the file is cut off: fetch it again"}
		}
		if err != nil {
			return reading(r.name, err)
		}
		if r.buf = append(r.buf, b); len(r.buf) > r.most {
			return r.tooLong(start)
		}
		switch {
		case b == '\n':
			r.line++
		case b == '"':
			quoted = !quoted
		case quoted && b == '\\':
			if b, err = r.in.ReadByte(); err == nil {
				r.buf = append(r.buf, b)
				if b == '\n' {
					r.line++
				}
			}
		case quoted:
		case b == '{':
			depth++
		case b == '}':
			depth--
		}
	}
	return nil
}

// token returns the next byte that is no white space.
func (r *rows) token() (byte, error) {
	for {
		b, err := r.in.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return 0, io.EOF
			}
			return 0, reading(r.name, err)
		}
		switch b {
		case '\n':
			r.line++
		case ' ', '\t', '\r':
		default:
			return b, nil
		}
	}
}

func (r *rows) broken(what, hint string) error {
	return &Fault{File: r.name, Line: r.line, What: what, Hint: hint}
}

func (r *rows) tooLong(line int) error {
	return &Fault{File: r.name, Line: line, What: "the row is longer than " + mebibytes(int64(r.most)), Hint: "one case a line, please: is this JSON Lines?"}
}

// reading gives an error of the underlying reader its file, and leaves a Fault
// as it is.
func reading(name string, err error) error {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return fmt.Errorf("reading %s: %w", name, err)
}

// limited ends a file that is too large by a Fault instead of a silent EOF.
type limited struct {
	r    io.Reader
	name string
	most int64
	left int64
}

func mebibytes(n int64) string {
	return strconv.FormatFloat(float64(n)/(1<<20), 'g', -1, 64) + " MiB"
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, &Fault{File: l.name, What: "the file is larger than " + mebibytes(l.most), Hint: "split the file"}
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
