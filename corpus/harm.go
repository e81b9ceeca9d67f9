package corpus

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The labels that the sets of requests to be refused, or to be answered, give their
// cases, and that a set of another format gives to be one.
const (
	HarmLabel     = "harm"     // Unsafe or Safe
	CategoryLabel = "category" // of the harm, or of what a safe request looks like
	Unsafe        = "unsafe"   // it is to be refused
	Safe          = "safe"     // it is to be answered
)

// harmFormat reads published sets of such requests, in CSV with a header.
type harmFormat struct {
	columns []string // that tell the format, in lower case
	decode  func(field func(column string) string) (Case, error)
}

// harmFormats are the sets whose files are known. XSTest (CC-BY-4.0) has safe
// requests and unsafe contrasts; AdvBench and HarmBench (both MIT) only unsafe ones.
var harmFormats = map[string]harmFormat{
	"advbench": {[]string{"goal", "target"}, func(field func(string) string) (Case, error) {
		return harmful("", field("goal"), Unsafe, "")
	}},
	"harmbench": {[]string{"behavior", "semanticcategory", "behaviorid"}, func(field func(string) string) (Case, error) {
		prompt := field("behavior")
		if context := field("contextstring"); context != "" {
			prompt = context + "\n\n---\n\n" + prompt
		}
		return harmful(field("behaviorid"), prompt, Unsafe, field("semanticcategory"))
	}},
	"xstest": {[]string{"id", "prompt", "type"}, func(field func(string) string) (Case, error) {
		category, contrast := strings.CutPrefix(field("type"), "contrast_")
		harm := field("label")
		switch {
		case harm == "" && contrast:
			harm = Unsafe
		case harm == "":
			harm = Safe
		}
		return harmful(field("id"), field("prompt"), harm, category)
	}},
}

// harmful is a case of a set of unsafe and safe requests.
func harmful(id, prompt, harm, category string) (Case, error) {
	switch {
	case harm != Safe && harm != Unsafe:
		return Case{}, bad("", "the label %s is neither safe nor unsafe", quote(harm))
	case !utf8.ValidString(prompt) || !utf8.ValidString(id) || !utf8.ValidString(category):
		return Case{}, bad("", "it is not UTF-8")
	case len(id) > maxID || !printable(id):
		return Case{}, bad("", "the id is longer than %d bytes or cannot be printed", maxID)
	case len(category) > maxLabel || !printable(category):
		return Case{}, bad("", "the category %s is longer than %d bytes or cannot be printed", quote(category), maxLabel)
	}
	c := Case{ID: id, Messages: []Message{{Role: "user", Content: prompt}}, Labels: map[string]string{HarmLabel: harm}}
	if category != "" {
		c.Labels[CategoryLabel] = category
	}
	return c, asked(c.Messages)
}

// harmOf names the format of such a set by the first line of a file; "" if it is in
// none.
func harmOf(head []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), []byte("\n"))
	columns := strings.Split(strings.ToLower(strings.TrimSpace(string(line))), ",")
	for name, f := range harmFormats {
		if slices.Equal(columns[:min(len(columns), len(f.columns))], f.columns) || name == "harmbench" && holds(columns, f.columns) {
			return name
		}
	}
	return ""
}

func holds(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// readHarm imports a set of requests to be refused or answered. Its bounds are those
// of a row: encoding/csv holds a quoted field until it ends.
func readHarm(most bounds, name string, r io.Reader, format string) (*Set, error) {
	in := &reader{name: name, most: most, set: &Set{Name: name, Format: format}, ids: map[string]int{}}
	rows := csv.NewReader(&limited{r: r, name: name, most: int64(most.row), left: int64(most.row)})
	rows.FieldsPerRecord = -1
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return in.finish()
	}
	if err != nil {
		return nil, in.csvFault(err)
	}
	column := make(map[string]int, len(header))
	for i, h := range header {
		column[strings.ToLower(strings.TrimSpace(strings.TrimPrefix(h, "\ufeff")))] = i
	}
	known := harmFormats[format]
	for _, c := range known.columns {
		if _, ok := column[c]; !ok {
			return nil, &Fault{File: name, Line: 1, What: fmt.Sprintf("there is no column %s, which the format %s has", c, format), Hint: "its header begins " + strings.Join(known.columns, ",")}
		}
	}
	for {
		fields, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return in.finish()
		}
		if err != nil {
			return nil, in.csvFault(err)
		}
		line, _ := rows.FieldPos(0)
		c, err := known.decode(func(name string) string {
			if i, ok := column[name]; ok && i < len(fields) {
				return strings.TrimSpace(fields[i])
			}
			return ""
		})
		if err := in.enter(c, line, nil, err); err != nil {
			return nil, err
		}
	}
}

// csvFault gives an error of the CSV its line.
func (in *reader) csvFault(err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return &Fault{File: in.name, Line: p.Line, What: "column " + strconv.Itoa(p.Column) + ": " + p.Err.Error(), Hint: `a field with quotes in it stands between quotes, and each of them is doubled`}
	}
	return reading(in.name, err)
}
