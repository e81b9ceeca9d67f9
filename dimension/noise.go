package dimension

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/perturb"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/verify"
)

// NoiseConfig is the configuration of Noise.
type NoiseConfig struct {
	Rewriting `yaml:",inline"`

	Tolerated float64 `yaml:"tolerated" min:"0" max:"1" doc:"by how much F1 may fall under noise before a finding warns; 0.1 if left out"`
}

// CheckConfig reports what does not go together.
func (c *NoiseConfig) CheckConfig(n *config.Node) { c.faults(n) }

func (c *NoiseConfig) families() []string {
	if len(c.Families) == 0 {
		return []string{string(perturb.Typos), string(perturb.Homophone), string(perturb.Term)}
	}
	return c.Families
}

// Noise asks what customers want, clean and with noise.
var Noise = &check.Check{
	Name:   "noise",
	Doc:    "whether the intent of a message is recognised as well with typing errors and misheard terms as without",
	Config: func() any { return &NoiseConfig{Tolerated: 0.1} },
	Values: func(any) []check.Value {
		return []check.Value{
			yesNo("right", "right, clean", "the class that is named for the message as it is is the expected one; an answer that names none is wrong", true),
			yesNo("right_noisy", "right, with noise", "the same for the message with noise; the clean message has none", true),
			{Name: "swing", Title: "swing under noise", Doc: "right with noise minus right without, of the same message: −1 lost, 0 as before, 1 gained; the clean message has none", Unit: record.Points, Higher: true, Least: -1, Most: 1},
			{Name: "f1", Title: "macro F1, clean", Doc: "mean over the classes of 2 · right / (expected + named), of the messages as they are", Unit: record.Proportion, Whole: true, Higher: true, Most: 1},
			{Name: "f1_noisy", Title: "macro F1, with noise", Doc: "the same of the messages with noise, all families together", Unit: record.Proportion, Whole: true, Higher: true, Most: 1},
			{Name: "f1_swing", Title: "F1 swing", Doc: "macro F1 with noise minus clean, on the same messages, from −1 to 1", Unit: record.Points, Whole: true, Higher: true, Least: -1, Most: 1},
		}
	},
	Run: runNoise,
}

// leastMade are the cases that a run makes unless it is told another number.
const leastMade = 80

func runNoise(ctx context.Context, p *check.Pass) error {
	conf := *p.Config.(*NoiseConfig)
	families := conf.families()
	made := conf.Cases
	if made == 0 {
		made = leastMade
	}
	list, err := conf.inquiries(p, func() []closed { return utterances(p.Rand("cases"), made, conf.languages()) })
	if err != nil {
		return err
	}
	l, err := conf.labels(list)
	if err != nil {
		return err
	}
	if conf.Temperature == nil {
		conf.Temperature = new(float64)
	}
	var shots []check.Shot
	applied := make(map[string]int)
	for _, k := range list {
		q := check.Question{MaxTokens: 16}
		shots = append(shots, conf.shot(k, asIs, k.text, 0, q))
		texts := conf.rewritten(p, families, k)
		for _, f := range families {
			if text, ok := texts[f]; ok {
				applied[f]++
				shots = append(shots, conf.shot(k, f, text, 0, q))
			}
		}
	}
	for _, f := range families {
		p.Note("%s: %d of %d messages could be written otherwise; the others are not asked so", f, applied[f], len(list))
	}
	estimator := "class named in the answer, none is wrong; noise " + strings.Join(families, ", ")
	for _, v := range []string{"right", "right_noisy", "swing"} {
		p.Sign(check.Signature{Value: v, Estimator: estimator})
	}
	trials, err := p.Ask(ctx, shots)
	pairs := l.mark(trials, len(p.Variants))
	if err != nil {
		return err
	}
	return conf.report(p, l, pairs, families)
}

// labeller tells classes in answers.
type labeller struct {
	names []string // of the classes
	byID  map[string]inquiry
}

