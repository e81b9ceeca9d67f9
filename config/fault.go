package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Fault is one thing that is wrong with a document, where it is, and the one
// next step that mends it. It is an error.
type Fault struct {
	File   string // as given to Decode
	Line   int    // from 1
	Column int    // from 1, in characters
	Path   string // "variants.candidate.url", "clauses[2].need"; empty: the document itself
	What   string // what is wrong
	Hint   string // what to do about it; may be empty
	Code   string // a stable short word for programs, from whoever judged the value; mostly empty
}

// Error returns "file:line:column: path: what" and, on a second line, the hint.
func (f Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.What)
	if f.Hint != "" {
		b.WriteString("\n  hint: " + f.Hint)
	}
	return b.String()
}

// Faults are all the faults of one document, sorted by position. At most
// MaxFaults are kept; when there are more, the last element says how many.
type Faults []Fault

// MaxFaults is the number of faults that are reported one by one.
const MaxFaults = 50

// Error returns the faults, one after the other, each on its own lines.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults as errors, for errors.As.
func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

// gathered bounds the faults held in memory: a hostile document could have one
// for each of its nodes, and only MaxFaults of them are shown.
const gathered = 500

// faultList gathers the faults of one document while it is decoded.
type faultList struct {
	list  []Fault
	total int
}

func (l *faultList) add(f Fault) {
	if l.full() {
		l.total++
		return
	}
	const most = 500 // characters of a part; who says more repeats the document
	f.What, f.Hint, f.Path = oneLine(clipTo(f.What, most)), oneLine(clipTo(f.Hint, most)), oneLine(f.Path)
	l.list = append(l.list, f)
	l.total++
}

// oneLine escapes what could make a terminal or a log show something else: a
// fault may repeat what the document holds.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// full reports whether further faults are only counted; the caller can then
// spare itself the search for a suggestion.
func (l *faultList) full() bool { return len(l.list) >= gathered }

// err returns the faults in order of position, or nil.
func (l *faultList) err() error {
	if l.total == 0 {
		return nil
	}
	fs := Faults(slices.Clone(l.list))
	fs.Sort()
	if l.total > MaxFaults {
		at := fs[min(MaxFaults, len(fs)-1)]
		rest := l.total - MaxFaults
		fs = append(fs[:MaxFaults:MaxFaults], Fault{
			File: at.File, Line: at.Line, Column: at.Column,
			What: "and " + plural(rest, "more fault"),
			Hint: "mend those above first",
		})
	}
	return fs
}

// Sort puts the faults in order of position, for those who add to them.
func (fs Faults) Sort() {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
