package overlap

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"unicode"

	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
)

// A Segment is one text and what it should have been.
type Segment struct {
	Hypothesis string
	// References, one or more. An empty one is a reference too.
	References []string
	// Cluster names the document or session that the segment depends on. A segment
	// without stands for itself.
	Cluster string
}

// Align makes segments of a stream of hypotheses and streams of references,
// where nil is an absent reference. Streams of another length are an error:
// cut to the shortest, as zip does it, they would be compared with what is not
// theirs.
func Align(hypotheses []string, streams ...[]*string) ([]Segment, error) {
	out := make([]Segment, len(hypotheses))
	for k, stream := range streams {
		if len(stream) != len(hypotheses) {
			return nil, fmt.Errorf("references %d has %d segments, but there are %d hypotheses; each stream has one reference for every hypothesis", k+1, len(stream), len(hypotheses))
		}
	}
	for i, h := range hypotheses {
		out[i].Hypothesis = h
		for _, stream := range streams {
			if r := stream[i]; r != nil {
				out[i].References = append(out[i].References, *r)
			}
		}
	}
	return out, nil
}

// mostClusters bounds the memory of a Tally and the time of resampling. What
// comes later joins clusters that are there, which leaves them independent of
// each other.
const mostClusters = 8192

// A Tally sums the statistics of segments by cluster, from which scores,
// intervals and tests are made without another look at the text. It takes up to
// 8,192 clusters apart, so its memory is bounded. Not for concurrent use.
type Tally struct {
	metric   Metric
	scratch  scratch
	one      []float64
	sums     []float64 // of each cluster, one after the other
	counts   []int     // segments of each cluster
	names    map[string]int
	segments int
	refs     int // of each segment; 0 unknown, -1 varying
	letters  Letters
}

// NewTally returns an empty tally for a metric.
func NewTally(m Metric) (*Tally, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return &Tally{metric: m, one: make([]float64, m.width()), names: map[string]int{}}, nil
}

// Metric is what the tally is for.
func (t *Tally) Metric() Metric { return t.metric }

// Clusters counts the clusters.
func (t *Tally) Clusters() int { return len(t.counts) }

// Signature says how the scores were made.
func (t *Tally) Signature() string { return t.metric.Signature(t.refs) }

// Add takes a segment and returns its sufficient statistics, of which
// [Metric.Score] makes the score of the sentence. They are valid until the next
// call.
func (t *Tally) Add(s Segment) ([]float64, error) {
	if len(s.References) == 0 {
		return nil, fmt.Errorf("segment %d has no reference; leave it out of hypotheses and references", t.segments+1)
	}
	clear(t.one)
	if err := t.metric.statistics(&t.scratch, t.one, s.Hypothesis, s.References); err != nil {
		return nil, fmt.Errorf("segment %d: %w", t.segments+1, err)
	}
	if m, ok := t.metric.(ROUGE); ok && m.tokenizer() == Native {
		t.letters.Add(s.Hypothesis)
		for _, r := range s.References {
			t.letters.Add(r)
		}
	}
	t.add(s.Cluster, len(s.References), t.one)
	return t.one, nil
}

func (t *Tally) add(cluster string, references int, statistics []float64) {
	if t.segments == 0 {
		t.refs = references
	} else if t.refs != references {
		t.refs = -1
	}
	c := t.cluster(cluster)
	if c == len(t.counts) {
		t.counts = append(t.counts, 0)
		t.sums = append(t.sums, statistics...)
	} else {
		for i, x := range statistics {
			t.sums[c*len(statistics)+i] += x
		}
	}
	t.counts[c]++
	t.segments++
}

func (t *Tally) cluster(name string) int {
	n := len(t.counts)
	if name == "" {
		if n < mostClusters {
			return n
		}
		return t.segments % mostClusters
	}
	if c, ok := t.names[name]; ok {
		return c
	}
	if n == mostClusters {
		h := fnv.New64a()
		h.Write([]byte(name))
		return int(h.Sum64() % mostClusters)
	}
	t.names[name] = n
	return n
}

// Statistics are the sums over all segments.
func (t *Tally) Statistics() []float64 { return t.metricSum(t.sums) }

func (t *Tally) metricSum(sums []float64) []float64 {
	out := make([]float64, t.metric.width())
	for i, x := range sums {
		out[i%len(out)] += x
	}
	return out
}

