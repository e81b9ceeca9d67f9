package judge

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Columns names the columns of a file of labels. A field that is empty takes the
// first of its usual names that the file has.
type Columns struct {
	Case      string   // id of a case; rows of one case and the same slices are an error
	Cluster   string   // what may depend on each other; the case if there is none
	Slices    []string // variant, language …: each is looked at for itself
	Human     string   // what people decided in the end; an empty cell is no label
	Raters    []string // what each of several people said
	Judge     []string // stored verdicts of a judge: the one that counts, then its repetitions
	Swapped   string   // of pairs: the stored verdict with the candidate shown first
	Question  string
	Source    string
	Reference string
	Answer    string // of pairs: the baseline's
	Other     string // of pairs: the candidate's
}

// Row is a labelled case.
type Row struct {
	Line      int
	Case      string
	Cluster   string
	Slices    map[string]string // by column
	Human     string            // "": no label
	Raters    []string
	Judge     []string
	Swapped   string
	Item      Item
	Answer    string
	Candidate string // of a pair, whose baseline Answer is
}

// Labels are cases with people's labels.
type Labels struct {
	Rows    []Row
	Columns Columns // as found
}

// Bounds of a file of labels.
const (
	mostLabelBytes = 256 << 20
	mostRows       = 1_000_000
	mostColumns    = 200
	mostCell       = 1 << 20
)

// ReadLabels reads a CSV file with a header (RFC 4180, UTF-8, comma). It is strict:
// a row with another number of cells, a quote out of place, a repeated column or
// case, a column that was named and is not there is an error with its line.
func ReadLabels(file string, r io.Reader, c Columns) (*Labels, error) {
	limited := &io.LimitedReader{R: r, N: mostLabelBytes + 1}
	in := csv.NewReader(limited)
	in.ReuseRecord = true
	header, err := in.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s:1: the file is empty\n  hint: its first line names its columns, such as case,prompt,answer,human", file)
	case err != nil:
		return nil, labelError(file, err)
	}
	at := map[string]int{}
	if len(header) > mostColumns {
		return nil, fmt.Errorf("%s:1: %d columns, more than %d", file, len(header), mostColumns)
	}
	for i, name := range header {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		name = strings.TrimSpace(name)
		if _, twice := at[name]; twice {
			return nil, fmt.Errorf("%s:1: column %q is there twice", file, name)
		}
		at[name] = i
	}
	l := &Labels{}
	if l.Columns, err = c.found(at); err != nil {
		return nil, fmt.Errorf("%s:1: %w", file, err)
	}
	seen := map[string]int{}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, labelError(file, err)
		}
		line, _ := in.FieldPos(0)
		row, err := l.Columns.row(record, at)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		key := fmt.Sprintf("%q", append([]string{row.Case}, l.slices(&row)...))
		if before, twice := seen[key]; twice {
			return nil, fmt.Errorf("%s:%d: case %.100q is there already, in line %d\n  hint: name the columns that tell such rows apart by --slice, or number the cases", file, line, row.Case, before)
		}
		seen[key], row.Line = line, line
		if l.Rows = append(l.Rows, row); len(l.Rows) > mostRows {
			return nil, fmt.Errorf("%s:%d: more than %d rows", file, line, mostRows)
		}
	}
	if limited.N == 0 {
		return nil, fmt.Errorf("%s: the file is longer than %d MiB", file, mostLabelBytes>>20)
	}
	if len(l.Rows) == 0 {
		return nil, fmt.Errorf("%s:1: there are no rows below the header", file)
	}
	return l, nil
}

func labelError(file string, err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%s:%d:%d: %w", file, parse.Line, parse.Column, parse.Err)
	}
	return fmt.Errorf("reading %s: %w", file, err)
}

