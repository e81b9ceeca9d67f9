package judge

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
)

// Store writes the labels with the verdicts that a judge gave when it was asked,
// as Measure returns them in the order of the rows: a file that ReadLabels reads
// without being told its columns, and that later runs are held against. Verdicts
// that were stored before are left out, and so are columns that Labels do not
// have. What has no verdict has an empty cell.
func (l *Labels) Store(w io.Writer, s *Scale, all []Observation) error {
	if len(all) != len(l.Rows) {
		return fmt.Errorf("storing verdicts: %d of them for %d cases", len(all), len(l.Rows))
	}
	out := csv.NewWriter(w)
	header := append([]string{"case", "cluster"}, l.Columns.Slices...)
	header = append(header, "prompt", "source", "reference", "answer")
	if s.Pairs {
		header = append(header, "answer_b")
	}
	header = append(header, "human")
	for i := range l.Columns.Raters {
		header = append(header, fmt.Sprintf("human_%d", i+1))
	}
	if s.Pairs {
		header = append(header, "judge", "judge_swapped")
	} else {
		header = append(header, "judge", "judge_2")
	}
	rows := [][]string{header}
	for i := range l.Rows {
		r, o := &l.Rows[i], &all[i]
		cells := append([]string{r.Case, r.Cluster}, l.slices(r)...)
		cells = append(cells, r.Item.Question, r.Item.Source, r.Item.Reference, r.Answer)
		if s.Pairs {
			cells = append(cells, r.Candidate)
		}
		cells = append(append(cells, r.Human), r.Raters...)
		if s.Pairs {
			cells = append(cells, s.verdict(o, 0), s.verdict(o, 1))
		} else {
			cells = append(cells, s.label(o.JudgeLevel), s.label(o.AgainLevel))
		}
		rows = append(rows, cells)
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("storing verdicts: %w", err)
	}
	return nil
}

// verdict is the label of one order of a pair.
func (s *Scale) verdict(o *Observation, order int) string {
	if o.Pair == nil || !o.Pair.Marks[order].Scored() {
		return ""
	}
	return s.label(int(math.Round(2 * o.Pair.Marks[order].Score)))
}

func (s *Scale) label(level int) string {
	if level < 0 || level >= len(s.Labels) {
		return ""
	}
	return s.Labels[level]
}
