package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/assay-llm/assay/contract"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	Automation  sarifAutomation   `json:"automationDetails"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifAutomation struct {
	ID string `json:"id"`
}

type sarifInvocation struct {
	Successful bool   `json:"executionSuccessful"` // whether it could be measured, not whether it passed
	Start      string `json:"startTimeUtc,omitempty"`
}

type sarifResult struct {
	Rule         string            `json:"ruleId"`
	Kind         string            `json:"kind"`
	Level        string            `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			Line int `json:"startLine"`
		} `json:"region"`
	} `json:"physicalLocation"`
}

// noClause is the rule of a finding that belongs to the run as a whole.
const noClause = "verdict"

// SARIF writes the verdict in the Static Analysis Results Interchange Format 2.1.0
// (OASIS), for the pages of code hosts: a rule for each clause, and a result for each
// that did not pass, or for a run that proves nothing as a whole. What is
// inconclusive is an error too, so that it never looks like a pass; its text says
// which. Clauses that pass have no result, since code hosts raise an alert for each.
//
// Every result points at the first line of the suite's file: a verdict is about a
// service, not about a line.
func SARIF(w io.Writer, d *Document) error {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "Assay", Version: d.Run.Assay, Rules: []sarifRule{}}},
		Automation:  sarifAutomation{"assay/" + orElse(d.Run.Name, "run") + "/" + d.Run.ID},
		Invocations: []sarifInvocation{{Successful: d.Client.Fit && d.Run.State == "done"}},
		Results:     []sarifResult{},
	}
	if !d.Run.Start.IsZero() {
		run.Invocations[0].Start = d.Run.Start.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	add := func(rule, about string, g contract.Grade, text string) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{rule, sarifText{about}})
		if g != contract.Pass {
			run.Results = append(run.Results, sarifResult{
				Rule: rule, Kind: "fail", Level: "error", Message: sarifText{text}, Locations: []sarifLocation{located(d)},
				Fingerprints: map[string]string{"assay/clause": orElse(d.Run.Name, "run") + "/" + rule},
			})
		}
	}
	switch {
	case d.Verdict != nil && len(d.Verdict.Clauses) > 0:
		for _, c := range d.Verdict.Clauses {
			add(c.ID, orElse(c.Need, c.ID), c.Grade, strings.TrimSpace(resultLines(c, "")))
		}
		if len(d.Verdict.Unfit) > 0 {
			add(noClause, "the run as a whole proves something", contract.Inconclusive, d.Reason)
		}
	case d.Verdict != nil:
		add(noClause, "the contract demands something", contract.Inconclusive, d.Reason)
	case !d.Client.Fit:
		add(noClause, "the client was fit to measure", contract.Inconclusive, d.Client.Line)
	}
	return writeJSON(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// located is the suite's file, relative to wherever the command ran: code hosts
// take no paths of a machine.
func located(d *Document) (l sarifLocation) {
	file := filepath.ToSlash(orElse(d.Run.SuiteFile, "suite.yaml"))
	if filepath.IsAbs(file) || strings.HasPrefix(file, "../") {
		file = filepath.Base(file)
	}
	l.Physical.Artifact.URI = uriPath(file)
	l.Physical.Region.Line = 1
	return l
}

// uriPath escapes a path for use as a relative reference (RFC 3986).
func uriPath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
