package dimension

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/haystack"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
)

// contextInfluence is how much less is found when words of a window are replaced.
type contextInfluence struct {
	Length  int64           `json:"length"` // tokens
	Depth   float64         `json:"depth"`  // of the needle
	Clean   float64         `json:"clean"`  // share found in the texts as they are
	Windows []contextWindow `json:"windows"`
	// Entropy of the windows' shares of all influence, 0 (one matters) to 1 (all matter alike); null:
	// no window has any.
	Entropy *float64         `json:"entropy"`
	Near    *contextInterval `json:"near,omitempty"` // influence of the window around the needle
	Far     *contextInterval `json:"far,omitempty"`  // of the windows a quarter of the text away and more, together
	Form    *contextInterval `json:"form,omitempty"` // of a change of white space alone around the needle
}

// contextWindow is one window.
type contextWindow struct {
	Centre    float64          `json:"centre"` // share of the text before it
	Influence *contextInterval `json:"influence,omitempty"`
	Share     float64          `json:"share"` // of all positive influence
}

// contextNoise is one probe with its text changed in one way.
type contextNoise struct {
	probe  *haystack.Probe
	text   int
	window int // -1: as it is; -2: form alone
	size   contextSize
	trial  *check.Trial
}

const (
	unchanged = -1
	formAlone = -2
)

// influence asks probes as they are, and with one window at a time made noise.
func (r *contextRun) influence(ctx context.Context) error {
	c := r.conf.Influence
	probes, windows := cmp.Or(c.Probes, 20), cmp.Or(c.Windows, 9)
	length, depth := cmp.Or(c.Length, r.lengths[len(r.lengths)-1]), cmp.Or(c.Depth, .5)
	var shots []check.Shot
	byCase := make(map[string]*contextNoise)
	for t := range probes {
		frame := 300 // characters of the question and what is around the text, near enough
		spec := haystack.Spec{
			Kind: haystack.Retrieval, Language: r.conf.Language, Chars: r.chars(length, frame), Depth: depth, Seed: r.seed("influence text", t), Needle: r.seed("influence needle", t), Text: r.text,
		}
		clean, err := haystack.New(spec)
		if err != nil {
			return fmt.Errorf("influence: length %d: %w", length, err)
		}
		for w := formAlone; w < windows; w++ {
			n := r.noise(clean, w, windows, t)
			probe := clean
			if w != unchanged {
				probe = clean.Perturb(n)
			}
			name := strconv.Itoa(w)
			switch w {
			case unchanged:
				name = "clean"
			case formAlone:
				name = "form"
			}
			shot := check.Shot{
				Case: fmt.Sprintf("influence-t%03d-%s", t, name), Cluster: fmt.Sprintf("influence-%03d", t), Question: r.question(probe, 0),
				Labels: map[string]string{"kind": "influence", "length": strconv.FormatInt(length, 10), "window": name},
			}
			byCase[shot.Case] = &contextNoise{probe: clean, text: t, window: w, size: sizeOf(shot.Question.Messages[0].Content)}
			shots = append(shots, shot)
		}
	}
	trials, err := r.p.Ask(ctx, shots)
	var asked []*contextNoise
	for _, t := range trials {
		n := byCase[t.Shot.Case]
		n.trial = t
		asked = append(asked, n)
		for v := range r.p.Variants {
			r.exempt(t, v)
		}
	}
	if err == nil {
		r.profile(asked, probes, windows, length, depth)
	}
	return err
}

// noise is what is done to a probe in one window.
func (r *contextRun) noise(p *haystack.Probe, window, windows, text int) haystack.Noise {
	c := r.conf.Influence
	perChar := r.scales[0].perChar
	n := haystack.Noise{
		Centre: (float64(window) + .5) / float64(windows), Reach: float64(cmp.Or(c.Reach, 128)) / perChar, Decay: float64(cmp.Or(c.Decay, 64)) / perChar,
		Strength: cmp.Or(c.Strength, .9), Seed: r.p.Rand("noise", strconv.Itoa(text), strconv.Itoa(window)).Uint64(),
	}
	if window == formAlone {
		n.Form, n.Centre = true, p.Centre()
	}
	return n
}

