package dimension

import (
	"context"
	"fmt"
	"strconv"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/stat/compare"
	"github.com/assay-llm/assay/stat/screen"
)

// leastGain is what a repetition must gain at the shortest distance, in nats a
// token, so that something can be lost.
const leastGain = 0.2

// sureP is the p-value at most from which a reader is warned of a distance.
const sureP = 0.01

// repetition is a passage, a filler and the passage again.
type repetition struct {
	passage, distance int // indices
	again, end        int // bytes of the text, which begins with the passage: where it comes again, and ends
}

// gain is what one variant gained at one distance with one passage.
type gain struct {
	repetition
	nats   float64
	tokens int // between the two
}

// copies measures how far back a repetition is recognised.
func (l *likelihood) copies(ctx context.Context) error {
	var shots []check.Shot
	all := make(map[string]repetition)
	for k := range l.Passages {
		cluster := likelihoodCase("passage", k)
		passage := corpus.Words(l.p.Rand("passage", cluster), passageWords) + ".\n"
		for i, d := range l.Distances {
			// The same words at all distances, as far as they go.
			between := corpus.Words(l.p.Rand("between", cluster), int64(d-passageWords-4)) + ".\n"
			id := fmt.Sprintf("%s-at-%d", cluster, d)
			again := len(passage) + len(between)
			all[id] = repetition{k, i, again, again + len(passage)}
			shots = append(shots, l.shot(partCopy, id, cluster, passage+between+passage, 0, "distance", strconv.Itoa(d)))
		}
	}
	trials, err := l.ask(ctx, partCopy, shots, func(*check.Trial) bool { return true })
	if err != nil || trials == nil {
		return err
	}
	l.p.Sign(check.Signature{Value: "copied", Estimator: fmt.Sprintf("random passages of %d tokens, scored twice in one prompt", passageWords)})
	figure := check.Figure{
		Title: "Gain by repetition", About: "How much easier a random passage is when it comes again, by distance; intervals of 95 % over passages.",
		X: "distance, tokens", Y: "gain, nats a token", LogX: true,
	}
	published := make(map[string][]distanceGain)
	for v, variant := range l.p.Variants {
		var gains []gain
		for _, t := range trials {
			if g, ok := l.gained(t, v, all[t.Shot.Case]); ok {
				t.Set(v, "copied", g.nats)
				gains = append(gains, g)
			}
		}
		by := l.byDistance(gains)
		curve := check.Curve{Name: variant.Name}
		for _, g := range by {
			curve.Points = append(curve.Points, curvePoint(g.Tokens, g.Gain, g.lo, g.hi, g.Passages))
		}
		if len(curve.Points) > 0 {
			figure.Curves = append(figure.Curves, curve)
		}
		published[variant.Name] = by
		l.reach(v, gains, by)
	}
	if len(figure.Curves) > 0 {
		l.p.Draw(figure)
	}
	l.data[partCopy] = published
	return nil
}

// gained reads one answer.
func (l *likelihood) gained(t *check.Trial, v int, r repetition) (gain, bool) {
	length := r.end - r.again
	first, again := l.scores(t, v, 0, length), l.scores(t, v, r.again, r.end)
	if first == nil || again == nil {
		return gain{}, false
	}
	between := 0
	for _, s := range l.scores(t, v, 0, r.end) {
		if s.At < again[0].At {
			between++
		}
	}
	return gain{r, surprise(first)/float64(len(first)) - surprise(again)/float64(len(again)), between}, true
}

// distanceGain is what is published of one distance.
type distanceGain struct {
	Distance int     `json:"distance"` // as the suite has it
	Tokens   float64 `json:"tokens"`   // as the server cuts them, on average
	Gain     float64 `json:"gain"`     // mean, nats a token
	Passages int     `json:"passages"`

	lo, hi float64
}

// byDistance are the distances at which something was measured.
func (l *likelihood) byDistance(gains []gain) (out []distanceGain) {
	for i, d := range l.Distances {
		g := distanceGain{Distance: d}
		var clusters [][]float64
		for _, x := range gains {
			if x.distance == i {
				clusters = append(clusters, []float64{x.nats})
				g.Tokens += float64(x.tokens)
			}
		}
		if g.Passages = len(clusters); g.Passages == 0 {
			continue
		}
		g.Tokens /= float64(g.Passages)
		e := compare.Mean(clusters, 0.95)
		g.Gain, g.lo, g.hi = e.Value, e.Lo, e.Hi
		out = append(out, g)
	}
	return out
}

// reach estimates up to where a repetition gains, and warns where it stops to. A
// passage is recognised if it gains half of what is usual at the shortest distance.
func (l *likelihood) reach(v int, gains []gain, by []distanceGain) {
	name := l.p.Variants[v].Name
	none := func(why string) { l.p.Estimate(check.Estimate{Value: "reach", Variant: v, None: why}) }
	if len(by) < len(l.Distances) {
		none("some distances have no scores")
		return
	}
	var near []float64
	for _, g := range gains {
		if g.distance == 0 {
			near = append(near, g.nats)
		}
	}
	usual := medianOf(near)
	if usual < leastGain {
		none(fmt.Sprintf("at the shortest distance a repetition gains only %.2f nats a token: this model hardly copies", usual))
		return
	}
	trials, lengths := make([]screen.Trial, len(gains)), make([]float64, len(by))
	for i, g := range gains {
		trials[i] = screen.Trial{Period: g.distance, Group: g.passage, Event: g.nats >= usual/2}
	}
	for i, g := range by {
		if lengths[i] = g.Tokens; i > 0 && lengths[i] <= lengths[i-1] {
			none("the distances do not rise as the server counts tokens")
			return
		}
	}
	missing := l.Passages*len(l.Distances) - len(gains)
	of, err := screen.EffectiveLength(lengths, trials, 0.5, l.p.Seed)
	if err != nil {
		none(err.Error())
		return
	}
	l.p.Estimate(check.Estimate{Value: "reach", Variant: v, Missing: missing, Of: of})
	c, err := screen.TrialChange(trials, len(lengths), l.p.Seed)
	if err != nil || c.P > sureP || !(by[c.At].Gain < by[c.At-1].Gain) {
		return
	}
	l.p.Report(check.Finding{
		Severity: check.Warning, Code: "context_unused", Variant: name,
		Text: fmt.Sprintf("from a distance of %.0f tokens on a repeated passage is hardly recognised: it gains %.2f nats a token, at %.0f tokens %.2f (p = %.4f over %d passages)",
			by[c.At].Tokens, by[c.At].Gain, by[c.At-1].Tokens, by[c.At-1].Gain, c.P, l.Passages),
		Hint:    "look for a sliding window or a limit of the context in the server's settings, and compare with the model's own",
		Figures: map[string]float64{"distance": float64(by[c.At].Distance), "tokens": by[c.At].Tokens, "gain": by[c.At].Gain, "gain_before": by[c.At-1].Gain, "p": c.P},
	})
}
