package contract

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Schema names the JSON form of a Verdict.
const Schema = "assay.verdict/1"

// Verdict is the judgement of one contract over the records of one run. The
// zero Verdict is inconclusive. Its JSON form is stable under [Schema], holds
// no NaN and no infinity, and reads back to an equal Verdict.
type Verdict struct {
	Schema     string   `json:"schema"`
	Contract   string   `json:"contract,omitempty"` // the contract's name
	Grade      Grade    `json:"grade"`
	Reason     string   `json:"reason"` // one sentence: what decided, or what is missing
	Confidence float64  `json:"confidence"`
	Baseline   string   `json:"baseline,omitempty"`   // name of the variant that limits refer to; "" if there is none
	Candidate  string   `json:"candidate,omitempty"`  // name of the judged variant
	WrongPass  float64  `json:"wrong_pass,omitempty"` // how often a candidate with a quantity just beyond its limit passes, at most
	WrongFail  float64  `json:"wrong_fail,omitempty"` // how often a candidate with every quantity exactly at its limit fails, at most (union bound)
	Clauses    []Result `json:"clauses"`
	Unfit      []string `json:"unfit,omitempty"` // why the whole run proves nothing; any of them makes every grade inconclusive
}

// With is the verdict with more results beside its clauses; the worst of all
// decides. A zero verdict becomes that of these results alone.
func (v Verdict) With(more ...Result) Verdict {
	if len(more) == 0 {
		return v
	}
	v.Schema, v.Confidence = Schema, cmp.Or(v.Confidence, DefaultConfidence)
	v.Clauses = append(slices.Clone(v.Clauses), more...)
	v.Grade, v.Reason = summary(v.Clauses, v.Unfit)
	v.WrongPass, v.WrongFail = unionBound(v.Clauses, len(v.Clauses))
	return v
}

// Kind says what a Result is about.
type Kind string

// The kinds of results.
const (
	KindClause Kind = "clause" // one comparison on one workload
	KindEach   Kind = "each"   // one clause judged on several workloads, each by itself; the worst counts
	KindSome   Kind = "some"   // the same below a not: the best counts
	KindAll    Kind = "all"    // a group; the worst counts
	KindAny    Kind = "any"    // a group; the best counts
	KindNot    Kind = "not"    // one clause, turned into its contrary
	KindCount  Kind = "count"  // a group; so many members must pass
	KindJoint  Kind = "joint"  // vetoes, all of which must pass, and objectives that are traded for each other
	KindCheck  Kind = "check"  // a check that the run declared and that proves nothing; inconclusive whatever the clauses say
)

// Result is the judgement of one clause, with its evidence. Fields that do not
// apply are zero: a group has Results and no figures, an absolute limit has no
// Change.
type Result struct {
	ID       string `json:"id"`
	Kind     Kind   `json:"kind"`
	Need     string `json:"need,omitempty"`     // the comparison as the contract has it
	Scope    string `json:"scope,omitempty"`    // which requests, in words: "chat, tier=gold"
	Workload string `json:"workload,omitempty"` // the workload judged, when it is one
	Severity string `json:"severity,omitempty"` // as the contract has it; it softens no grade
	Grade    Grade  `json:"grade"`
	Reason   string `json:"reason"`         // why, in words, with figures
	Mark     string `json:"mark,omitempty"` // what a clause that only marks puts on the candidate: high-risk

	Quantity   *Quantity         `json:"quantity,omitempty"`
	Compare    Compare           `json:"compare,omitempty"`
	Limit      *Bound            `json:"limit,omitempty"`
	Unit       record.Unit       `json:"unit,omitempty"`       // of Baseline, Candidate and Limit.Value
	Confidence float64           `json:"confidence,omitempty"` // of the one-sided bound that decides; intervals are two-sided with both ends at it
	Look       *Interim          `json:"look,omitempty"`       // of a run that may stop early: at which look it was judged; Confidence is that look's, WrongPass and WrongFail are over all looks
	WrongPass  float64           `json:"wrong_pass,omitempty"` // how often it passes though the candidate lies just beyond its limit, at most; 0 for a fact of the run
	WrongFail  float64           `json:"wrong_fail,omitempty"` // how often it fails though the candidate lies exactly at its limit, at most (union bound over members)
	Baseline   *Figure           `json:"baseline,omitempty"`
	Candidate  *Figure           `json:"candidate,omitempty"`
	Change     *Figure           `json:"change,omitempty"`    // candidate against baseline
	ChangeIs   ChangeKind        `json:"change_is,omitempty"` // what Change is
	Counts     []Counts          `json:"counts,omitempty"`    // the requests behind the figures: the candidate's, then the baseline's
	Signature  *record.Signature `json:"signature,omitempty"` // how the values of a check came about
	Shortfall  int64             `json:"shortfall,omitempty"` // about how many more requests of each variant would decide it; 0: decided, or unknown
	Cost       *Cost             `json:"cost,omitempty"`      // of that shortfall; null: there is none, or it is not known
	Detects    *float64          `json:"detects,omitempty"`   // least true change, or value where the limit is absolute, that fails in four runs of this size in five; null: not known, or a fact of the run
	Notes      []string          `json:"notes,omitempty"`     // what a reader must know of these figures
	Results    []Result          `json:"results,omitempty"`   // members of a group, vetoes, or workloads
	Joint      *Tradeoff         `json:"joint,omitempty"`     // of a joint clause
}

