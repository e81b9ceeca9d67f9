package contract

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/record"
)

// FalseAlarms is how often a rule of the preset seed-compat acts at one look though nothing
// changed, as it was simulated, and the same rule of production-17 at the same traffic.
type FalseAlarms struct {
	Clause         string `json:"clause"`
	Traffic        string `json:"traffic"` // what is drawn, for both variants and all of the past
	N              int    `json:"n"`       // requests, pairs or prompts in the window
	Looks          int    `json:"looks"`   // at independent windows
	Acted          int    `json:"acted"`   // of Looks
	CorrectedLooks int    `json:"corrected_looks"`
	CorrectedActed int    `json:"corrected_acted"`
}

// String says both rates in words.
func (f FalseAlarms) String() string {
	return fmt.Sprintf("acts in %s of windows of %s in which nothing changed (%s)", f.Rate(), grouped(strconv.Itoa(f.N)), f.Traffic)
}

// Rate is the share of the looks that acted.
func (f FalseAlarms) Rate() string { return shareOf(f.Acted, f.Looks) }

// Corrected is the same of production-17.
func (f FalseAlarms) Corrected() string { return shareOf(f.CorrectedActed, f.CorrectedLooks) }

func shareOf(k, n int) string {
	if n == 0 {
		return "not measured"
	}
	return value(record.Proportion, float64(k)/float64(n), 3)
}

//go:embed presets/seed-compat.tsv
var measuredRates string

// Measured lists the false alarms of the presets, in the order of the clauses as they are
// measured by
//
//	ASSAY_SLOW=1 go test ./contract -run FalseAlarmsOfThresholds -update
func Measured() (out []FalseAlarms) {
	for line := range strings.Lines(measuredRates) {
		var f FalseAlarms
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) != 7 {
			panic("contract: a row of seed-compat.tsv has not seven fields") // it is compiled in
		}
		f.Clause, f.Traffic = fields[0], fields[1]
		for i, to := range []*int{&f.N, &f.Looks, &f.Acted, &f.CorrectedLooks, &f.CorrectedActed} {
			n, err := strconv.Atoi(fields[2+i])
			if err != nil {
				panic("contract: " + err.Error())
			}
			*to = n
		}
		out = append(out, f)
	}
	return out
}
