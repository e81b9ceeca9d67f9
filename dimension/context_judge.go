package dimension

import (
	"fmt"
	"math"
	"regexp"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/haystack"
	"github.com/assay-llm/assay/record"
)

// judge reads the answers to one question. An answer to a text that the server has
// cut is no answer to the question: it has no numbers, as if it had not come.
func (r *contextRun) judge(a *contextAsked) {
	t, kind := a.trial, a.probe.Kind
	a.fates, a.found, a.complete = make([]contextFate, len(t.Answers)), make([]bool, len(t.Answers)), make([]float64, len(t.Answers))
	for v, answer := range t.Answers {
		a.fates[v] = r.fate(v, answer, a.size)
		reading := a.probe.Read(said(answer))
		a.found[v], a.complete[v] = reading.Found, reading.Complete
		if kind == haystack.Absent {
			a.found[v] = reading.Invented
		}
		r.write(t, v, kind, a.fates[v] == fateAnswered, reading)
	}
}

// write puts the numbers on the record, and says which it cannot have.
func (r *contextRun) write(t *check.Trial, v int, kind haystack.Kind, answered bool, reading haystack.Reading) {
	put := func(value string, has bool, x float64) {
		switch {
		case !has:
			t.Exempt(v, value)
		case answered:
			t.Set(v, value, x)
		}
	}
	put("found", kind != haystack.Absent, yes(reading.Found))
	put("complete", kind != haystack.Absent, reading.Complete)
	if r.conf.asks(haystack.Absent) {
		put("invented", kind == haystack.Absent, yes(reading.Invented))
	}
	if r.conf.asks(haystack.Coreference) {
		put("f1", kind == haystack.Coreference, reading.F1)
	}
}

// A server that reads less than this share of the tokens that it was sent, less a few,
// has cut the prompt. What a text really has varies around the estimate, short ones by
// more.
const (
	cutBelow = .93
	cutSpare = 48 // tokens
)

// fate says what became of a question.
func (r *contextRun) fate(v int, a *check.Answer, size contextSize) contextFate {
	if !a.Answered() {
		if a.Outcome == record.HTTP4xx && (a.Status == 413 || overlongRE.MatchString(a.Detail)) {
			return fateRefused
		}
		return fateFailed
	}
	if used, ok := a.Prompt.N(); ok && r.scales[v].known && float64(used) < cutBelow*r.scales[v].tokens(size)-cutSpare {
		return fateCut
	}
	return fateAnswered
}

// overlongRE is how servers say that a prompt does not fit.
var overlongRE = regexp.MustCompile(`(?i)context|too (?:long|large|many)|maximum|exceed|max_(?:model|seq|total|input)_?(?:len|tokens)?|token limit|上下文|过长|超出`)

// contextCell counts what became of the questions of one length.
type contextCell struct {
	Asked    int     `json:"asked"`
	Answered int     `json:"answered"`
	Cut      int     `json:"cut,omitempty"`     // by the server
	Refused  int     `json:"refused,omitempty"` // as too long
	Tokens   float64 `json:"prompt_tokens"`     // mean of the answered ones, as the server counts them; 0: it does not
	Read     float64 `json:"tokens_read,omitempty"`
	Sent     float64 `json:"tokens_sent,omitempty"` // of the cut ones: how many the server read, and about how many it was sent
}

// count adds up what became of all questions, by variant and length.
func (r *contextRun) count() {
	r.shares = make([][]contextCell, len(r.p.Variants))
	for v := range r.shares {
		r.shares[v] = make([]contextCell, len(r.lengths))
		counted := make([]int, len(r.lengths))
		for i := range r.asked {
			a := &r.asked[i]
			c := &r.shares[v][a.length]
			c.Asked++
			used, ok := a.trial.Answers[v].Prompt.N()
			switch a.fates[v] {
			case fateAnswered:
				c.Answered++
				if ok {
					counted[a.length]++
					c.Tokens += (float64(used) - c.Tokens) / float64(counted[a.length])
				}
			case fateCut:
				c.Cut++
				c.Read += (float64(used) - c.Read) / float64(c.Cut)
				c.Sent += (r.scales[v].tokens(a.size) - c.Sent) / float64(c.Cut)
			case fateRefused:
				c.Refused++
			}
		}
	}
}