// ChangeKind says how a change is expressed.
type ChangeKind string

// The kinds of changes.
const (
	ChangeRatio      ChangeKind = "ratio"      // candidate / baseline: 1.08 is 8 % more
	ChangeDifference ChangeKind = "difference" // candidate − baseline, in Unit
)

// Bound is the limit of a clause.
type Bound struct {
	Text   string   `json:"text"`             // as the contract has it: "baseline * 1.05"
	Value  *float64 `json:"value"`            // in the result's unit; against a baseline, at the baseline's own value; null: unknown
	Change *float64 `json:"change,omitempty"` // the limit on Result.Change; null: an absolute limit
}

// Counts is the ledger of the requests of one variant that a clause looked at.
// Offered = Completed + Failed + Dropped + Cancelled.
type Counts struct {
	Variant   string `json:"variant"`
	Offered   int    `json:"offered"`
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
	Dropped   int    `json:"dropped"`         // by the client's own fault; no part of any figure
	Cancelled int    `json:"cancelled"`       // as planned; only their tokens are part of a figure
	Missing   int    `json:"missing"`         // completed, and should have a value, but has none
	Undefined int    `json:"undefined"`       // completed, and has no value by definition (the TPOT of one token)
	Aside     int    `json:"aside,omitempty"` // completed before they would have been cancelled as planned; no part of a distribution
}

// judged is the number of requests that a figure can speak about.
func (c Counts) judged() int { return c.Completed + c.Failed - c.Aside }

// Figure is an estimate that can be written as JSON: what is not finite becomes
// null, with a word beside it ("none", "+inf", "-inf"). Times are nanoseconds.
type Figure struct{ stat.Estimate }

type figureJSON struct {
	Value      *float64      `json:"value"`
	ValueWord  string        `json:"value_word,omitempty"`
	Lo         *float64      `json:"lo"`
	LoWord     string        `json:"lo_word,omitempty"`
	Hi         *float64      `json:"hi"`
	HiWord     string        `json:"hi_word,omitempty"`
	Confidence float64       `json:"confidence"`
	N          int           `json:"n"`
	Effective  *float64      `json:"effective_n"`
	Over       int           `json:"over"`
	Method     string        `json:"method,omitempty"`
	Warnings   []warningJSON `json:"warnings,omitempty"`
}

type warningJSON struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// nullable splits a number into what JSON can hold and a word for the rest.
func nullable(x float64) (*float64, string) {
	switch {
	case math.IsNaN(x):
		return nil, "none"
	case math.IsInf(x, 1):
		return nil, "+inf"
	case math.IsInf(x, -1):
		return nil, "-inf"
	}
	return &x, ""
}

func number(x *float64, word string) float64 {
	switch {
	case x != nil:
		return *x
	case word == "+inf":
		return math.Inf(1)
	case word == "-inf":
		return math.Inf(-1)
	}
	return math.NaN()
}

// MarshalJSON writes the figure without NaN and infinity.
func (f Figure) MarshalJSON() ([]byte, error) {
	j := figureJSON{N: f.N, Over: f.Over, Method: f.Method}
	j.Value, j.ValueWord = nullable(f.Value)
	j.Lo, j.LoWord = nullable(f.Lo)
	j.Hi, j.HiWord = nullable(f.Hi)
	j.Effective, _ = nullable(f.Effective)
	if c, _ := nullable(f.Confidence); c != nil {
		j.Confidence = *c
	}
	for _, w := range f.Warnings {
		j.Warnings = append(j.Warnings, warningJSON{w.Code, w.Text})
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Figure) UnmarshalJSON(b []byte) error {
	var j figureJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	f.Estimate = stat.Estimate{
		Value: number(j.Value, j.ValueWord), Lo: number(j.Lo, j.LoWord), Hi: number(j.Hi, j.HiWord),
		Confidence: j.Confidence, N: j.N, Effective: number(j.Effective, ""), Over: j.Over, Method: j.Method,
	}
	for _, w := range j.Warnings {
		f.Warnings = append(f.Warnings, stat.Warning{Code: w.Code, Text: w.Text})
	}
	return nil
}
