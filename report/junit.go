package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/assay-llm/assay/contract"
)

type junitSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Time     string     `xml:"time,attr"`
	Suite    junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr,omitempty"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Out        string          `xml:"system-out,omitempty"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitFault `xml:"failure"`
	Error   *junitFault `xml:"error"`
	Out     *junitText  `xml:"system-out"`
}

type junitFault struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",innerxml"` // escaped, with its lines
}

type junitText struct {
	Text string `xml:",innerxml"`
}

// lines escapes text for XML and keeps its lines, which encoding/xml would
// write as character references.
func lines(s string) string {
	var b strings.Builder
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		_ = xml.EscapeText(&b, []byte(l)) // a Builder never fails
	}
	return b.String()
}

// JUnit writes the verdict as a test suite with a case a clause. A clause that
// fails is a failure; one that is inconclusive is an error, since it must not
// look green. So is a contract that demands nothing, and without a contract a
// client that was not fit.
func JUnit(w io.Writer, d *Document) error {
	s := junitSuite{
		Name: orElse(d.Run.Name, "assay"), Time: fmt.Sprintf("%.3f", d.Run.Elapsed.Seconds()),
		Out: d.Client.Line,
		Properties: []junitProperty{
			{"run", d.Run.ID},
			{"seed", fmt.Sprint(d.Run.Seed)},
			{"salt", d.Run.Salt},
			{"state", d.Run.State},
			{"assay", d.Run.Assay},
			{"grade", d.Grade},
			{"reason", d.Reason},
		},
	}
	if !d.Run.Start.IsZero() {
		s.Timestamp = d.Run.Start.UTC().Format("2006-01-02T15:04:05")
	}
	for _, c := range junitCases(d, "assay."+s.Name) {
		s.Tests++
		if c.Failure != nil {
			s.Failures++
		}
		if c.Error != nil {
			s.Errors++
		}
		s.Cases = append(s.Cases, c)
	}
	all := junitSuites{Name: s.Name, Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Time: s.Time, Suite: s}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+string(data)+"\n")
	return err
}

func junitCases(d *Document, class string) []junitCase {
	switch {
	case d.Verdict != nil && len(d.Verdict.Clauses) > 0:
		var cases []junitCase
		for _, r := range d.Verdict.Clauses {
			cases = append(cases, junitClause(r, class))
		}
		return cases
	case d.Verdict != nil:
		return []junitCase{junitError("contract", class, d.Reason)}
	case !d.Client.Fit:
		return []junitCase{junitError("client", class, d.Client.Line)}
	}
	return nil
}

func junitError(name, class, why string) junitCase {
	return junitCase{Name: name, Class: class, Time: "0", Error: &junitFault{Type: contract.Inconclusive.String(), Message: why, Text: lines(why)}}
}

func junitClause(r contract.Result, class string) junitCase {
	c := junitCase{Name: r.ID, Class: class, Time: "0"}
	text := lines(resultLines(r, ""))
	fault := &junitFault{Type: r.Grade.String(), Message: r.Reason, Text: text}
	switch r.Grade {
	case contract.Pass:
		c.Out = &junitText{text}
	case contract.Fail:
		c.Failure = fault
	default:
		c.Error = fault
	}
	return c
}

// resultLines is all that is known of a clause, members included.
func resultLines(r contract.Result, in string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s  %s\n", in, gradeText(r.Grade), resultText(r))
	if r.Need != "" {
		fmt.Fprintf(&b, "%s  need: %s\n", in, r.Need)
	}
	for _, c := range r.Counts {
		fmt.Fprintf(&b, "%s  %s\n", in, countsText(c))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "%s  note: %s\n", in, n)
	}
	for _, m := range r.Results {
		b.WriteString(resultLines(m, in+"  "))
	}
	return b.String()
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
