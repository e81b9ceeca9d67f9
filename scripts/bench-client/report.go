//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is one quantity of the table.
type row struct {
	Quantity string   `json:"quantity"`
	Unit     string   `json:"unit"`
	Measured *float64 `json:"measured"` // median of the rounds; null: could not be measured
	Least    *float64 `json:"least"`    // of the rounds
	Greatest *float64 `json:"greatest"`
	N        int      `json:"n"`    // rounds, or observations of a distribution
	Goal     *float64 `json:"goal"` // null: there is none
	AtLeast  bool     `json:"at_least"`
	Verdict  string   `json:"verdict"` // met, missed, not measured; "": no goal
}

const (
	met         = "met"
	missed      = "missed"
	notMeasured = "not measured"
)

// newRow makes a row of rounds, without a goal.
func newRow(quantity, unit string, rounds []float64) row {
	r := row{Quantity: quantity, Unit: unit, N: len(rounds)}
	if len(rounds) == 0 {
		r.Verdict = notMeasured
		return r
	}
	s := slices.Sorted(slices.Values(rounds))
	median := (s[(len(s)-1)/2] + s[len(s)/2]) / 2
	r.Measured, r.Least, r.Greatest = &median, &s[0], &s[len(s)-1]
	return r
}

// atMost and atLeast give the row a goal. What was not measured has not met it.
func (r row) atMost(goal float64) row  { return r.judged(goal, false) }
func (r row) atLeast(goal float64) row { return r.judged(goal, true) }

func (r row) judged(goal float64, atLeast bool) row {
	r.Goal, r.AtLeast = &goal, atLeast
	switch {
	case r.Measured == nil:
		r.Verdict = notMeasured
	case atLeast && *r.Measured >= goal, !atLeast && *r.Measured <= goal:
		r.Verdict = met
	default:
		r.Verdict = missed
	}
	return r
}

// report is all that one run of the program found.
type report struct {
	Schema  string  `json:"schema"`
	Machine machine `json:"machine"`
	Rounds  int     `json:"rounds"`
	Rows    []row   `json:"rows"`
	Verdict string  `json:"verdict"`
}

// machine is what the absolute numbers belong to.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Load   string `json:"load"` // 1, 5 and 15 minutes, before the run
}

func thisMachine() machine {
	m := machine{CPU: "unknown CPU", Cores: runtime.NumCPU(), Kernel: "unknown", Go: runtime.Version(), Load: "unknown"}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
			if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	return m
}

func (r *report) count(verdict string) int {
	n := 0
	for i := range r.Rows {
		if r.Rows[i].Verdict == verdict {
			n++
		}
	}
	return n
}

// judge writes the verdict's line.
func (r *report) judge() {
	n := r.count(met)
	goals := n + r.count(missed)
	for i := range r.Rows {
		if r.Rows[i].Goal != nil && r.Rows[i].Measured == nil {
			goals++
		}
	}
	r.Verdict = fmt.Sprintf("%d of %d goals met", n, goals)
	for _, verdict := range []string{missed, notMeasured} {
		var names []string
		for i := range r.Rows {
			if r.Rows[i].Verdict == verdict {
				names = append(names, r.Rows[i].Quantity)
			}
		}
		if len(names) > 0 {
			r.Verdict += "; " + verdict + ": " + strings.Join(names, "; ")
		}
	}
}

func (r *report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

func (r *report) text(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "%s, %d cores, Linux %s, %s; load before %s; %d rounds\n\n", m.CPU, m.Cores, m.Kernel, m.Go, m.Load, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "quantity\tmeasured\tspread\tgoal\tverdict")
	for i := range r.Rows {
		x := &r.Rows[i]
		measured, spread, goal := "–", "", ""
		if x.Measured != nil {
			measured = number(*x.Measured, x.Unit)
			if *x.Least < *x.Greatest {
				spread = number(*x.Least, "") + " – " + number(*x.Greatest, "")
			}
		}
		if x.Goal != nil {
			goal = "≤ " + number(*x.Goal, x.Unit)
			if x.AtLeast {
				goal = "≥ " + number(*x.Goal, x.Unit)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", x.Quantity, measured, spread, goal, x.Verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nverdict: %s\n", r.Verdict)
	return err
}

// number prints with three digits that count, or as a whole number.
func number(v float64, unit string) string {
	s := fmt.Sprintf("%.3g", v)
	if v >= 100 {
		s = fmt.Sprintf("%.0f", v)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
	}
	if unit == "" {
		return s
	}
	return s + " " + unit
}
