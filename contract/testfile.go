package contract

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// Test is a file of evidence and of what a contract is to make of it: a test of
// the contract, not of a service. The evidence is made without chance, so that a
// test that passes always passes.
type Test struct {
	Version   int        `yaml:"version,required" doc:"version of this format: 1"`
	Contract  Subject    `yaml:"contract,required" doc:"what is tested: a contract in place, the name of its file, or preset NAME"`
	Reference Reference  `yaml:"reference" doc:"registered values, instead of the contract's"`
	Cases     []TestCase `yaml:"cases,required" doc:"evidence, and what is expected"`
}

// Subject is the contract that a Test is about. Exactly one of its fields is set.
type Subject struct {
	File    string
	Preset  string
	InPlace *Contract
}

// TestCase is one piece of evidence with what is expected.
type TestCase struct {
	Name     string          `yaml:"name,required" doc:"what the case shows"`
	Only     Names           `yaml:"only" doc:"ids of the clauses that are judged; all if left out"`
	Every    config.Duration `yaml:"every" min:"1s" doc:"how often live rules look; every 30 seconds if left out"`
	Unfit    []string        `yaml:"unfit" doc:"why the run proves nothing"`
	Evidence []Stretch       `yaml:"evidence,required" doc:"what was seen, one stretch after the other"`
	Want     Expected        `yaml:"want,required" doc:"what the contract makes of it"`
}

// Expected is what a contract is to make of evidence. What is left out is not
// looked at.
type Expected struct {
	Grade     *Grade           `yaml:"grade" doc:"of the whole, as a run: pass, fail or inconclusive"`
	Clauses   map[string]Grade `yaml:"clauses" doc:"grades by id, as a run"`
	Reason    string           `yaml:"reason" doc:"what the reason of the verdict must contain"`
	Decisions *[]string        `yaml:"decisions" doc:"every change of a live rule, as AT CLAUSE PHASE, such as 12m T10 acting; [] if nothing changes"`
}

// Stretch is traffic of one or both variants for some time.
type Stretch struct {
	From      *config.Duration `yaml:"from" doc:"when it starts; when the one before ends, if left out"`
	For       config.Duration  `yaml:"for,required" min:">0s" max:"24h" doc:"how long it lasts"`
	Weight    config.Percent   `yaml:"weight" min:"0%" max:"100%" doc:"the candidate's share of the sessions, as they are assigned; a stretch with it begins a step of its own"`
	Baseline  *Traffic         `yaml:"baseline" doc:"what the baseline serves; nothing if left out"`
	Candidate *Traffic         `yaml:"candidate" doc:"what the candidate serves; nothing if left out"`
}

// Traffic is the requests of one variant and what became of them.
type Traffic struct {
	Rate     config.Rate       `yaml:"rate,required" doc:"requests a second, evenly spaced"`
	Workload string            `yaml:"workload" doc:"load if left out"`
	Labels   map[string]string `yaml:"labels" doc:"on every request"`
	TTFT     Spread            `yaml:"ttft" doc:"time to first token, such as 200ms, or 200ms spread 0.5; 200ms if left out"`
	TPOT     Spread            `yaml:"tpot" doc:"time per output token; 10ms if left out"`
	Output   int               `yaml:"output" min:"1" max:"10000" doc:"tokens of an answer; 20 if left out"`
	Failed   config.Percent    `yaml:"failed" min:"0%" max:"100%" doc:"share that fails"`
	Dropped  config.Percent    `yaml:"dropped" min:"0%" max:"100%" doc:"share that the client drops"`
	Hung     config.Percent    `yaml:"hung" min:"0%" max:"100%" doc:"share that never gets an answer"`
	Values   map[string]Spread `yaml:"values" doc:"values that checks wrote, by name: a number, a share such as 3% for yes or no, or 0.9 spread 0.05"`
}

// Spread is a distribution: a value, or a value with how far it spreads. A time
// is lognormal around its median, and its spread the standard deviation of its
// logarithm; a number is normal, and its spread the standard deviation; a share is
// of ones among zeros. The zero Spread is no distribution.
type Spread struct {
	Value float64
	Sd    float64
	dim   dimension
	text  string
}

