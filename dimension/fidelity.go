package dimension

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/record"
)

// FidelityConfig is the configuration of Fidelity.
type FidelityConfig struct {
	Asking `yaml:",inline"`

	Judge        check.Endpoint    `yaml:"judge" doc:"the model that judges"`
	Judges       []check.Endpoint  `yaml:"judges" doc:"instead of judge: a jury of 3, 5 or more models, whose middle mark counts"`
	Criteria     []string          `yaml:"criteria" doc:"what is judged: consistency, completeness, compliance, better (beside the baseline's answer) or a name of rubric; better if left out"`
	Rubric       []judge.Criterion `yaml:"rubric" doc:"criteria of one's own"`
	Calibration  check.FileRef     `yaml:"calibration" doc:"file of cases that people labelled, with the judge's stored verdicts, as assay judge calibrate reads it: a fifth is judged again to find out whether the judge has drifted"`
	Calibrates   string            `yaml:"calibrates" doc:"the criterion that the labels are of, where several could be meant"`
	Calibrations []Calibration     `yaml:"calibrations" most:"100" doc:"instead of calibration: several files, one for each criterion, kind of case and juror"`
	Schema       bool              `yaml:"schema" doc:"the judge's endpoint is known to obey JSON schemas; found out if left out"`
}

// CheckConfig wants criteria that there are.
func (c *FidelityConfig) CheckConfig(n *config.Node) {
	all, err := c.criteria()
	if err != nil {
		n.Fault(err.Error(), "docs/judge.md has the criteria that are built in, and how to write others")
		return
	}
	if c.Calibrates != "" && !slices.ContainsFunc(all, func(k judge.Criterion) bool { return k.Name == c.Calibrates }) {
		n.Fault(fmt.Sprintf("calibrates names %q, which is none of the criteria", c.Calibrates), "name one of those that are judged")
	}
	c.checkJury(n)
	c.checkCalibrations(n, all)
	compared := 0
	for _, k := range all {
		if len(k.Levels) == 0 {
			compared++
		}
		if k.Name == "judge" {
			n.Fault(`a criterion cannot be named "judge"`, "that is the value of the comparison")
		}
	}
	if compared > 1 {
		n.Fault(fmt.Sprintf("%d criteria compare with the baseline", compared), "give levels to all but one")
	}
}

// checkCalibrations wants files that say what they are of, and criteria whose corrected
// values have names of their own.
func (c *FidelityConfig) checkCalibrations(n *config.Node, criteria []judge.Criterion) {
	if !c.Calibration.IsZero() && len(c.Calibrations) > 0 {
		n.Fault("there is a calibration and calibrations", "write one or the other")
	}
	for i, k := range c.Calibrations {
		at := n.At("calibrations").Items()[i]
		if k.Criterion != "" && !slices.ContainsFunc(criteria, func(o judge.Criterion) bool { return o.Name == k.Criterion }) {
			at.At("criterion").Fault(fmt.Sprintf("%q is none of the criteria", k.Criterion), "name one of those that are judged")
		}
		switch {
		case c.juror(k.Judge) >= 0:
		case k.Judge == "":
			at.Fault("the file's verdicts are of one judge, and there is a jury", "write judge: with its model")
		default:
			at.At("judge").Fault(fmt.Sprintf("%q is not who judges, or several are called so", k.Judge), "write the model of one that does, or MODEL at URL")
		}
	}
	for _, i := range c.calibrated(criteria) {
		if slices.ContainsFunc(criteria, func(o judge.Criterion) bool { return value(&o) == corrected(&criteria[i]) }) {
			n.Fault(fmt.Sprintf("a criterion cannot be named %q", corrected(&criteria[i])), "that is the corrected value of "+criteria[i].Name)
		}
	}
}

// checkJury wants one judge, or so many that one stands in the middle.
func (c *FidelityConfig) checkJury(n *config.Node) {
	switch jury := c.Judges; {
	case len(jury) == 0 && c.Judge.IsZero():
		n.Fault("nobody judges", "write judge: {url, model}, or several under judges")
	case len(jury) == 0:
	case !c.Judge.IsZero():
		n.Fault("there is a judge and a jury", "write judge or judges")
	case len(jury)%2 == 0 || len(jury) > mostJurors:
		n.Fault(fmt.Sprintf("%d judges", len(jury)), fmt.Sprintf("name an odd number up to %d, so that one stands in the middle", mostJurors))
	case !c.Calibration.IsZero():
		n.Fault("the labels' verdicts are of one judge, and there is a jury", "write calibrations: with a file for each judge, as assay judge calibrate saves it")
	default:
		for i, e := range jury {
			if slices.ContainsFunc(jury[:i], func(x check.Endpoint) bool { return x.Name() == e.Name() }) {
				n.Fault(e.Name()+" is on the jury twice", "its second voice would be the first once more: name another model")
			}
		}
	}
}