// found fills in the usual names of columns.
func (c Columns) found(at map[string]int) (Columns, error) {
	var missing []string
	one := func(name *string, what string, usual ...string) {
		if *name != "" {
			if _, ok := at[*name]; !ok {
				missing = append(missing, fmt.Sprintf("%s is to be column %q", what, *name))
			}
			return
		}
		for _, u := range usual {
			if _, ok := at[u]; ok {
				*name = u
				return
			}
		}
	}
	many := func(names *[]string, what string, usual ...string) {
		if len(*names) == 0 {
			for _, u := range usual {
				if _, ok := at[u]; ok {
					*names = append(*names, u)
				}
			}
			return
		}
		for i := range *names {
			one(&(*names)[i], what)
		}
	}
	c.Slices, c.Raters, c.Judge = slices.Clone(c.Slices), slices.Clone(c.Raters), slices.Clone(c.Judge)
	one(&c.Case, "the case", "case", "case_id", "id", "prompt_id")
	one(&c.Cluster, "the cluster", "cluster", "session", "document")
	many(&c.Slices, "a slice", "model", "variant", "language")
	one(&c.Human, "people's label", "human", "label", "human_final", "gold")
	many(&c.Raters, "a person's label", "human_1", "human_2", "human_3", "human_4", "human_5")
	many(&c.Judge, "the judge's label", "judge", "judge_2", "judge_3")
	one(&c.Swapped, "the judge's label of the other order", "judge_swapped")
	one(&c.Question, "the question", "prompt", "question")
	one(&c.Source, "the source", "source", "context")
	one(&c.Reference, "the reference", "reference")
	one(&c.Answer, "the answer", "answer", "answer_a", "response")
	one(&c.Other, "the candidate's answer", "answer_b")
	if len(missing) > 0 {
		return c, fmt.Errorf("%s, which is not in the file\n  hint: its columns are %s", strings.Join(missing, "; "), strings.Join(sortedKeys(at), ", "))
	}
	switch {
	case c.Case == "":
		return c, errors.New("no column is the id of a case\n  hint: name one by --case")
	case c.Human == "" && len(c.Raters) == 0:
		return c, errors.New("no column is a person's label\n  hint: name one by --human")
	}
	if c.Human == "" {
		c.Human = c.Raters[0]
	}
	return c, nil
}

func sortedKeys(at map[string]int) (out []string) {
	for k := range at {
		out = append(out, fmt.Sprintf("%.60q", k))
	}
	slices.Sort(out)
	if len(out) > 20 {
		out = append(out[:20], "…")
	}
	return out
}

func (c *Columns) row(record []string, at map[string]int) (Row, error) {
	for name, i := range at {
		if !utf8.ValidString(record[i]) {
			return Row{}, fmt.Errorf("column %q is not UTF-8", name)
		}
		if len(record[i]) > mostCell {
			return Row{}, fmt.Errorf("column %q holds more than 1 MiB", name)
		}
	}
	text := func(column string) string {
		if column == "" {
			return ""
		}
		return strings.Clone(record[at[column]]) // the reader uses its record again
	}
	label := func(column string) string { return strings.TrimSpace(text(column)) }
	r := Row{
		Case: label(c.Case), Cluster: label(c.Cluster), Human: label(c.Human), Swapped: label(c.Swapped), Slices: map[string]string{},
		Item: Item{text(c.Question), text(c.Source), text(c.Reference)}, Answer: text(c.Answer), Candidate: text(c.Other),
	}
	if r.Case == "" {
		return r, errors.New("the case has no id")
	}
	if r.Cluster == "" {
		r.Cluster = r.Case
	}
	for _, s := range c.Slices {
		r.Slices[s] = label(s)
	}
	for _, s := range c.Raters {
		r.Raters = append(r.Raters, label(s))
	}
	for _, s := range c.Judge {
		r.Judge = append(r.Judge, label(s))
	}
	return r, nil
}

// slices are the values of the slices of a row, in the order of the columns.
func (l *Labels) slices(r *Row) (out []string) {
	for _, c := range l.Columns.Slices {
		out = append(out, r.Slices[c])
	}
	return out
}

// Values lists the labels that people gave, in alphabetical order.
func (l *Labels) Values() []string {
	seen := map[string]bool{}
	for i := range l.Rows {
		seen[l.Rows[i].Human] = true
		for _, r := range l.Rows[i].Raters {
			seen[r] = true
		}
	}
	delete(seen, "")
	var out []string
	for v := range seen {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}