// labels finds the classes of the cases.
func (c *NoiseConfig) labels(list []inquiry) (*labeller, error) {
	l := &labeller{byID: make(map[string]inquiry, len(list))}
	for _, k := range list {
		l.byID[k.id] = k
		if k.source == nil && !slices.Contains(l.names, k.expect) {
			if k.expect == "" || len(c.Options) > 0 && !slices.Contains(c.Options, k.expect) {
				return nil, fmt.Errorf("case %s of %s expects %q, which is none of the classes: write it as expect, and all classes under options", k.id, c.Set.File, k.expect)
			}
			l.names = append(l.names, k.expect)
		}
	}
	switch {
	case c.Set.IsZero():
		for _, in := range intents {
			l.names = append(l.names, in.name)
		}
	case len(c.Options) > 0:
		l.names = c.Options
	default:
		slices.Sort(l.names)
	}
	if len(l.names) < 2 {
		return nil, errors.New("all cases expect one class: there is nothing to tell apart; give cases of two or more")
	}
	return l, nil
}

// classes are the expected class of a case and the one that an answer names; none
// is len(l.names).
func (l *labeller) classes(id, answer string) (truth, named int) {
	k, none := l.byID[id], len(l.names)
	if k.source == nil {
		truth = slices.Index(l.names, k.expect)
		r := verify.Expected{Kind: verify.Choice, Value: k.expect, Options: l.names}.Check(answer)
		if named = slices.Index(l.names, r.Found); r.Outcome == verify.Unparsed || named < 0 {
			named = none
		}
		return truth, named
	}
	truth, named = l.class(k.source, k.source.right), none
	if i := k.source.read(answer); i >= 0 {
		named = l.class(k.source, i)
	}
	return truth, named
}

// class is the class of an option of a case that was made.
func (l *labeller) class(c *closed, option int) int {
	return slices.IndexFunc(intents, func(in intent) bool { return in.say[c.language] == c.options[option] })
}

// heard is a message with noise, and what each variant made of it and of the clean
// one; none of it is missing.
type heard struct {
	cluster, family string
	truth           int
	clean, noisy    []int
}

// mark writes the values, and pairs what was answered clean and with noise by all
// variants.
func (l *labeller) mark(trials []*check.Trial, variants int) (out []heard) {
	before := make(map[string]*check.Trial)
	for _, t := range trials {
		if t.Shot.Labels["family"] == asIs {
			before[t.Shot.Case] = t
		}
	}
	for _, t := range trials {
		b := before[t.Shot.Case]
		noisy := t != b
		h := heard{cluster: t.Shot.Cluster, family: t.Shot.Labels["family"], clean: make([]int, variants), noisy: make([]int, variants)}
		whole := noisy && b != nil
		for v, a := range t.Answers {
			if noisy {
				t.Exempt(v, "right")
			} else {
				t.Exempt(v, "right_noisy")
				t.Exempt(v, "swing")
			}
			if !a.Answered() {
				whole = false
				continue
			}
			truth, named := l.classes(t.Shot.Case, said(a))
			right := yes(named == truth)
			if !noisy {
				t.Set(v, "right", right)
				continue
			}
			t.Set(v, "right_noisy", right)
			h.truth, h.noisy[v] = truth, named
			if b == nil || !b.Answers[v].Answered() {
				whole = false
				continue
			}
			_, h.clean[v] = l.classes(t.Shot.Case, said(b.Answers[v]))
			t.Set(v, "swing", right-yes(h.clean[v] == truth))
		}
		if whole {
			out = append(out, h)
		}
	}
	return out
}

// noiseRow is what is published of one variant and family; "all": of all together.
type noiseRow struct {
	Variant  string   `json:"variant"`
	Family   string   `json:"family"`
	Messages int      `json:"messages"`
	Clean    float64  `json:"f1_clean"`
	Noisy    float64  `json:"f1_noisy"`
	Swing    float64  `json:"swing"`
	Low      *float64 `json:"swing_low"` // null: there is no bound
	High     *float64 `json:"swing_high"`
}

const allFamilies = "all"

