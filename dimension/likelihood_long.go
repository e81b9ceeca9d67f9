package dimension

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/stat/compare"
	"github.com/assay-llm/assay/stat/screen"
)

const (
	blockTokens = 64   // whose mean is one point of the course
	leastHarm   = 0.05 // nats a token, of which a reader is told
)

// windowed is a long text, and the windows in which it is scored again. Of each window
// the last half is compared, so that something stands before each token.
type windowed struct {
	id      string
	text    string
	windows []window
}

type window struct{ from, compared, to int } // bytes of the text

// longTexts holds the scores after a long context against those after a short one.
func (l *likelihood) longTexts(ctx context.Context) error {
	texts, err := l.texts(partLong, l.Texts, l.Long)
	if err != nil {
		return err
	}
	var (
		shots []check.Shot
		all   []windowed
	)
	for i, text := range texts {
		w := windowed{id: likelihoodCase("text", i), text: text, windows: textWindows(text)}
		all = append(all, w)
		shots = append(shots, l.shot(partLong, w.id, w.id, text, 0, "context", "long"))
		for k, x := range w.windows {
			shots = append(shots, l.shot(partLong, fmt.Sprintf("%s-window-%02d", w.id, k+1), w.id, text[x.from:x.to], 0, "context", "short"))
		}
	}
	trials, err := l.ask(ctx, partLong, shots, func(t *check.Trial) bool { return t.Shot.Labels["context"] == "long" })
	if err != nil || trials == nil {
		return err
	}
	byCase := make(map[string]*check.Trial, len(trials))
	for _, t := range trials {
		byCase[t.Shot.Case] = t
	}
	l.p.Sign(check.Signature{Value: "excess", Estimator: fmt.Sprintf("long texts against windows of a quarter, blocks of %d tokens", blockTokens)})
	figure := check.Figure{
		Title: "Harm by a long context", About: "How much harder the tokens of long texts are after all that stands before them than after a short window, by position; means over texts.",
		X: "position, tokens", Y: "excess, nats a token",
	}
	published := make(map[string][]blockExcess)
	baseline := make(map[string][]float64) // its blocks by text
	for v, variant := range l.p.Variants {
		var courses, beside [][]float64 // by text: the means of blocks, and how they differ from the baseline's
		first := 0                      // token at which the first block begins
		for _, w := range all {
			excess, from, ok := l.excess(byCase, v, w)
			if !ok {
				continue
			}
			byCase[w.id].Set(v, "excess", levelOf(excess))
			own := blockMeans(excess)
			courses, first = append(courses, own), from
			if v == 0 {
				baseline[w.id] = own
			} else if base := baseline[w.id]; len(base) == len(own) {
				beside = append(beside, minus(own, base))
			}
		}
		course := meanCourse(courses)
		curve := check.Curve{Name: variant.Name}
		for i, x := range course {
			at := float64(first) + (float64(i)+0.5)*blockTokens
			curve.Points = append(curve.Points, check.Point{X: at, Y: x, N: len(courses)})
			published[variant.Name] = append(published[variant.Name], blockExcess{at, x})
		}
		if len(course) > 0 {
			figure.Curves = append(figure.Curves, curve)
		}
		if !l.warnOfHarm(v, beside, first, "for the baseline") {
			l.warnOfHarm(v, courses, first, "a short window does")
		}
	}
	if len(figure.Curves) > 0 {
		l.p.Draw(figure)
	}
	l.data[partLong] = published
	return nil
}

// blockExcess is what is published of one block of positions.
type blockExcess struct {
	Token  float64 `json:"token"`  // its middle
	Excess float64 `json:"excess"` // mean, nats a token
}

// textWindows are a quarter of the text long and begin an eighth apart, at spaces.
func textWindows(text string) (out []window) {
	const parts = 8
	var at [parts + 1]int
	for i := range at {
		if at[i] = i * len(text) / parts; i > 0 && i < parts {
			if space := strings.IndexAny(text[at[i]:], " \n"); space >= 0 {
				at[i] += space
			}
		}
	}
	for i := range parts - 1 {
		if at[i] < at[i+1] && at[i+1] < at[i+2] {
			out = append(out, window{at[i], at[i+1], at[i+2]})
		}
	}
	return out
}