const mostJurors = 15

// jury are the endpoints that judge.
func (c *FidelityConfig) jury() []check.Endpoint {
	if len(c.Judges) > 0 {
		return c.Judges
	}
	return []check.Endpoint{c.Judge}
}

// criteria are those that are named.
func (c *FidelityConfig) criteria() ([]judge.Criterion, error) {
	known := append(slices.Clone(c.Rubric), judge.Builtin()...)
	named := c.Criteria
	if len(named) == 0 {
		named = []string{"better"}
	}
	var out []judge.Criterion
	for i, name := range named {
		at := slices.IndexFunc(known, func(k judge.Criterion) bool { return k.Name == name })
		switch {
		case at < 0:
			return nil, fmt.Errorf("criterion %q is none", name)
		case slices.Contains(named[:i], name):
			return nil, fmt.Errorf("criterion %q is named twice", name)
		}
		out = append(out, known[at])
	}
	return out, nil
}

// value is the name of the number that a criterion gives.
func value(k *judge.Criterion) string {
	if len(k.Levels) == 0 {
		return "judge"
	}
	return k.Name
}

// Fidelity has a judge mark answers.
var Fidelity = &check.Check{
	Name:   "fidelity",
	Doc:    "what a judge says of answers: each by a rubric, and beside the baseline's in both orders",
	Config: func() any { return new(FidelityConfig) },
	Values: func(conf any) (out []check.Value) {
		all, err := conf.(*FidelityConfig).criteria()
		if err != nil {
			return nil
		}
		for i := range all {
			k := &all[i]
			v := check.Value{Name: value(k), Title: k.Name, Doc: "the judge's mark, from 0 for the worst level of the menu to 1 for the best", Most: 1, Higher: true}
			if len(k.Levels) == 0 {
				v.Title, v.Doc = "preferred by the judge", "mean over both orders of which answer the judge prefers: 1 this one, 0 the baseline's, 1/2 a tie; the baseline has none"
			}
			out = append(out, v)
		}
		for _, i := range conf.(*FidelityConfig).calibrated(all) {
			v := out[i]
			out = append(out, check.Value{
				Name: corrected(&all[i]), Title: v.Title + ", corrected", Unit: record.Proportion, Whole: true, Most: 1, Higher: true,
				Doc: "what people would say on average: the mean of the judge's marks, corrected by the cases that people labelled (PPI++)",
			})
		}
		return out
	},
	Run: runFidelity,
}

// task is one mark to be asked for.
type task struct {
	trial     *check.Trial
	variant   int
	criterion int
	item      judge.Item
	mark      judge.Mark          // the jury's
	marks     []judge.Mark        // of each juror
	pairs     []*judge.Preference // of each juror, of a comparison
}

func runFidelity(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*FidelityConfig)
	criteria, err := conf.criteria()
	if err != nil {
		return err
	}
	cases, err := conf.cases(p)
	if err != nil {
		return err
	}
	if len(p.Variants) < 2 && slices.ContainsFunc(criteria, func(k judge.Criterion) bool { return len(k.Levels) == 0 }) {
		return errors.New("there is no baseline to compare with: name criteria with levels, or a second variant")
	}
	jury, err := conf.summon(p)
	if err != nil {
		return err
	}
	known, err := conf.calibrations(p, criteria)
	if err != nil {
		return err
	}
	corrections, err := strata(known, len(jury))
	if err != nil {
		return err
	}
	for _, k := range known {
		if err := k.drift(ctx, p, jury[k.juror], driftAlpha/float64(len(known))); err != nil {
			return err
		}
	}
	trials, asked := p.Ask(ctx, conf.shots(cases))
	tasks := conf.tasks(trials, cases, criteria)
	judged := p.Each(ctx, len(tasks), func(ctx context.Context, i int) error { return tasks[i].do(ctx, jury, &criteria[tasks[i].criterion]) })
	err = errors.Join(asked, judged, conf.write(p, tasks, criteria))
	lengths(p, tasks)
	if err == nil {
		conf.correct(p, corrections, len(trials), tasks, criteria)
	}
	return err
}

// summon makes judges of the endpoints.
func (c *FidelityConfig) summon(p *check.Pass) (jury []*judge.Judge, err error) {
	for _, e := range c.jury() {
		asker, err := p.Judge(e)
		if err != nil {
			return nil, err
		}
		j := &judge.Judge{Name: e.Name(), Asker: asker, Seed: p.Seed}
		c.able(p, e, j)
		for _, v := range p.Variants {
			if w := judge.SelfPreference(e.Model, v.Model); w != "" {
				p.Note("%s", w)
			}
			j.Scrub = append(j.Scrub, v.Model)
		}
		jury = append(jury, j)
	}
	return jury, nil
}