// report compares F1 clean and with noise, of each variant and family, and the swing
// of the candidates with the baseline's.
func (c *NoiseConfig) report(p *check.Pass, l *labeller, pairs []heard, families []string) error {
	if len(pairs) == 0 {
		return errors.New("no message was answered both clean and with noise by all variants")
	}
	heat := check.Heat{Most: 1, Higher: true, Columns: append([]string{asIs}, families...)}
	for _, s := range p.Variants {
		heat.Rows, heat.Cells = append(heat.Rows, s.Name), append(heat.Cells, make([]check.Cell, len(heat.Columns)))
	}
	var rows []noiseRow
	confidence := 1 - 0.05/float64(len(families)+1) // of all families together, 95 %
	for f, family := range append([]string{allFamilies}, families...) {
		of := slices.DeleteFunc(slices.Clone(pairs), func(h heard) bool { return f > 0 && h.family != family })
		if len(of) == 0 {
			continue
		}
		d := l.resample(p.Rand("draws", family), of, len(p.Variants))
		for v, s := range p.Variants {
			e := d.estimate(swing(v))(confidence)
			x, y := d.value[2*v], d.value[2*v+1]
			if f > 0 || len(families) > 1 { // a single family is all of them
				rows = append(rows, noiseRow{Variant: s.Name, Family: family, Messages: len(of), Clean: x, Noisy: y, Swing: e.Value, Low: finite(e.Lo), High: finite(e.Hi)})
				p.Report(c.finding(s.Name, family, len(of), x, y, e))
				if v > 0 {
					against(p, d.estimate(moreSwing(v))(confidence), v, family, len(of))
				}
			}
			if f > 0 {
				heat.Cells[v][f] = check.Cell{Value: &y, N: len(of), Text: "swing " + withBounds(e)}
				continue
			}
			heat.Cells[v][0] = check.Cell{Value: &x, N: len(of)}
			d.write(p, v)
		}
	}
	p.Publish(rows)
	p.Draw(check.Figure{Title: "Intent under noise", About: "Macro F1 of each variant on the messages as they are, and with each kind of noise.", Heat: &heat})
	return nil
}

// finding says what noise does to a variant; it warns where F1 provably falls by
// more than is tolerated.
func (c *NoiseConfig) finding(variant, family string, n int, x, y float64, e stat.Estimate) check.Finding {
	f := check.Finding{
		Severity: check.Info, Code: "f1", Variant: variant,
		Text:    fmt.Sprintf("noise %s: macro F1 is %.3f clean and %.3f with noise, a swing of %s (%d messages)", family, x, y, withBounds(e), n),
		Figures: map[string]float64{"f1_clean": x, "f1_noisy": y, "swing": e.Value, "messages": float64(n)},
	}
	if -e.Hi > c.Tolerated {
		f.Severity, f.Code = check.Warning, "fragile"
		f.Hint = fmt.Sprintf("F1 falls by more than the %.2f that is tolerated: look at the messages that were lost, whose noise.swing is −1", c.Tolerated)
	}
	return f
}

// against says how the swing of a variant differs from the baseline's on the same
// messages.
func against(p *check.Pass, e stat.Estimate, v int, family string, n int) {
	f := check.Finding{
		Severity: check.Info, Code: "swing", Variant: p.Variants[v].Name,
		Text:    fmt.Sprintf("noise %s: the swing differs from that of %s by %s (%d messages)", family, p.Variants[0].Name, withBounds(e), n),
		Figures: map[string]float64{"difference": e.Value, "messages": float64(n)},
	}
	if e.Hi < 0 {
		f.Severity, f.Code, f.Hint = check.Warning, "more_fragile", "noise costs it more than the baseline: let a clause judge estimate(noise.f1_swing)"
	}
	p.Report(f)
}

// redrawn is F1 of what was heard, and of draws of it. Column 2v is of variant v
// clean, 2v+1 with noise.
type redrawn struct {
	value []float64
	drawn [][]float64
	n     int // messages
	few   int // their clusters, if these are too few for an interval; else 0
}

// What is estimated of the columns.
func swing(v int) func(x []float64) float64 {
	return func(x []float64) float64 { return x[2*v+1] - x[2*v] }
}

func moreSwing(v int) func(x []float64) float64 {
	return func(x []float64) float64 { return swing(v)(x) - swing(0)(x) }
}

// estimate gives a number of the columns at any confidence.
func (d *redrawn) estimate(of func(x []float64) float64) func(float64) stat.Estimate {
	draws := make([]float64, len(d.drawn))
	for i, x := range d.drawn {
		draws[i] = of(x)
	}
	at := stat.Draws(of(d.value), draws, d.n)
	if d.few == 0 {
		return at
	}
	return func(confidence float64) stat.Estimate {
		return stat.Estimate{
			Value: of(d.value), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: d.n, Effective: float64(d.few), Method: "none",
			Warnings: []stat.Warning{{Code: stat.CodeFew, Text: fmt.Sprintf("%d messages or clusters are too few to draw from; it takes %d", d.few, leastDrawn)}},
		}
	}
}

