package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/overlap"
)

func newScore(c *console) *cobra.Command {
	var asJSON bool
	var s scoring
	cmd := &cobra.Command{
		Use:   "score HYP REF...",
		Short: "Score texts against references: BLEU, chrF, TER, ROUGE",
		Long: `Score compares texts with references by the words and characters that they share,
to the last digit as sacrebleu 2.6.0 and rouge_score 0.1.2 do, and adds what those
lack: intervals, and with --baseline a paired test of two systems.

Each file has a text a line, and every file the same number of lines. Of JSON lines
write FILE.jsonl:FIELD; there a text may be null, which is an absent reference, and
may have several lines. The tokenizers follow the script of the texts.

It judges nothing, and exits with 0 whatever the scores are.`,
		Example: "  assay score answers.txt references.txt\n  assay score new.jsonl:answer cases.jsonl:reference --cluster cases.jsonl:session --baseline old.jsonl:answer\n  assay score out.zh ref.zh --metrics bleu,chrf++ --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(fmt.Errorf("assay score wants the texts of a system and one or more files of references, got %d arguments\n  hint: %s", len(args), use(cmd)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s.hyp, s.refs = args[0], args[1:]
			scored, err := s.run(cmd.Context(), c)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return json.NewEncoder(c.out).Encode(scored)
			}
			return c.scored(scored)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&s.metrics, "metrics", nil, "bleu, chrf, chrf++, ter, rouge1 to rouge9, rougeL, rougeLsum (default those that the script of the texts permits)")
	f.StringVar((*string)(&s.bleu.Tokenizer), "tokenizer", "auto", "of BLEU: auto, 13a, intl, zh, zh-fixed, char or none")
	f.StringVar((*string)(&s.rouge.Tokenizer), "rouge-tokenizer", "auto", "of ROUGE: auto, rouge, intl, zh, zh-fixed or char")
	f.StringVar((*string)(&s.bleu.Smoothing), "smoothing", "exp", "of BLEU: exp, floor, add-k or none")
	f.Float64Var(&s.bleu.Value, "smoothing-value", 0, "of the smoothings floor (default 0.1) and add-k (default 1)")
	f.BoolVar(&s.lower, "lowercase", false, "take capitals for small letters in BLEU and chrF; TER and ROUGE always do")
	f.BoolVar(&s.rouge.Stem, "stem", false, "stem English words in ROUGE")
	f.StringVar(&s.baseline, "baseline", "", "the texts of another system, to compare with")
	f.StringVar(&s.cluster, "cluster", "", "a file with the document or session of each text, which are taken as independent of each other")
	f.StringVar(&s.each, "each", "", "write the scores of each text to this file, as JSON lines")
	f.Float64Var(&s.resampling.Confidence, "confidence", 0.95, "of intervals")
	f.IntVar(&s.resampling.Repeats, "repeats", 2000, "draws for each interval")
	f.IntVar(&s.resampling.Trials, "trials", 10_000, "draws for each test")
	f.Uint64Var(&s.resampling.Seed, "seed", 42, "of the draws")
	f.BoolVar(&asJSON, "json", false, "print one JSON object (assay.score/1)")
	return cmd
}

// scoring is what was asked for.
type scoring struct {
	hyp, baseline, cluster, each string
	refs, metrics                []string
	bleu                         overlap.BLEU
	rouge                        overlap.ROUGE
	lower                        bool
	resampling                   overlap.Resampling
}

// scored is what `assay score` says.
type scored struct {
	Schema     string        `json:"schema"`
	Hypotheses string        `json:"hypotheses"`
	Baseline   string        `json:"baseline_hypotheses,omitempty"`
	References []string      `json:"references"`
	Segments   int           `json:"segments"`
	Clusters   int           `json:"clusters"`
	Seed       uint64        `json:"seed"`
	Scores     []scoredValue `json:"scores"`
	Notes      []string      `json:"notes,omitempty"`
}

type scoredValue struct {
	Metric       string           `json:"metric"`
	Signature    string           `json:"signature"`
	LessIsBetter bool             `json:"less_is_better"`
	Score        contract.Figure  `json:"score"`
	Baseline     *contract.Figure `json:"baseline,omitempty"`
	Difference   *contract.Figure `json:"difference,omitempty"`
	P            *float64         `json:"p,omitempty"`
	Error        *float64         `json:"p_error,omitempty"`
	Trials       int              `json:"trials,omitempty"`
}