// profile reckons up the influence of each window on each variant.
func (r *contextRun) profile(asked []*contextNoise, probes, windows int, length int64, depth float64) {
	figure := check.Figure{
		Title: "Influence of a window", X: "centre of the window (share of the text)", Y: "influence (difference of the share found)",
		About: fmt.Sprintf("how much less is found at %d tokens when words of a window are replaced, with 95 %% intervals; the needle stands at %g", length, depth),
	}
	data := r.data
	for v, s := range r.p.Variants {
		out, curve := r.profileOf(v, asked, probes, windows)
		out.Length, out.Depth = length, depth
		data.Variants[v].Influence = out
		if len(curve) > 0 {
			figure.Curves = append(figure.Curves, check.Curve{Name: s.Name, Points: curve})
		}
		entropy := "no window has any influence"
		if out.Entropy != nil {
			entropy = fmt.Sprintf("the profile has a normalised entropy of %.2f", *out.Entropy)
		}
		r.p.Note("%s: influence of %d windows on %d probes of %d tokens: %s; around the needle %s, far from it %s, form alone %s",
			s.Name, windows, probes, length, entropy, influenceText(out.Near), influenceText(out.Far), influenceText(out.Form))
	}
	if len(figure.Curves) > 0 {
		r.p.Draw(figure)
	}
}

func influenceText(i *contextInterval) string {
	if i == nil {
		return "unknown"
	}
	return fmt.Sprintf("%+.2f", i.Value)
}

// profileOf compares every window with the same probe as it is.
func (r *contextRun) profileOf(v int, asked []*contextNoise, probes, windows int) (*contextInfluence, []check.Point) {
	out := &contextInfluence{}
	found := make(map[[2]int]bool) // by text and window, of what was answered
	for _, n := range asked {
		if a := n.trial.Answers[v]; r.fate(v, a, n.size) == fateAnswered {
			found[[2]int{n.text, n.window}] = n.probe.Read(said(a)).Found
		}
	}
	clean, all := 0, 0
	for t := range probes {
		if is, ok := found[[2]int{t, unchanged}]; ok {
			all++
			clean += int(yes(is))
		}
	}
	if all > 0 {
		out.Clean = float64(clean) / float64(all)
	}
	of := func(window int) *stat.Estimate { return influenceOf(found, probes, window) }
	var points []check.Point
	sum := 0.0
	for w := range windows {
		at := contextWindow{Centre: (float64(w) + .5) / float64(windows)}
		if e := of(w); e != nil {
			at.Influence = bounds(*e)
			sum += math.Max(0, e.Value)
			p := check.Point{X: at.Centre, Y: e.Value, N: e.N}
			if e.Estimable() {
				p.Low, p.High = &e.Lo, &e.Hi
			}
			points = append(points, p)
		}
		out.Windows = append(out.Windows, at)
	}
	if sum > 0 {
		entropy := 0.0
		for w := range out.Windows {
			if i := out.Windows[w].Influence; i != nil && i.Value > 0 {
				s := i.Value / sum
				out.Windows[w].Share = s
				entropy -= s * math.Log(s)
			}
		}
		entropy /= math.Log(float64(windows))
		out.Entropy = &entropy
	}
	r.controls(out, found, of, probes, windows)
	return out, points
}

// influenceOf compares the answers with one window changed to those to the same text
// as it is; nil: there are none.
func influenceOf(found map[[2]int]bool, probes, window int) *stat.Estimate {
	lost, won, n := 0, 0, 0
	for t := range probes {
		before, ok := found[[2]int{t, unchanged}]
		after, too := found[[2]int{t, window}]
		if !ok || !too {
			continue
		}
		n++
		switch {
		case before && !after:
			lost++
		case after && !before:
			won++
		}
	}
	if n == 0 {
		return nil
	}
	e := compare.Tango(lost, won, n, .95)
	return &e
}

// controls are the window around the needle, those far from it, and a change of form
// alone around it.
func (r *contextRun) controls(out *contextInfluence, found map[[2]int]bool, of func(int) *stat.Estimate, probes, windows int) {
	depth := cmp.Or(r.conf.Influence.Depth, .5)
	near := min(windows-1, int(depth*float64(windows)))
	out.Near = out.Windows[near].Influence
	if e := of(formAlone); e != nil {
		out.Form = bounds(*e)
	}
	var far [][]float64
	for t := range probes {
		before, ok := found[[2]int{t, unchanged}]
		if !ok {
			continue
		}
		var differences []float64
		for w := range windows {
			if after, too := found[[2]int{t, w}]; too && math.Abs(out.Windows[w].Centre-depth) >= .25 {
				differences = append(differences, yes(before)-yes(after))
			}
		}
		if len(differences) > 0 {
			far = append(far, differences)
		}
	}
	if len(far) > 0 {
		out.Far = bounds(compare.Mean(far, .95))
	}
}