// write estimates F1 clean, noisy and their swing, and the changes against the
// baseline.
func (d *redrawn) write(p *check.Pass, v int) {
	for _, w := range []struct {
		value string
		of    func(v int) func(x []float64) float64
	}{
		{"f1", func(v int) func(x []float64) float64 { return func(x []float64) float64 { return x[2*v] } }},
		{"f1_noisy", func(v int) func(x []float64) float64 { return func(x []float64) float64 { return x[2*v+1] } }},
		{"f1_swing", swing},
	} {
		p.Estimate(check.Estimate{Value: w.value, Variant: v, Of: d.estimate(w.of(v))})
		if v > 0 {
			own, base := w.of(v), w.of(0)
			p.Estimate(check.Estimate{Value: w.value, Variant: v, Change: record.Difference, Of: d.estimate(func(x []float64) float64 { return own(x) - base(x) })})
		}
	}
}

const (
	leastDrawn = 30   // clusters to draw from
	redraws    = 2000 // enough for a bound that is wrong in one of two thousand
)

// resample draws clusters of messages again and again. Where few messages differ,
// these alone know nothing of what was not seen: so for each variant one message lost
// and one gained are added to what is drawn from, as Bonett and Price (2012) add them
// for a difference of paired shares. The value itself is of the messages alone.
func (l *labeller) resample(r *rand.Rand, pairs []heard, variants int) *redrawn {
	at := make(map[string]int)
	var clusters [][]heard
	count := make([]int, len(l.names))
	for _, h := range pairs {
		count[h.truth]++
		i, ok := at[h.cluster]
		if !ok {
			i = len(clusters)
			at[h.cluster] = i
			clusters = append(clusters, nil)
		}
		clusters[i] = append(clusters[i], h)
	}
	t := l.confusion(variants)
	for _, h := range pairs {
		t.add(h)
	}
	d := &redrawn{value: t.f1(), n: len(pairs)}
	if len(clusters) < leastDrawn {
		d.few = len(clusters)
		return d
	}
	often, none := slices.Index(count, slices.Max(count)), len(l.names)
	for v := range variants {
		lost := heard{truth: often, clean: slices.Repeat([]int{often}, variants), noisy: slices.Repeat([]int{often}, variants)}
		gained := heard{truth: often, clean: slices.Clone(lost.clean), noisy: slices.Clone(lost.noisy)}
		lost.noisy[v], gained.clean[v] = none, none
		clusters = append(clusters, []heard{lost}, []heard{gained})
	}
	for range redraws {
		t.clear()
		for range clusters {
			for _, h := range clusters[r.IntN(len(clusters))] {
				t.add(h)
			}
		}
		d.drawn = append(d.drawn, t.f1())
	}
	return d
}

// confusion counts, by class, what was true, and by column what was named and what was
// named rightly.
type confusion struct {
	classes     int
	truth       []int
	named, hits [][]int
}

func (l *labeller) confusion(variants int) *confusion {
	t := &confusion{classes: len(l.names)}
	t.truth = make([]int, t.classes+1)
	for range 2 * variants {
		t.named, t.hits = append(t.named, make([]int, t.classes+1)), append(t.hits, make([]int, t.classes+1))
	}
	return t
}

func (t *confusion) clear() {
	clear(t.truth)
	for i := range t.named {
		clear(t.named[i])
		clear(t.hits[i])
	}
}

func (t *confusion) add(h heard) {
	t.truth[h.truth]++
	for v := range h.clean {
		for i, k := range [2]int{h.clean[v], h.noisy[v]} {
			t.named[2*v+i][k]++
			if k == h.truth {
				t.hits[2*v+i][k]++
			}
		}
	}
}

// f1 is macro F1 of each column: the mean over the classes that are expected of 2 ·
// right / (expected + named).
func (t *confusion) f1() []float64 {
	out := make([]float64, len(t.named))
	for i := range out {
		n := 0
		for k := range t.classes {
			if t.truth[k] > 0 {
				n++
				out[i] += 2 * float64(t.hits[i][k]) / float64(t.truth[k]+t.named[i][k])
			}
		}
		out[i] /= float64(max(n, 1))
	}
	return out
}

// withBounds writes an estimate with its interval, or says why there is none.
func withBounds(e stat.Estimate) string {
	if !e.Estimable() {
		why := "no interval"
		if len(e.Warnings) > 0 {
			why = e.Warnings[0].Text
		}
		return fmt.Sprintf("%+.3f (%s)", e.Value, why)
	}
	return fmt.Sprintf("%+.3f [%+.3f, %+.3f]", e.Value, e.Lo, e.Hi)
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
