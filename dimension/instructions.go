package dimension

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/verify"
)

// InstructionsConfig is the configuration of Instructions.
type InstructionsConfig struct {
	Asking `yaml:",inline"`
}

// Instructions asks prompts that say of what form the answer is to be.
var Instructions = &check.Check{
	Name:   "instructions",
	Doc:    "whether an answer does what the prompt says of its form: length, format, words, case, language (IFEval)",
	Config: func() any { return new(InstructionsConfig) },
	Values: func(any) []check.Value {
		return []check.Value{
			yesNo("strict", "all instructions followed", "the answer follows every instruction of its prompt", true),
			yesNo("loose", "all followed, loosely", "it does, or does without its first line, its last line or the stars of Markdown", true),
			{Name: "followed", Title: "instructions followed", Doc: "share of the prompt's instructions that the answer follows", Unit: record.Points, Higher: true, Most: 1},
		}
	},
	Run: runInstructions,
}

// instructionsOf reads what a case of IFEval expects.
func instructionsOf(c corpus.Case) ([]verify.Instruction, error) {
	var row struct {
		IDs    []string          `json:"instruction_id_list"`
		Kwargs []json.RawMessage `json:"kwargs"`
	}
	if err := json.Unmarshal([]byte(c.Expect), &row); err != nil || len(row.IDs) == 0 || len(row.IDs) != len(row.Kwargs) {
		return nil, fmt.Errorf(`case %s expects no instructions: want {"instruction_id_list": […], "kwargs": […]} of equal length, as in the rows of IFEval`, c.ID)
	}
	all := make([]verify.Instruction, len(row.IDs))
	for i, id := range row.IDs {
		var err error
		if all[i], err = verify.ParseInstruction(id, row.Kwargs[i]); err != nil {
			return nil, fmt.Errorf("case %s: %w", c.ID, err)
		}
	}
	return all, nil
}

func runInstructions(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*InstructionsConfig)
	cases, err := conf.cases(p)
	if err != nil {
		return err
	}
	wanted := make(map[string][]verify.Instruction, len(cases))
	for _, c := range cases {
		if wanted[c.ID], err = instructionsOf(c); err != nil {
			return fmt.Errorf("reading %s: %w", conf.Set.File, err)
		}
	}
	for _, v := range []string{"strict", "loose", "followed"} {
		p.Sign(check.Signature{Value: v, Estimator: "IFEval " + v + ", an undetermined language is missing"})
	}
	undetermined := make([]int, len(p.Variants))
	err = conf.each(ctx, p, cases, func(c corpus.Case, t *check.Trial, v int, a *check.Answer) {
		text := said(a)
		strict := tally(wanted[c.ID], func(i verify.Instruction) verify.Followed { return i.Follow(text) })
		loose := tally(wanted[c.ID], func(i verify.Instruction) verify.Followed { return i.FollowLoosely(text) })
		if x, ok := strict.all(); ok {
			t.Set(v, "strict", x)
		} else {
			undetermined[v]++
		}
		if x, ok := loose.all(); ok {
			t.Set(v, "loose", x)
		}
		if strict.open == 0 {
			t.Set(v, "followed", float64(strict.yes)/float64(strict.yes+strict.no))
		}
	})
	for v, n := range undetermined {
		if n > 0 {
			p.Note("%s: of %d answers the language could not be told, and nothing else decided; they are missing", p.Variants[v].Name, n)
		}
	}
	return err
}

// counts are instructions by what became of them.
type counts struct{ yes, no, open int }

func tally(all []verify.Instruction, follow func(verify.Instruction) verify.Followed) (c counts) {
	for _, i := range all {
		switch follow(i) {
		case verify.Yes:
			c.yes++
		case verify.No:
			c.no++
		default:
			c.open++
		}
	}
	return c
}

// all is 1 if every instruction was followed and 0 if one was not; one that is
// undetermined decides nothing, so the number is missing if no other was broken.
func (c counts) all() (x float64, ok bool) {
	switch {
	case c.no > 0:
		return 0, true
	case c.open > 0:
		return 0, false
	}
	return 1, true
}
