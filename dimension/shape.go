package dimension

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/verify"
)

// ShapeConfig is the configuration of Shape.
type ShapeConfig struct {
	Asking `yaml:",inline"`

	Language string   `yaml:"language" doc:"ISO 639-1 code of the language that answers are to be in; not looked at if left out"`
	JSON     bool     `yaml:"json" doc:"answers are to be JSON, whole or in a block of code"`
	Rules    []string `yaml:"rules" oneof:"length-stability,length-sigma" doc:"reported beside the values: length-stability (the standard deviations of output lengths differ by more than a factor of 1.8 and the means by more than 5.2 tokens) and length-sigma (the standard deviation of paired differences of length is above 12.7 tokens)"`
}

// Shape looks at the outward form of answers.
var Shape = &check.Check{
	Name:   "shape",
	Doc:    "the outward form of answers: empty, cut, refused, JSON, language, length",
	Config: func() any { return new(ShapeConfig) },
	Values: shapeValues,
	Run:    runShape,
}

func shapeValues(config any) []check.Value {
	conf, _ := config.(*ShapeConfig)
	values := []check.Value{
		yesNo("empty", "empty answers", "there is nothing but white space, and no refusal", false),
		yesNo("truncated", "cut answers", "the answer ended at the limit of its tokens", false),
		yesNo("refused", "refusals", "the API says so, or the text begins as refusals do (a screen: other wordings are not found)", false),
		{Name: "tokens", Title: "output length", Doc: "output tokens, as the server counts them", Unit: record.TokenUnit},
		{Name: "log_length", Title: "log output length", Doc: "natural logarithm of 1 + output tokens: a difference of 0.1 is ten per cent", Unit: record.Points},
		{Name: "words", Title: "words", Doc: "runs of letters and digits of the text", Unit: record.Points},
	}
	if conf != nil && conf.JSON {
		values = append(values, yesNo("json_valid", "valid JSON", "the text, or a block of code in it, is JSON", true))
	}
	if conf != nil && conf.Language != "" {
		values = append(values, yesNo("language", "answers in "+conf.Language, "the text is mostly in the language; too short or mixed texts are missing", true))
	}
	return values
}

func runShape(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*ShapeConfig)
	cases, err := conf.cases(p)
	if err != nil {
		return err
	}
	p.Sign(check.Signature{Value: "refused", Estimator: "API field, filter or prefix rules"})
	if conf.Language != "" {
		p.Sign(check.Signature{Value: "language", Estimator: "scripts and trigrams, whatlanggo 1.0.1"})
	}
	lengths := make(map[string][]float64) // by case and replicate, of each variant
	err = conf.each(ctx, p, cases, func(_ corpus.Case, t *check.Trial, v int, a *check.Answer) {
		s := verify.Look(a.Text)
		refused := a.Refused() || s.Refusal
		t.Set(v, "empty", yes(s.Empty && !refused))
		t.Set(v, "truncated", yes(cut(a)))
		t.Set(v, "refused", yes(refused))
		t.Set(v, "words", float64(s.Words))
		if n, ok := a.Output.N(); ok {
			t.Set(v, "tokens", float64(n))
			t.Set(v, "log_length", math.Log1p(float64(n)))
			key := fmt.Sprint(t.Shot.Case, "#", t.Shot.Question.Replicate)
			if lengths[key] == nil {
				lengths[key] = slices.Repeat([]float64{math.NaN()}, len(p.Variants))
			}
			lengths[key][v] = float64(n)
		}
		if conf.JSON {
			t.Set(v, "json_valid", yes(s.JSON))
		}
		switch {
		case conf.Language == "":
		case s.Empty:
			t.Set(v, "language", 0)
		case s.Language != "":
			t.Set(v, "language", yes(s.Language == conf.Language))
		}
	})
	for _, rule := range conf.Rules {
		reportLengths(p, rule, lengths)
	}
	return err
}

// spread is the mean and the standard deviation, with n−1, of two numbers or more.
func spread(xs []float64) (mean, sd float64) {
	var squares float64
	for i, x := range xs { // Welford 1962
		d := x - mean
		mean += d / float64(i+1)
		squares += d * (x - mean)
	}
	return mean, math.Sqrt(squares / float64(len(xs)-1))
}

// reportLengths applies a rule of thumb to the paired lengths of the first two
// variants. It reports both ways, since a rule that is silent says nothing of
// whether it was asked.
func reportLengths(p *check.Pass, rule string, lengths map[string][]float64) {
	var a, b, d []float64
	for _, key := range slices.Sorted(maps.Keys(lengths)) {
		if l := lengths[key]; len(l) > 1 && !math.IsNaN(l[0]) && !math.IsNaN(l[1]) {
			a, b, d = append(a, l[0]), append(b, l[1]), append(d, l[1]-l[0])
		}
	}
	if len(d) < 2 {
		p.Note("the rule %s needs two variants and two pairs of lengths; there are %d", rule, len(d))
		return
	}
	ma, sa := spread(a)
	mb, sb := spread(b)
	_, sd := spread(d)
	shift := math.Abs(mb - ma)
	f := check.Finding{Severity: check.Info, Code: "length_sigma", Figures: map[string]float64{"pairs": float64(len(d)), "sd_of_differences": sd}}
	fires := sd > 12.7
	f.Text = fmt.Sprintf("the paired differences of length have a standard deviation of %.1f tokens (%d pairs; the rule's limit is 12.7)", sd, len(d))
	if rule == "length-stability" {
		ratio := max(sa, sb) / min(sa, sb)
		fires = (ratio > 1.8 || math.IsInf(ratio, 1)) && shift > 5.2
		f.Code, f.Figures = "length_stability", map[string]float64{"pairs": float64(len(d)), "mean_shift": shift, "sd_baseline": sa, "sd_candidate": sb}
		f.Text = fmt.Sprintf("output lengths have standard deviations of %.1f and %.1f tokens and means that differ by %.1f (%d pairs; the rule fires above a ratio of 1.8 and a difference of 5.2)", sa, sb, shift, len(d))
	}
	if fires {
		f.Severity = check.Warning
		f.Hint = "the rule has no error rate: let a clause judge mean(shape.log_length)"
	}
	p.Report(f)
}
