package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// fault is something wrong with a candidate that a check has to find, beside a
// baseline without it.
type fault struct {
	check string
	name  string // of the fault: "slot lost at turn k"
	doc   string // what the model does, and how its clean twin errs: one sentence
	by    string // what tells of it: a clause, or the code of a finding
	where string // what a check has to place, "": nothing

	// play plays one seed: the baseline is clean, and so is the candidate unless it
	// is to be faulty. Everything random in it depends on the seed alone.
	play func(ctx context.Context, seed uint64, faulty bool) (told, error)
}

// told is what the check said of one seed.
type told struct {
	found  bool // the fault was reported, or a clause failed by it
	placed bool // and where it is, right
}

// faults lists all, check by check.
func faults() []fault {
	return slices.Concat(consistencyFaults(), contextFaults(), dialogueFaults(), driftFaults(), exactFaults(), hallucinationFaults(), likelihoodFaults(), noiseFaults(), safetyFaults())
}

// side is one variant: a model of ability, with errors of its own.
type side = check.Asker

// run runs checks on a baseline and a candidate, as a run does but without wire,
// and judges them by clauses such as "share(exact.right) >= baseline - 10 points".
// Sets are by the name that configurations give them; nil: there are none.
func run(ctx context.Context, seed uint64, baseline, candidate side, sets map[string]*corpus.Set, clauses []string, checks ...check.Declared) (contract.Verdict, []*check.Outcome, error) {
	return runUnder(ctx, seed, baseline, candidate, sets, clauses, nil, checks...)
}

// runUnder is run with a load for checks that run under one; nil: there is none.
func runUnder(ctx context.Context, seed uint64, baseline, candidate side, sets map[string]*corpus.Set, clauses []string, load func(context.Context, string, func(context.Context) error) error, checks ...check.Declared) (contract.Verdict, []*check.Outcome, error) {
	outcomes, err := check.Run(ctx, check.Config{
		Load:   load,
		Checks: checks, Seed: seed, Sets: sets, Retries: -1,
		Variants: []check.Variant{{Name: "baseline", Model: "clean", Asker: baseline, Can: can(baseline)}, {Name: "candidate", Model: "planted", Asker: candidate, Can: can(candidate)}},
	})
	if err != nil {
		return contract.Verdict{}, nil, err
	}
	var (
		k        contract.Contract
		e        = contract.Evidence{Baseline: "baseline", Candidate: "candidate"}
		document = []byte("version: 1\nclauses:\n")
	)
	for _, need := range clauses {
		document = fmt.Appendf(document, "  - need: %q\n", need)
	}
	if len(clauses) > 0 {
		if err := config.Decode("clauses", document, &k); err != nil {
			return contract.Verdict{}, nil, err
		}
	}
	for _, o := range outcomes {
		if o.Why != "" {
			return contract.Verdict{}, nil, fmt.Errorf("the check %s proves nothing: %s", o.Check, o.Why)
		}
		e.Records = append(e.Records, o.Records...)
		c := contract.Checked{Name: o.Check, Signatures: o.Signatures, Estimates: o.Estimates}
		for _, v := range o.Values {
			c.Metrics = append(c.Metrics, v.Metric(o.Check))
		}
		e.Checks = append(e.Checks, c)
	}
	return contract.Evaluate(&k, e), outcomes, nil
}

// can is what a side says that it can do.
func can(s side) check.Capabilities {
	if able, ok := s.(interface{ Can() check.Capabilities }); ok {
		return able.Can()
	}
	return nil
}

// failed reports whether a clause failed.
func failed(v contract.Verdict) bool {
	return slices.ContainsFunc(v.Clauses, func(r contract.Result) bool { return r.Grade == contract.Fail })
}

// finding returns the first finding of that code about the candidate that is a
// warning or an alarm.
func finding(outcomes []*check.Outcome, code string) (f check.Finding, ok bool) {
	for _, o := range outcomes {
		for _, f := range o.Findings {
			if f.Code == code && f.Severity != check.Info && (f.Variant == "" || f.Variant == "candidate") {
				return f, true
			}
		}
	}
	return check.Finding{}, false
}

// answer is what an honest server sends with a text.
func answer(text string, q *check.Question) *check.Answer {
	size := len(q.Prompt)
	for _, m := range q.Messages {
		size += len(m.Content)
	}
	return &check.Answer{
		Outcome: record.OK, Status: 200, Text: text, Finish: "stop",
		Prompt: record.Tokens(int64(size/4 + 1)), Output: record.Tokens(int64(len(text)/4 + 1)),
	}
}

// chance is where a model draws its errors and its wording from: equal for equal
// names and a seed, so that a question has one answer however often it is asked.
func chance(seed uint64, names ...string) *rand.Rand {
	h := fnv.New64a()
	for _, s := range names {
		_, _ = fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