// Score is the score of the corpus. It is an error if there is none: no
// segment, or text in which the tokenizer finds no words.
func (t *Tally) Score() (float64, error) {
	if t.segments == 0 {
		return math.NaN(), errors.New("there is no segment to score")
	}
	if share := t.letters.NotASCII(); share > mostForeign {
		return math.NaN(), fmt.Errorf("%s with the tokenizer rouge knows ASCII letters only, and %.0f %% of these are others, so that even equal texts would score next to 0; take the tokenizer %s",
			t.metric.Name(), 100*share, t.letters.ROUGE())
	}
	return t.metric.Score(t.Statistics()), nil
}

// Resampling says how intervals and tests are made. The zero value is good.
type Resampling struct {
	Confidence float64 // of intervals; 0 means 0.95
	Repeats    int     // of the bootstrap; 0 means 2,000
	Trials     int     // of the test; 0 means 10,000
	// Seed of the draws. The same seed gives the same results.
	Seed uint64
}

func (r Resampling) confidence() float64 {
	if r.Confidence == 0 {
		return 0.95
	}
	return r.Confidence
}

// Estimate is the score of the corpus with an interval, which comes from
// drawing whole clusters anew ([compare.Bootstrap]). N counts segments,
// Effective clusters.
func (t *Tally) Estimate(r Resampling) (stat.Estimate, error) {
	score, err := t.Score()
	if err != nil {
		return stat.Estimate{}, err
	}
	w := t.metric.width()
	parts := make([][]float64, len(t.counts))
	for i := range parts {
		parts[i] = t.sums[i*w : (i+1)*w]
	}
	sum := make([]float64, w)
	return bootstrap(r, score, t.segments, parts, func(values []float64) float64 {
		clear(sum)
		addAll(sum, values)
		return t.metric.Score(sum)
	}), nil
}

func addAll(sum, values []float64) {
	for w := len(sum); len(values) >= w; values = values[w:] {
		for i, x := range values[:w] {
			sum[i] += x
		}
	}
}

func bootstrap(r Resampling, value float64, segments int, parts [][]float64, score func([]float64) float64) stat.Estimate {
	e := compare.Bootstrap{Repeats: r.Repeats, Seed: r.Seed}.Clusters(parts, score, r.confidence())
	e.Value, e.N, e.Effective = value, segments, float64(len(parts))
	if e.Lo == e.Hi {
		e.Lo, e.Hi = math.Inf(-1), math.Inf(1)
		e.Warnings = append(e.Warnings, stat.Warning{Code: stat.CodeConstant, Text: "every draw gives the same score, from which nothing follows for other texts"})
	}
	e.Lo, e.Hi = math.Min(e.Lo, e.Value), math.Max(e.Hi, e.Value)
	return e
}

// Letters counts letters by what tokenizers must know of them. The zero value
// is ready for use.
type Letters struct {
	all, notASCII, han, kana, unspaced float64
}

const (
	mostForeign = 0.2  // of the letters, for a tokenizer of another script
	leastKana   = 0.02 // of Han and kana, for text to be Japanese
)

// Add counts the letters of a text.
func (l *Letters) Add(text string) {
	for _, r := range text {
		if r < 0x80 {
			if r |= 0x20; 'a' <= r && r <= 'z' {
				l.all++
			}
			continue
		}
		if !unicode.IsLetter(r) {
			continue
		}
		l.all++
		l.notASCII++
		switch {
		case r < 0xe00:
		case unicode.Is(unicode.Han, r):
			l.han++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			l.kana++
		case unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan):
			l.unspaced++
		}
	}
}

// NotASCII is the share of letters that are not ASCII; 0 without letters.
func (l *Letters) NotASCII() float64 { return l.notASCII / math.Max(l.all, 1) }

// BLEU is the tokenizer that the script asks for.
func (l *Letters) BLEU() Tokenizer {
	switch {
	case l.han+l.kana+l.unspaced <= mostForeign*l.all:
		return T13a
	case l.unspaced+l.kana > leastKana*(l.han+l.kana+l.unspaced):
		return Char
	}
	return Zh
}

// ROUGE is the tokenizer that the script asks for.
func (l *Letters) ROUGE() Tokenizer {
	switch t := l.BLEU(); {
	case t != T13a:
		return t
	case l.NotASCII() > mostForeign:
		return Intl
	}
	return Native
}

// TER is how words can be told apart in the script: not at all in Japanese and
// Thai, whose words have no spaces between them, and in Chinese as characters.
func (l *Letters) TER() (m TER, ok bool) {
	switch l.BLEU() {
	case Char:
		return TER{}, false
	case Zh:
		return TER{Normalized: true, Asian: true}, true
	}
	return TER{}, true
}