// able has the judge use what its endpoint provably does, and says what it does
// without.
func (c *FidelityConfig) able(p *check.Pass, e check.Endpoint, j *judge.Judge) {
	can := p.Can(e)
	if j.Schema = c.Schema || can.Has(check.CapSchema); !j.Schema {
		p.Note("nothing proves that %s obeys JSON schemas: verdicts are read out of its text", e.Name())
	}
	if proof := can[check.CapLogprobs]; proof.Standing == check.Proven && proof.Level >= leastAlternatives {
		j.Logprobs = min(proof.Level, 20)
		return
	}
	p.Note("nothing proves that %s has sound log-probabilities with %d alternatives: a mark is the level that it names, and no expectation over the levels", e.Name(), leastAlternatives)
}

// leastAlternatives at a token make an expectation over a menu of levels.
const leastAlternatives = 5

// tasks lists what is to be judged. Of a comparison the baseline has no number.
func (c *FidelityConfig) tasks(trials []*check.Trial, cases []corpus.Case, criteria []judge.Criterion) (out []*task) {
	byID := make(map[string]corpus.Case, len(cases))
	for _, k := range cases {
		byID[k.ID] = k
	}
	for _, t := range trials {
		k := byID[t.Shot.Case]
		var question []string
		for _, m := range c.messages(k) {
			question = append(question, m.Content)
		}
		item := judge.Item{Question: strings.Join(question, "\n\n"), Reference: k.Expect}
		for v, a := range t.Answers {
			for i := range criteria {
				compares := len(criteria[i].Levels) == 0
				switch {
				case compares && v == 0:
					t.Exempt(v, "judge")
				case !a.Answered() || compares && !t.Answers[0].Answered():
				default:
					out = append(out, &task{trial: t, variant: v, criterion: i, item: item})
				}
			}
		}
	}
	return out
}

func (t *task) do(ctx context.Context, jury []*judge.Judge, k *judge.Criterion) error {
	answer, replicate := said(t.trial.Answers[t.variant]), t.trial.Shot.Question.Replicate
	for _, j := range jury {
		if len(k.Levels) > 0 {
			mark, err := j.Point(ctx, k, t.item, answer, replicate)
			if err != nil {
				return err
			}
			t.marks = append(t.marks, mark)
			continue
		}
		pair, err := j.Compare(ctx, k, t.item, said(t.trial.Answers[0]), answer, replicate)
		if err != nil {
			return err
		}
		t.pairs = append(t.pairs, &pair)
		t.marks = append(t.marks, judge.Mark{Verdict: string(pair.Outcome), Score: pair.Score, Fault: pair.Fault()})
	}
	t.mark = t.marks[0]
	if len(jury) > 1 {
		t.mark = judge.Rule(t.marks...).Mark
	}
	return nil
}

// write puts the marks on the records. Where the judge erred too often, nothing is
// concluded from the rest.
func (c *FidelityConfig) write(p *check.Pass, tasks []*task, criteria []judge.Criterion) error {
	var faults []error
	var names []string
	for _, e := range c.jury() {
		names = append(names, e.Name())
	}
	for i := range criteria {
		k := &criteria[i]
		how := fmt.Sprintf("%s judged by %s, instructions %s", k.Name, strings.Join(names, ", "), k.Digest())
		p.Sign(check.Signature{Value: value(k), Estimator: how})
		if slices.Contains(c.calibrated(criteria), i) {
			p.Sign(check.Signature{Value: corrected(k), Estimator: "PPI++ of " + how})
		}
		var scores []judge.Score
		var whole []*task // that all jurors marked
		for _, t := range tasks {
			if t.criterion != i || len(t.marks) < len(names) {
				continue // the asking ended before all jurors were asked: there is no mark
			}
			scores = append(scores, judge.Score{Value: t.mark.Score, Fault: t.mark.Fault})
			switch {
			case t.mark.Fault == judge.Suspicious:
				p.Report(check.Finding{
					Severity: check.Warning, Code: "suspicious", Variant: p.Variants[t.variant].Name, Case: t.trial.Shot.Case,
					Text: "the answer, or the baseline's, tries to talk to the judge, so it was not judged", Hint: "look at it", Bodies: []string{p.Keep(said(t.trial.Answers[t.variant]))},
				})
			case t.mark.Scored() && !math.IsNaN(t.mark.Score):
				t.trial.Set(t.variant, value(k), t.mark.Score)
			}
			whole = append(whole, t)
		}
		tally := judge.Count(scores, 0.95)
		if tally.Inconclusive != "" {
			faults = append(faults, fmt.Errorf("%s: %s", k.Name, tally.Inconclusive))
		}
		for n, e := range c.jury() {
			first(p, k, e, n, whole)
		}
		c.agree(p, k, whole)
	}
	return errors.Join(faults...)
}
