package main

import (
	"errors"
	"testing"

	"github.com/assay-llm/assay/report"
)

// TestExitOfASweep: needs that were not shown to hold everywhere are no success,
// and a server that answers nothing but errors was not measured.
func TestExitOfASweep(t *testing.T) {
	for _, tt := range []struct {
		name     string
		needs    []string
		failed   int // of 100 requests of each point
		outcomes []string
		want     int
	}{
		{"measured", nil, 0, []string{report.Measured, report.Measured}, exitPass},
		{"a queue that grows", nil, 0, []string{report.Measured, report.Fails}, exitPass},
		{"client unfit", nil, 0, []string{report.Measured, report.Unfit}, exitInconclusive},
		{"run that proves nothing", nil, 0, []string{report.Undecided}, exitInconclusive},
		{"no point", nil, 0, nil, exitInconclusive},
		{"errors only", nil, 100, []string{report.Measured}, exitUnmeasured},
		{"needs hold", []string{"x"}, 0, []string{report.Holds, report.Holds}, exitPass},
		{"needs fail", []string{"x"}, 0, []string{report.Holds, report.Fails, report.Undecided}, exitFail},
		{"needs undecided", []string{"x"}, 0, []string{report.Holds, report.Undecided}, exitInconclusive},
		{"needs and errors only", []string{"x"}, 100, []string{report.Fails}, exitUnmeasured},
	} {
		d := &report.Capacity{Sweep: true, Needs: tt.needs}
		for _, o := range tt.outcomes {
			d.Probes = append(d.Probes, report.Probe{Outcome: o, Requests: 100, Failed: tt.failed})
		}
		got := exitPass
		if e, ok := errors.AsType[*exit](ofCapacity(d)); ok {
			got = e.code
		}
		if got != tt.want {
			t.Errorf("%s: exit %d, want %d", tt.name, got, tt.want)
		}
	}
}