// DecodeConfig reads "200ms", "200ms spread 0.5", "0.9" or "3%".
func (s *Spread) DecodeConfig(n *config.Node) {
	text := n.Scalar()
	if !n.IsScalar() || text == "" {
		n.Fault("wants a value", "write such as 200ms, or 200ms spread 0.5")
		return
	}
	value, sd, spread := strings.Cut(text, " spread ")
	p := parser{text: []rune(value)}
	negative := p.sign()
	a, err := p.amount("a value such as 200ms")
	if err == nil && p.at < len(p.text) {
		err = p.fault(p.column(), "expected the end, found "+p.found(), "write such as 200ms spread 0.5")
	}
	if e, is := err.(*NeedError); is {
		n.Fault(e.What, e.Hint)
		return
	}
	if s.Value = a.value; negative {
		s.Value = -a.value
	}
	s.dim, s.text = a.dim, text
	if !spread {
		return
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(sd), 64)
	if err != nil || !(v >= 0 && v <= 1e6) || s.dim == percent || s.dim == duration && v > 3 {
		n.Fault(fmt.Sprintf("%q is no spread", sd), "write such as 200ms spread 0.5, the standard deviation of the logarithm")
		return
	}
	s.Sd = v
}

// IsZero reports whether there is no distribution.
func (s Spread) IsZero() bool { return s == Spread{} }

// MarshalText writes the distribution as it was read.
func (s Spread) MarshalText() ([]byte, error) { return []byte(s.text), nil }

// ConfigSchema describes a distribution.
func (Spread) ConfigSchema() map[string]any {
	return map[string]any{"type": []any{"string", "number"}, "examples": []any{"200ms spread 0.5", 0.9, "3%"}}
}

// at is the i-th of a sequence of values whose every stretch has the
// distribution: additive recurrence by an irrational step, without chance.
func (s Spread) at(i int, step float64) float64 {
	u := math.Mod((float64(i)+0.5)*step, 1)
	switch {
	case s.dim == percent:
		return math.Floor(float64(i+1)*s.Value+1e-9) - math.Floor(float64(i)*s.Value+1e-9)
	case s.Sd == 0:
		return s.Value
	}
	z := math.Sqrt2 * math.Erfinv(2*min(max(u, 1e-9), 1-1e-9)-1)
	if s.dim == duration {
		return s.Value * math.Exp(s.Sd*z)
	}
	return s.Value + s.Sd*z
}

// DecodeConfig reads a contract in place, the name of a file, or "preset NAME".
func (s *Subject) DecodeConfig(n *config.Node) {
	if n.IsMapping() {
		s.InPlace = new(Contract)
		n.Decode(s.InPlace)
		return
	}
	text, ok := n.Text()
	if !ok {
		return
	}
	if name, is := strings.CutPrefix(text, "preset "); is {
		if s.Preset = strings.TrimSpace(name); !slices.Contains(Presets(), s.Preset) {
			n.Fault(fmt.Sprintf("there is no preset %q", s.Preset), "presets are "+strings.Join(Presets(), ", "))
		}
		return
	}
	if s.File = text; text == "" {
		n.Fault("wants a contract", "write contract: contract.yaml, or the contract in place")
	}
}

// ConfigSchema describes the three forms.
func (Subject) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{map[string]any{"type": "string", "minLength": 1}, config.SchemaOf(Contract{})}}
}

// The bounds on the evidence of a test.
const (
	mostMade  = 1_000_000 // requests of a case
	mostLooks = 100_000
)

// CheckConfig checks the version and the amount of evidence.
func (t *Test) CheckConfig(n *config.Node) {
	if t.Version != 1 {
		n.At("version").Fault(fmt.Sprintf("this program reads version 1, not %d", t.Version), "write version: 1")
	}
	for i, c := range t.Cases {
		at := n.At("cases").Items()[i]
		made, from, end := 0.0, time.Duration(0), time.Duration(0)
		for _, s := range c.Evidence {
			for _, traffic := range []*Traffic{s.Baseline, s.Candidate} {
				if traffic == nil {
					continue
				}
				made += float64(traffic.Rate) * time.Duration(s.For).Seconds()
				if sum := traffic.Failed + traffic.Dropped + traffic.Hung; sum > 1+1e-9 {
					at.At("evidence").Fault(fmt.Sprintf("what fails, is dropped and hangs adds up to %v of the requests", sum), "lower one of the shares")
				}
			}
			if s.From != nil {
				from = time.Duration(*s.From)
			}
			from += min(time.Duration(s.For), math.MaxInt64-from)
			end = max(end, from)
		}
		if made > mostMade {
			at.At("evidence").Fault(fmt.Sprintf("makes %s requests; the limit is %s", grouped(strconv.FormatFloat(made, 'f', 0, 64)), grouped(fmt.Sprint(mostMade))), "write a lower rate, or a shorter time")
		}
		if end/c.every() > mostLooks {
			at.Fault(fmt.Sprintf("looks more than %s times", grouped(fmt.Sprint(mostLooks))), "write a longer every")
		}
		if w := c.Want; w.Grade == nil && len(w.Clauses) == 0 && w.Reason == "" && w.Decisions == nil {
			at.At("want").Fault("expects nothing", "write grade:, clauses:, reason: or decisions:")
		}
	}
}