// run reads the files twice, first for their script and whether they fit
// together, and then to score them.
func (s *scoring) run(ctx context.Context, c *console) (*scored, error) {
	if s.resampling.Repeats < 100 || s.resampling.Repeats > 1_000_000 || s.resampling.Trials < 100 || s.resampling.Trials > 10_000_000 {
		return nil, errors.New("--repeats must lie between 100 and 1,000,000, --trials between 100 and 10,000,000\n  hint: leave them out")
	}
	if !(s.resampling.Confidence > 0 && s.resampling.Confidence < 1) {
		return nil, fmt.Errorf("--confidence is %v\n  hint: write a number between 0 and 1, such as 0.95", s.resampling.Confidence)
	}
	out := &scored{Schema: "assay.score/1", Hypotheses: s.hyp, Baseline: s.baseline, References: s.refs, Seed: s.resampling.Seed}
	var letters overlap.Letters
	if err := s.read(func(t scoredLine) error {
		out.Segments++
		letters.Add(t.hyp)
		for _, r := range t.refs {
			letters.Add(r)
		}
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	if out.Segments == 0 {
		return nil, fmt.Errorf("%s is empty, and nothing can be scored\n  hint: name a file with a text on each line", s.hyp)
	}
	metrics, err := s.chosen(&letters, out)
	if err != nil {
		return nil, err
	}
	a, b, err := s.tally(ctx, metrics)
	if err != nil {
		return nil, err
	}
	out.Clusters = a[0].Clusters()
	if s.cluster == "" && out.Clusters < out.Segments {
		out.Notes = append(out.Notes, fmt.Sprintf("%d texts are drawn in %d groups, because memory is bounded", out.Segments, out.Clusters))
	}
	for i := range a {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := s.value(a[i], b, i)
		if err != nil {
			return nil, fmt.Errorf("%w\n  hint: --rouge-tokenizer auto chooses one", err)
		}
		out.Scores = append(out.Scores, v)
	}
	return out, nil
}

// value is the row of a metric.
func (s *scoring) value(a *overlap.Tally, others []*overlap.Tally, i int) (scoredValue, error) {
	m := a.Metric()
	score, err := a.Estimate(s.resampling)
	if err != nil {
		return scoredValue{}, err
	}
	v := scoredValue{Metric: m.Name(), Signature: a.Signature(), LessIsBetter: m.LessIsBetter(), Score: contract.Figure{Estimate: score}}
	if others == nil {
		return v, nil
	}
	base, err := others[i].Estimate(s.resampling)
	if err != nil {
		return scoredValue{}, err
	}
	c, err := overlap.Compare(a, others[i], s.resampling)
	if err != nil {
		return scoredValue{}, err
	}
	v.Baseline, v.Difference = &contract.Figure{Estimate: base}, &contract.Figure{Estimate: c.Difference}
	v.P, v.Error, v.Trials = &c.P, &c.Error, c.Trials
	return v, nil
}

// chosen makes the metrics that were asked for, or else those that the script
// permits.
func (s *scoring) chosen(letters *overlap.Letters, out *scored) ([]overlap.Metric, error) {
	bleu, rouge := s.bleu, s.rouge
	if bleu.Tokenizer == "auto" {
		bleu.Tokenizer = letters.BLEU()
	} else if fits := letters.BLEU(); fits != overlap.T13a && (bleu.Tokenizer == overlap.T13a || bleu.Tokenizer == overlap.Intl) {
		out.Notes = append(out.Notes, fmt.Sprintf("the tokenizer %s takes whole sentences of this script for words; %s fits", bleu.Tokenizer, fits))
	}
	if rouge.Tokenizer == "auto" {
		if rouge.Tokenizer = letters.ROUGE(); rouge.Stem {
			rouge.Tokenizer = overlap.Native
		}
	}
	bleu.Lowercase = s.lower
	ter, terFits := letters.TER()
	names := s.metrics
	if len(names) == 0 {
		if names = []string{"bleu", "chrf", "ter", "rouge1", "rouge2", "rougel"}; !terFits {
			names = slices.DeleteFunc(names, func(n string) bool { return n == "ter" })
			out.Notes = append(out.Notes, "TER is left out, because there are no spaces between the words of this script")
		}
	}
	var metrics []overlap.Metric
	for _, name := range names {
		var m overlap.Metric
		switch lower := strings.ToLower(strings.TrimSpace(name)); {
		case lower == "bleu":
			m = bleu
		case lower == "chrf":
			m = overlap.CHRF{Lowercase: s.lower}
		case lower == "chrf++":
			m = overlap.CHRF{WordOrder: 2, Lowercase: s.lower}
		case lower == "ter" && !terFits:
			return nil, errors.New("TER counts words, and there are no spaces between those of this script\n  hint: take chrf, or text with spaces between its words")
		case lower == "ter":
			m = ter
		case strings.HasPrefix(lower, "rouge"):
			r := rouge
			if r.Type = strings.TrimPrefix(lower, "rouge"); strings.HasPrefix(r.Type, "l") {
				r.Type = "L" + r.Type[1:]
			}
			m = r
		default:
			return nil, fmt.Errorf("there is no metric %q\n  hint: take bleu, chrf, chrf++, ter, rouge1, rouge2, rougeL or rougeLsum", name)
		}
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w\n  hint: assay score --help lists the options", name, err)
		}
		metrics = append(metrics, m)
	}
	return metrics, nil
}

// tally adds all texts to tallies of each metric, and the baseline's to b.
func (s *scoring) tally(ctx context.Context, metrics []overlap.Metric) (a, b []*overlap.Tally, err error) {
	for _, m := range metrics {
		x, err := overlap.NewTally(m)
		if err != nil {
			return nil, nil, err
		}
		a = append(a, x)
		if s.baseline == "" {
			continue
		}
		if x, err = overlap.NewTally(m); err != nil {
			return nil, nil, err
		}
		b = append(b, x)
	}
	write := func(map[string]float64) error { return nil }
	if s.each != "" {
		f, err := os.Create(s.each)
		if err != nil {
			return nil, nil, fmt.Errorf("writing the scores of each text: %w\n  hint: name a file in a folder that is there", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		n, out := 0, json.NewEncoder(f)
		write = func(scores map[string]float64) error {
			n++
			return out.Encode(struct {
				Segment int                `json:"segment"`
				Scores  map[string]float64 `json:"scores"`
			}{n, scores})
		}
	}
	err = s.read(func(t scoredLine) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		scores := map[string]float64{}
		for i, x := range a {
			stats, err := x.Add(overlap.Segment{Hypothesis: t.hyp, References: t.refs, Cluster: t.cluster})
			if err != nil {
				return fmt.Errorf("scoring %s: %w", s.hyp, err)
			}
			scores[x.Metric().Name()] = sentence(x.Metric(), stats)
			if b == nil {
				continue
			}
			if _, err := b[i].Add(overlap.Segment{Hypothesis: t.base, References: t.refs, Cluster: t.cluster}); err != nil {
				return fmt.Errorf("scoring %s: %w", s.baseline, err)
			}
		}
		return write(scores)
	})
	return a, b, err
}

// sentence is the score of one text. Short ones have no long n-grams.
func sentence(m overlap.Metric, stats []float64) float64 {
	if b, ok := m.(overlap.BLEU); ok {
		b.EffectiveOrder = true
		m = b
	}
	return m.Score(stats)
}

// scored prints a row for each metric, and below what must be known of them.
func (c *console) scored(s *scored) error {
	fmt.Fprintf(c.out, "texts %d, clusters %d, intervals of %v %%\n\n", s.Segments, s.Clusters, math.Round(1e5*s.Scores[0].Score.Confidence)/1e3)
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	if s.Baseline == "" {
		fmt.Fprintln(w, "METRIC\tSCORE\tSIGNATURE")
	} else {
		fmt.Fprintln(w, "METRIC\tSCORE\tBASELINE\tDIFFERENCE\tP\tSIGNATURE")
	}
	var marks []string
	for _, v := range s.Scores {
		digits := 2
		if strings.HasPrefix(v.Metric, "ROUGE") {
			digits = 4
		}
		row := []string{v.Metric, scoreText(v.Score, digits, false, &marks)}
		if v.Baseline != nil {
			p := fmt.Sprintf("%.4f", *v.P)
			if *v.Error > 0 {
				p += fmt.Sprintf(" ± %.4f", *v.Error)
			}
			row = append(row, scoreText(*v.Baseline, digits, false, &marks), scoreText(*v.Difference, digits, true, &marks), p)
		}
		fmt.Fprintln(w, strings.Join(append(row, v.Signature), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	notes(c.out, marks)
	for _, n := range s.Notes {
		c.notice("%s", n)
	}
	return nil
}

func notes(w io.Writer, marks []string) {
	for i, m := range marks {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "(%d) %s\n", i+1, m)
	}
}

// scoreText is a value with its interval, and the number of the note that says
// why it has none.
func scoreText(f contract.Figure, digits int, sign bool, marks *[]string) string {
	number := func(x float64) string {
		switch {
		case math.IsInf(x, 0):
			return "–"
		case sign:
			return strings.Replace(fmt.Sprintf("%+.*f", digits, x), "-", "−", 1)
		}
		return fmt.Sprintf("%.*f", digits, x)
	}
	text := fmt.Sprintf("%s [%s, %s]", number(f.Value), number(f.Lo), number(f.Hi))
	for _, w := range f.Warnings {
		i := slices.Index(*marks, w.Text)
		if i < 0 {
			i, *marks = len(*marks), append(*marks, w.Text)
		}
		text += fmt.Sprintf(" (%d)", i+1)
	}
	return text
}