// outside exempts what no variant takes at a length that nobody asked for by name:
// it is beyond the window, and proves nothing about what is in it.
func (r *contextRun) outside() {
	if len(r.conf.Lengths) > 0 {
		return
	}
	for i := range r.asked {
		a := &r.asked[i]
		all := true
		for v := range r.p.Variants {
			c := r.shares[v][a.length]
			all = all && c.Refused > 0 && c.Refused == c.Asked
		}
		if !all {
			continue
		}
		for v := range r.p.Variants {
			r.exempt(a.trial, v)
		}
	}
}

// reportWindow names servers that cut prompts, and lengths that are out of the window.
func (r *contextRun) reportWindow() {
	for v, s := range r.p.Variants {
		cut, refused, first, least := 0, 0, -1, -1
		for j, c := range r.shares[v] {
			cut, refused = cut+c.Cut, refused+c.Refused
			if c.Cut > 0 && first < 0 {
				first = j
			}
			if c.Refused > 0 && least < 0 {
				least = j
			}
		}
		if cut > 0 {
			c := r.shares[v][first]
			r.p.Report(check.Finding{
				Severity: check.Alarm, Code: "truncated", Variant: s.Name,
				Text: fmt.Sprintf("the server cuts prompts without a word: of about %.0f tokens that were sent at length %d it read %.0f; the %d answers to cut prompts are left out, neither right nor wrong",
					c.Sent, r.lengths[first], c.Read, cut),
				Hint:    fmt.Sprintf("raise the context length of the server (--max-model-len, --ctx-size, num_ctx) or keep prompts below %.0f tokens: this is its configuration, not the model", c.Read),
				Figures: map[string]float64{"length": float64(r.lengths[first]), "sent": math.Round(c.Sent), "read": math.Round(c.Read), "answers": float64(cut)},
			})
		}
		if refused > 0 {
			severity := check.Info
			if len(r.conf.Lengths) > 0 {
				severity = check.Warning
			}
			for w := range r.p.Variants {
				if r.shares[w][least].Answered > 0 {
					severity = check.Warning // another variant takes it
				}
			}
			r.p.Report(check.Finding{
				Severity: severity, Code: "out_of_window", Variant: s.Name,
				Text:    fmt.Sprintf("%d tokens are out of its window: the server refused %d of %d prompts of that length, so nothing is known of it there", r.lengths[least], r.shares[v][least].Refused, r.shares[v][least].Asked),
				Hint:    "serve it with a longer context, or ask shorter ones with lengths: or limit:",
				Figures: map[string]float64{"length": float64(r.lengths[least]), "refused": float64(refused)},
			})
		}
	}
}

// exempt says that a record is no case of the grid.
func (r *contextRun) exempt(t *check.Trial, v int) {
	for _, value := range contextValues(r.conf) {
		if !value.Whole {
			t.Exempt(v, value.Name)
		}
	}
}

// reportUnfinished warns of answers that end at the limit of tokens without what was
// asked for: it may have come next.
func (r *contextRun) reportUnfinished() {
	for v, s := range r.p.Variants {
		unfinished, n := 0, 0
		for i := range r.asked {
			a := &r.asked[i]
			if a.fates[v] != fateAnswered || a.probe.Kind == haystack.Absent {
				continue
			}
			n++
			if cut(a.trial.Answers[v]) && !a.found[v] {
				unfinished++
			}
		}
		if 20*unfinished > n {
			r.p.Report(check.Finding{
				Severity: check.Warning, Code: "answers_cut", Variant: s.Name,
				Text: fmt.Sprintf("%d of %d answers ended at the limit of %d tokens without what was asked for, which counts as not found", unfinished, n, r.conf.room()),
				Hint: "raise max_tokens: of the check", Figures: map[string]float64{"cut": float64(unfinished), "answers": float64(n)},
			})
		}
	}
}