func (c TestCase) every() time.Duration {
	if c.Every == 0 {
		return 30 * time.Second
	}
	return time.Duration(c.Every)
}

// testEpoch is when the evidence of tests begins.
var testEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Outcome is what a contract made of the evidence of one case.
type Outcome struct {
	Case      string     `json:"case"`
	Pass      bool       `json:"pass"`
	Problems  []string   `json:"problems,omitempty"` // what differs from what is expected, a line each
	Verdict   Verdict    `json:"verdict"`
	Decisions []Decision `json:"decisions"`
}

// Run holds the contract against the evidence of each case. Tests of live rules
// look from the first instant to the last.
func (t *Test) Run(c *Contract) []Outcome {
	var out []Outcome
	if len(t.Reference.Values) > 0 {
		with := *c
		with.Reference = t.Reference
		c = &with
	}
	for _, tc := range t.Cases {
		judged := *c
		judged.Clauses = c.named()
		if len(tc.Only) > 0 {
			judged.Clauses = slices.DeleteFunc(judged.Clauses, func(c Clause) bool { return !slices.Contains(tc.Only, c.ID) })
		}
		e := tc.evidence()
		o := Outcome{Case: tc.Name, Verdict: Evaluate(&judged, e)}
		if tc.Want.Decisions != nil {
			o.Decisions = Replay(&judged, tc.history(e), tc.every())
		}
		o.Problems = tc.differences(c, o)
		o.Pass = len(o.Problems) == 0
		out = append(out, o)
	}
	return out
}

// Replay looks at a history every so often from its start, and at its end, and
// returns all decisions.
func Replay(c *Contract, h *History, every time.Duration) []Decision {
	all := []Decision{}
	replay(c, h, every, func(string, look) {}, func(d Decision) { all = append(all, d) })
	return all
}

// replay looks at a history, and hands over what each rule's clause said at each look
// and what was decided.
func replay(c *Contract, h *History, every time.Duration, said func(clause string, l look), decided func(Decision)) {
	var s State
	for at := h.Start().Add(every); ; at = at.Add(every) {
		last := !at.Before(h.End())
		if last {
			at = h.End()
		}
		var ds []Decision
		s, ds = c.next(s, h, at, said)
		for _, d := range ds {
			decided(d)
		}
		if last {
			return
		}
	}
}

// line writes a decision as tests expect it.
func (d Decision) line(from time.Time) string {
	to := string(d.To)
	if d.To == Quiet {
		to = "quiet"
	}
	name := d.Clause
	if _, label, ok := strings.Cut(d.Scope, ", "); ok {
		name += " " + label
	}
	return config.Duration(d.At.Sub(from)).String() + " " + name + " " + to
}

// differences says what is not as expected.
func (tc TestCase) differences(c *Contract, o Outcome) []string {
	var out []string
	differ := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, id := range tc.Only {
		if !slices.ContainsFunc(c.named(), func(c Clause) bool { return c.ID == id }) {
			differ("only: the contract has no clause %q", id)
		}
	}
	w := tc.Want
	if w.Grade != nil && *w.Grade != o.Verdict.Grade {
		differ("grade: got %s, want %s: %s", o.Verdict.Grade, *w.Grade, o.Verdict.Reason)
	}
	if !strings.Contains(o.Verdict.Reason, w.Reason) {
		differ("reason: got %q, want one with %q", o.Verdict.Reason, w.Reason)
	}
	for _, id := range slices.Sorted(maps.Keys(w.Clauses)) {
		i := slices.IndexFunc(o.Verdict.Clauses, func(r Result) bool { return r.ID == id })
		switch {
		case i < 0:
			differ("clauses: %s was not judged", id)
		case o.Verdict.Clauses[i].Grade != w.Clauses[id]:
			differ("clauses: %s: got %s, want %s: %s", id, o.Verdict.Clauses[i].Grade, w.Clauses[id], o.Verdict.Clauses[i].Reason)
		}
	}
	if w.Decisions == nil {
		return out
	}
	for i := range max(len(*w.Decisions), len(o.Decisions)) {
		got, want, why := "nothing more", "nothing more", ""
		if i < len(o.Decisions) {
			got, why = o.Decisions[i].line(testEpoch), ": "+o.Decisions[i].Reason
		}
		if i < len(*w.Decisions) {
			want = strings.Join(strings.Fields((*w.Decisions)[i]), " ")
		}
		if got != want {
			differ("decisions: got %s, want %s%s", got, want, why)
			for _, d := range o.Decisions {
				differ("  decided: %s", d.line(testEpoch))
			}
			break
		}
	}
	return out
}