// excess is, token by token from the first that is compared on, by how much a text is
// harder after all of it than after a window; from is the number of tokens before.
func (l *likelihood) excess(byCase map[string]*check.Trial, v int, w windowed) (out []float64, from int, ok bool) {
	t := byCase[w.id]
	if t == nil {
		return nil, 0, false
	}
	full := l.scores(t, v, 0, len(w.text))
	if full == nil {
		return nil, 0, false
	}
	short := make(map[int]check.Scored)
	for k, x := range w.windows {
		t := byCase[fmt.Sprintf("%s-window-%02d", w.id, k+1)]
		if t == nil {
			return nil, 0, false
		}
		tokens := l.scores(t, v, x.compared-x.from, x.to-x.from)
		if tokens == nil {
			return nil, 0, false
		}
		for _, s := range tokens {
			s.At += x.from
			short[s.At] = s
		}
	}
	for i, s := range full {
		o, has := short[s.At]
		if !has || o.Text != s.Text {
			continue // cut otherwise at the begin of a window
		}
		if len(out) == 0 {
			from = i
		}
		out = append(out, o.Logprob-s.Logprob)
	}
	return out, from, len(out) >= 2*blockTokens
}

// blockMeans are the means of whole blocks.
func blockMeans(x []float64) (out []float64) {
	for i := 0; i+blockTokens <= len(x); i += blockTokens {
		sum := 0.0
		for _, y := range x[i : i+blockTokens] {
			sum += y
		}
		out = append(out, sum/blockTokens)
	}
	return out
}

// meanCourse is the mean course, as far as all texts go.
func meanCourse(courses [][]float64) (out []float64) {
	if len(courses) == 0 {
		return nil
	}
	n := len(courses[0])
	for _, c := range courses {
		n = min(n, len(c))
	}
	out = make([]float64, n)
	for _, c := range courses {
		for i := range out {
			out[i] += c[i] / float64(len(courses))
		}
	}
	return out
}

// minus is a course less another one.
func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// warnOfHarm looks for the position from which on a long context harms, of which there
// may be none. What a long context is worth differs from text to text and within it;
// beside the baseline's that falls out.
func (l *likelihood) warnOfHarm(v int, courses [][]float64, first int, than string) bool {
	course := meanCourse(courses)
	if len(course) < 2 {
		return false
	}
	cuts, err := screen.Changes(course, 0)
	if err != nil {
		return false
	}
	from := 0 // where the last stretch begins, or all that is as bad from some cut on
	for _, c := range slices.Backward(cuts) {
		if from == 0 || levelOf(course[c:from]) >= leastHarm {
			from = c
		} else {
			break
		}
	}
	if from > 0 && levelOf(course[:from]) >= leastHarm {
		from = 0
	}
	var values [][]float64
	for _, c := range courses {
		for _, x := range c[from:len(course)] {
			values = append(values, []float64{x}) // blocks hardly depend on each other
		}
	}
	e := compare.Mean(values, 0.99)
	if !(e.Value >= leastHarm && e.Lo > 0) {
		return false
	}
	token := first + from*blockTokens
	l.p.Report(check.Finding{
		Severity: check.Warning, Code: "long_context_harm", Variant: l.p.Variants[v].Name,
		Text: fmt.Sprintf("from token %d on a long context makes texts harder than %s: by %.2f nats a token (99 %%: %.2f to %.2f, %d blocks of %d texts)",
			token, than, e.Value, e.Lo, e.Hi, len(values), len(courses)),
		Hint:    "compare with an engine or a precision that is known to be right at this length, and look at the scaling of positions",
		Figures: map[string]float64{"token": float64(token), "excess": e.Value, "least": e.Lo},
	})
	return true
}

func levelOf(x []float64) (mean float64) {
	for _, y := range x {
		mean += y / float64(len(x))
	}
	return mean
}
