package dimension

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/embed"
	"github.com/assay-llm/assay/scenario"
)

// read judges what was answered, and writes the values of turns and side questions.
func (d *dialogue) read(p *check.Pass) {
	for t, turn := range d.turns {
		for v, a := range turn.reply.Answers {
			exemptAll(turn.reply, v, probeValues)
			d.exemptTurn(t, turn.reply, v)
			if a.Answered() && !turn.broken[v] {
				r := d.s.Judge(t, said(a))
				turn.readings[v] = &r
				setReading(turn.reply, v, &r)
			}
		}
		if turn.probe == nil {
			continue
		}
		for v, a := range turn.probe.Answers {
			exemptAll(turn.probe, v, slices.Concat(turnValues, windowValues))
			if !a.Answered() || turn.broken[v] {
				continue
			}
			marks, how, ok := d.s.ReadState(t, said(a))
			turn.probe.Set(v, "state_read", yes(ok))
			turn.how[v] = cmp.Or(how, "unread")
			if !ok {
				continue
			}
			turn.marks[v] = marks
			right := 0
			for _, m := range marks {
				if m.Right {
					right++
				}
			}
			turn.probe.Set(v, "state", float64(right)/float64(len(marks)))
		}
	}
}

func exemptAll(t *check.Trial, variant int, values []string) {
	for _, name := range values {
		t.Exempt(variant, name)
	}
}

// exemptTurn says which values a turn cannot have, whatever is answered.
func (d *dialogue) exemptTurn(t int, trial *check.Trial, v int) {
	open, implied := 0, 0
	for _, n := range d.s.Needs(t) {
		if n.Resolution.Open() {
			open++
		} else {
			implied++
		}
	}
	r := d.s.Judge(t, "")
	for name, has := range map[string]bool{
		"expected": r.Expects, "forbidden": r.Forbids > 0, "exercised": len(r.Kept) > 0,
		"auto_satisfied": implied > 0, "needless_clarification": implied > 0, "clarified": open > 0, "false_assumption": open > 0,
	} {
		if !has {
			trial.Exempt(v, name)
		}
	}
	if len(r.Kept) == 0 {
		trial.Exempt(v, "kept")
	}
	if t < len(d.s.Turns)-1 {
		exemptAll(trial, v, windowValues)
	}
}

// setReading writes what was read from a reply.
func setReading(trial *check.Trial, v int, r *scenario.Reading) {
	if r.Expects {
		trial.Set(v, "expected", yes(len(r.Misses) == 0))
	}
	if r.Forbids > 0 {
		trial.Set(v, "forbidden", yes(len(r.Asked) > 0))
	}
	if c := tallyUsed(r.Used); c.implied > 0 {
		trial.Set(v, "auto_satisfied", yes(c.right == c.implied))
		trial.Set(v, "needless_clarification", yes(c.needless > 0))
	}
	if c := tallyUsed(r.Used); c.open > 0 {
		trial.Set(v, "clarified", yes(c.asked == c.open))
		trial.Set(v, "false_assumption", yes(c.assumed > 0))
	}
	kept, exercised := 0, 0
	for _, k := range r.Kept {
		switch k.Standing {
		case scenario.Satisfied:
			kept++
			exercised++
		case scenario.Violated:
			exercised++
		}
	}
	if len(r.Kept) > 0 {
		trial.Set(v, "exercised", float64(exercised)/float64(len(r.Kept)))
	}
	switch {
	case exercised > 0:
		trial.Set(v, "kept", float64(kept)/float64(exercised))
	case len(r.Kept) > 0:
		trial.Exempt(v, "kept") // what is not exercised is not kept, and not violated
	}
}

// used counts what replies made of implied values.
type used struct{ implied, right, needless, open, asked, assumed int }

func tallyUsed(list []scenario.Used) (c used) {
	for _, u := range list {
		switch {
		case u.Resolution.Open():
			c.open++
			c.asked += countIf(u.Asked)
			c.assumed += countIf(u.Assumed)
		default:
			c.implied++
			c.right += countIf(u.Right)
			c.needless += countIf(u.Asked)
		}
	}
	return c
}

func countIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// consistency writes the response consistency score on the last turn of each dialogue.
func (c *DialogueConfig) consistency(ctx context.Context, p *check.Pass, e check.Embedder, all []*dialogue) error {
	residues := make(map[string]string) // of a reply in its language
	byLanguage := make(map[string][]string)
	for _, d := range all {
		for _, turn := range d.turns {
			for _, a := range turn.reply.Answers {
				if a.Answered() {
					r := d.s.Residue(said(a))
					residues[d.s.ID+"\x00"+said(a)] = r
					byLanguage[d.s.Language] = append(byLanguage[d.s.Language], r)
				}
			}
		}
	}
	vectors, err := embedDialogues(ctx, e, byLanguage)
	if err != nil {
		return fmt.Errorf("embedding replies for their consistency: %w", err)
	}
	scales := make(map[string]embed.Scale)
	for _, language := range []string{"en", "zh"} {
		if len(byLanguage[language]) == 0 {
			continue
		}
		scale, err := embed.Calibrate(ctx, e, byLanguage[language], p.Rand("calibration", language))
		if err != nil {
			p.Note("rcs has no numbers for dialogues in %s: %v", language, err)
			continue
		}
		p.Note("unrelated replies in %s have a cosine of %.3f ± %.3f (%d pairs); rcs counts similarity from there", language, scale.Mean, scale.SD, scale.Pairs)
		scales[language] = scale
	}
	for _, replay := range c.replays() {
		windows := make(map[*dialogue][][]scenario.Window) // by variant
		var ofBaseline []scenario.Window
		for _, d := range all {
			if scale, ok := scales[d.s.Language]; ok && d.replay == replay && len(d.turns) == len(d.s.Turns) {
				windows[d] = d.windows(scale, func(text string) []float32 { return vectors[residues[d.s.ID+"\x00"+text]] })
				ofBaseline = append(ofBaseline, windows[d][0]...)
			}
		}
		most := scenario.Quantile95(ofBaseline)
		for _, d := range all {
			if d.replay == replay && len(d.turns) == len(d.s.Turns) {
				d.score(windows[d], c.alpha(), most)
			}
		}
	}
	return nil
}

// windows looks at the replies of each variant; nil where one is missing.
func (d *dialogue) windows(scale embed.Scale, vector func(text string) []float32) [][]scenario.Window {
	last := d.turns[len(d.turns)-1]
	out := make([][]scenario.Window, len(last.reply.Answers))
	for v := range out {
		var replies []string
		for _, turn := range d.turns {
			if turn.readings[v] != nil {
				replies = append(replies, said(turn.reply.Answers[v]))
			}
		}
		if len(replies) == len(d.turns) {
			out[v] = d.s.Windows(replies, func(i, j int) float64 { return scale.Of(embed.Cosine(vector(replies[i]), vector(replies[j]))) })
		}
	}
	return out
}

// score writes the score of each variant, where there is one by definition.
func (d *dialogue) score(windows [][]scenario.Window, alpha, most float64) {
	last := d.turns[len(d.turns)-1].reply
	has := false // a window with something to assert
	for t := 2; t < len(d.s.Turns); t++ {
		_, of := d.s.Retained(t, "")
		has = has || of > 0
	}
	for v := range last.Answers {
		if !has {
			exemptAll(last, v, windowValues)
			continue
		}
		if windows == nil {
			continue
		}
		if s, ok := scenario.Consistency(windows[v], alpha, most); ok {
			last.Set(v, "rcs", min(s.Mean, 1))
			last.Set(v, "rcs_least", min(s.Least, 1))
			last.Set(v, "distinct", min(s.Distinct, 1))
		}
	}
}

// embedDialogues embeds each text once.
func embedDialogues(ctx context.Context, e check.Embedder, texts map[string][]string) (map[string][]float32, error) {
	out := make(map[string][]float32)
	var list []string
	for _, language := range []string{"en", "zh"} {
		for _, t := range texts[language] {
			if _, has := out[t]; !has {
				out[t] = nil
				list = append(list, t)
			}
		}
	}
	for from := 0; from < len(list); from += 64 {
		part := list[from:min(from+64, len(list))]
		v, err := e.Embed(ctx, part)
		if err != nil {
			return nil, err
		}
		if len(v) != len(part) {
			return nil, fmt.Errorf("the embedder gave %d vectors for %d texts", len(v), len(part))
		}
		for i, t := range part {
			if len(v[i]) == 0 || len(v[i]) != len(v[0]) || len(v[i]) != len(out[list[0]]) && from > 0 {
				return nil, fmt.Errorf("the embedder gave a vector of %d numbers among others of another length", len(v[i]))
			}
			out[t] = v[i]
		}
	}
	return out, nil
}