// history is the evidence with the steps of the case.
func (tc TestCase) history(e Evidence) *History {
	h := NewHistory(testEpoch, e)
	from := time.Duration(0)
	for _, s := range tc.Evidence {
		if s.From != nil {
			from = time.Duration(*s.From)
		}
		if s.Weight > 0 {
			h.Split(testEpoch.Add(from), float64(s.Weight))
		}
		from += time.Duration(s.For)
	}
	return h
}

// evidence makes the records of a case.
func (tc TestCase) evidence() Evidence {
	e := Evidence{Candidate: "candidate", Unfit: tc.Unfit}
	from := time.Duration(0)
	for _, s := range tc.Evidence {
		if s.From != nil {
			from = time.Duration(*s.From)
		}
		until := from + time.Duration(s.For)
		for _, v := range []struct {
			name    string
			traffic *Traffic
		}{{baselineName, s.Baseline}, {"candidate", s.Candidate}} {
			if v.traffic == nil {
				continue
			}
			if v.name == baselineName {
				e.Baseline = baselineName
			}
			e.Records = append(e.Records, v.traffic.records(v.name, from, until, int64(len(e.Records)))...)
			e.Windows = append(e.Windows, record.Window{Variant: v.name, Workload: v.traffic.workload(), Start: record.At(from), End: record.At(until)})
		}
		from = until
	}
	e.Windows = joined(e.Windows)
	return e
}

// joined merges windows of the same variant and workload that touch or overlap.
func joined(windows []record.Window) []record.Window {
	slices.SortStableFunc(windows, func(a, b record.Window) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Start, b.Start))
	})
	var out []record.Window
	for _, w := range windows {
		if n := len(out); n > 0 && out[n-1].Variant == w.Variant && out[n-1].Workload == w.Workload && w.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, w.End)
			continue
		}
		out = append(out, w)
	}
	return out
}

func (t *Traffic) workload() string { return cmp.Or(t.Workload, "load") }

// What becomes of a request of made traffic.
const (
	failed = iota
	dropped
	hung
	answered
)

// fates returns what becomes of each request in turn, so that of every stretch each
// fate has its share. Where two are due, one waits for the next request.
func (t *Traffic) fates() func() int {
	shares := [...]float64{failed: float64(t.Failed), dropped: float64(t.Dropped), hung: float64(t.Hung)}
	var owed [len(shares)]float64
	return func() int {
		fate := answered
		for k, share := range shares {
			owed[k] += share
			if owed[k] > 1-1e-9 && fate == answered {
				owed[k]--
				fate = k
			}
		}
		return fate
	}
}

// records makes the requests of one stretch.
func (t *Traffic) records(variant string, from, until time.Duration, shot int64) []record.Record {
	n := int(math.Round(float64(t.Rate) * (until - from).Seconds()))
	rs := make([]record.Record, n)
	fates := t.fates()
	for i := range rs {
		due := from + time.Duration(float64(until-from)*(float64(i)+0.5)/float64(n))
		r := &rs[i]
		*r = record.Record{
			Shot: shot + int64(i), Variant: variant, Workload: t.workload(), Labels: t.Labels, Stream: true,
			Due: record.At(due), Send: record.At(due), Outcome: record.OK, Finish: "stop", Prompt: record.Tokens(50),
		}
		switch fates() {
		case failed:
			r.Outcome, r.Status, r.EOF = record.HTTP5xx, 503, record.At(due+10*time.Millisecond)
		case dropped:
			r.Outcome, r.Send = record.ClientOverload, 0
		case hung:
			r.Outcome, r.EOF = record.TotalTimeout, record.At(due+time.Hour)
		default:
			t.answer(r, due, i)
		}
	}
	return rs
}

// answer gives the i-th request a stream: the first token alone, the others in
// one more event.
func (t *Traffic) answer(r *record.Record, due time.Duration, i int) {
	ttft, tpot := t.TTFT, t.TPOT
	if ttft.IsZero() {
		ttft = Spread{Value: 200e6, dim: duration}
	}
	if tpot.IsZero() {
		tpot = Spread{Value: 10e6, dim: duration}
	}
	n := cmp.Or(t.Output, 20)
	first := due + time.Duration(ttft.at(i, 1/math.Phi))
	last := first
	r.Output = record.Tokens(int64(n))
	r.Events = []record.Event{{At: record.At(first), Kind: record.KindContent, Tokens: record.Tokens(1)}}
	if n > 1 {
		last += time.Duration(tpot.at(i, math.Sqrt2-1) * float64(n-1))
		r.Events = append(r.Events, record.Event{At: record.At(last), Kind: record.KindContent, Tokens: record.Tokens(int64(n - 1))})
	}
	r.EOF = record.At(last)
	if len(t.Values) > 0 {
		r.Values = make(map[string]float64, len(t.Values))
		for name, s := range t.Values {
			r.Values[name] = s.at(i, math.Sqrt(3)-1)
		}
	}
}
