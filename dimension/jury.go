package dimension

import (
	"fmt"
	"math"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/stat"
)

// first notes how far a juror prefers what it is shown first.
func first(p *check.Pass, k *judge.Criterion, e check.Endpoint, juror int, tasks []*task) {
	var pairs []judge.Preference
	var clusters []string
	for _, t := range tasks {
		if len(t.pairs) > 0 {
			pairs, clusters = append(pairs, *t.pairs[juror]), append(clusters, t.trial.Shot.Cluster)
		}
	}
	if len(pairs) == 0 {
		return
	}
	switch b := judge.PositionBias(pairs, clusters, shown); {
	case b.Pairs == 0 || math.IsNaN(b.Bias.Value):
		p.Note("%s: of %s nobody can say whether the answer shown first was preferred: none of %d pairs has a verdict in both orders", k.Name, e.Name(), len(pairs))
	default:
		p.Note("%s: to %s the answer shown first was preferred by %+.3f [%.3f, %.3f]; %.0f %% of %d pairs are reversed when swapped", k.Name, e.Name(), b.Bias.Value, b.Bias.Lo, b.Bias.Hi, 100*b.Flips.Value, b.Pairs)
	}
}

// leastAlone is how often a juror has to stand alone, of the cases of whose verdict
// all others are agreed, to be named.
const leastAlone = 0.2

// agree reports how far jurors agree, and those that stand alone too often or have
// no verdict.
func (c *FidelityConfig) agree(p *check.Pass, k *judge.Criterion, tasks []*task) {
	jury := c.jury()
	if len(jury) < 2 || len(tasks) == 0 {
		return
	}
	var clusters []string
	all := make([]judge.Ruling, len(tasks))
	for i, t := range tasks {
		all[i].Marks, clusters = t.marks, append(clusters, t.trial.Shot.Cluster)
	}
	together := judge.Agreement(all, clusters, shown, p.Seed)
	p.Report(check.Finding{
		Severity: check.Info, Code: "jury",
		Text:    fmt.Sprintf("%s: the %d jurors agree to %s (Krippendorff's alpha of their scores: 1 is always, 0 as by chance)", k.Name, len(jury), interval(together)),
		Figures: figures("alpha", together),
	})
	for n, e := range jury {
		alone, agreed, lost := 0, 0, 0
		for _, t := range tasks {
			own := &t.marks[n]
			if !own.Scored() {
				if own.Fault != judge.Suspicious {
					lost++
				}
				continue
			}
			if verdict, ok := agreedBut(t.marks, n); ok {
				if agreed++; verdict != own.Verdict {
					alone++
				}
			}
		}
		f := check.Finding{Severity: check.Warning, Code: "juror", Hint: "find out what it is worth by assay judge calibrate, or name another model"}
		if float64(lost) > judge.MostErrors*float64(len(tasks)) {
			f.Text = fmt.Sprintf("%s: %s gave no verdict in %d of %d", k.Name, e.Name(), lost, len(tasks))
			p.Report(f)
		}
		if share := stat.ExactShare(alone, agreed, shown); share.Lo > leastAlone {
			f.Text = fmt.Sprintf("%s: %s stands alone in %s of %d cases of whose verdict the others are agreed", k.Name, e.Name(), interval(share), agreed)
			f.Figures = figures("alone", share)
			p.Report(f)
		}
	}
}

// agreedBut is the verdict that all jurors but one gave, if it is the same.
func agreedBut(marks []judge.Mark, but int) (verdict string, ok bool) {
	for i := range marks {
		switch m := &marks[i]; {
		case i == but:
		case !m.Scored(), ok && m.Verdict != verdict:
			return "", false
		default:
			verdict, ok = m.Verdict, true
		}
	}
	return verdict, ok
}
