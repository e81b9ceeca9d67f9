package audit

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/assay-llm/assay/record"
)

const (
	padsName = "pads"
	padsAsks = "are the tokens that it counts in the text, and is the text an answer?"
)

// hiddenTokens is how many more tokens than bytes an answer may have that hides
// nothing: the end of text, template marks.
const hiddenTokens = 8

// baselines are the prompts that tell what a chat template costs.
const baselines = 2

// echo is a paragraph and its text sent back, so that the server counts the same
// text as a prompt.
type echo struct{ answer, back *exchange }

type echoes struct {
	base []*exchange
	all  []echo
}

const echoHead = "Read this text: "

func (a *auditor) askEchoes(ctx context.Context) (e echoes) {
	k, rng := &asker{a, "echo"}, a.rng(6)
	for range baselines {
		e.base = append(e.base, k.ask(ctx, question{prompt: salt(rng) + echoHead, max: 1}))
	}
	for range a.n.echo {
		x := k.ask(ctx, question{prompt: salt(rng) + "Write one paragraph of about eighty words about a " + topic(rng) + ".", max: echoTokens})
		if !x.usable() {
			continue
		}
		e.all = append(e.all, echo{x, k.ask(ctx, question{prompt: salt(rng) + echoHead + x.shown(), max: 1})})
	}
	return e
}

func (a *auditor) judgePads(s *answers) Probe {
	p := Probe{Name: padsName, Asks: padsAsks}
	alpha := falseAlarm / probes / 5
	p.Checks = append(p.Checks, a.recount(&s.echoes, alpha), a.impossible(alpha), a.filler(s, alpha), a.loops(s, alpha), a.afterEnd(alpha))
	return p
}

// recount compares the tokens that an answer is said to have with those that the
// same text has as a prompt.
func (a *auditor) recount(e *echoes, alpha float64) Check {
	const name, asks = "usage of the text sent back", "does a text have as many tokens as an answer as it has as a prompt?"
	base, n := 0.0, 0.0
	for _, x := range e.base {
		if c, ok := claimedPrompt(x); ok {
			base, n = base+float64(c), n+1
		}
	}
	base /= n
	var t tally
	var ratios []float64
	for _, pair := range e.all {
		claimed, told := pair.answer.output()
		prompt, counted := claimedPrompt(pair.back)
		text := pair.answer.shown()
		back := float64(prompt) - base
		if !told || !counted || n == 0 || len(text) < 40 || pair.answer.rec.Flags&record.FlagInvalidUTF8 != 0 || back < float64(words(text))/2 {
			continue
		}
		ratios = append(ratios, float64(claimed)/back)
		t.add(pair.answer, float64(claimed) > 1.1*back+hiddenTokens, fmt.Sprintf("%d tokens claimed; the same text has %.0f as a prompt", claimed, back))
	}
	if t.of == 0 {
		return undecided(name, asks, "the server tells no usage that can be compared", "have usage sent (stream_options.include_usage)")
	}
	c := test{.1, .5, alpha}.check(name, asks, &t, "more output tokens are counted than the text has by the server's own count of prompts",
		"count the text with the model's tokenizer and compare the bill")
	c.Figures = append(c.Figures, medianOf("claimed over recounted", "", ratios))
	return c
}

// impossible finds claims that no tokenizer allows: more tokens than bytes, or
// more than were asked for.
func (a *auditor) impossible(alpha float64) Check {
	var t tally
	for _, x := range a.all {
		n, told := x.Claimed.Output.N()
		if !x.usable() || !told || x.q.n > 1 {
			continue
		}
		hidden, _ := x.Claimed.Reasoning.N()
		over := n-hidden > x.rec.OutputBytes+hiddenTokens || n > x.rec.MaxTokens+1
		t.add(x, over, fmt.Sprintf("%d tokens claimed for %d bytes of text; %d were asked for at most", n, x.rec.OutputBytes, x.rec.MaxTokens))
	}
	const name, asks = "possible usage", "can the text hold the tokens? a token that is shown has a byte at least"
	if t.of == 0 {
		return undecided(name, asks, "the server tells no output tokens", "have usage sent (stream_options.include_usage)")
	}
	return test{.02, .3, alpha}.check(name, asks, &t, "more output tokens are counted than the text can hold, or than were asked for", "count the text with the model's tokenizer and compare the bill")
}

// filler finds answers of which much is blank or invisible.
func (a *auditor) filler(s *answers, alpha float64) Check {
	var t tally
	for _, x := range a.plain(s) {
		text := x.shown()
		blank := blankBytes(text)
		t.add(x, blank >= 8 && 4*blank > len(text), fmt.Sprintf("%d of %d bytes are blank or invisible: %s", blank, len(text), a.quote(text)))
	}
	return test{.1, .5, alpha}.check("blank filler", "is the text more than blanks?", &t, "answers are filled up with blank or invisible characters", "count only what can be read")
}

// blankBytes counts bytes of invisible characters, and of blanks behind a blank.
func blankBytes(text string) (n int) {
	before := true
	for _, r := range text {
		blank := unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || r == 0x2800 || r == 0x3164
		if blank && (before || !unicode.IsSpace(r)) {
			n += len(string(r))
		}
		before = blank
	}
	return n
}

// loops finds right answers that go on with one word over and over. A model that
// answers right has no need to; one that cannot may well loop by itself.
func (a *auditor) loops(s *answers, alpha float64) Check {
	var t tally
	for i := range s.recalls.short {
		if r := &s.recalls.short[i]; r.x.usable() && r.found() {
			t.add(r.x, loopAtEnd(r.x.Text) >= 6, "it answers and goes on: "+a.quote(r.x.Text[max(0, len(r.x.Text)-50):]))
		}
	}
	for i := range s.tasks {
		if k := &s.tasks[i]; k.idle.usable() && k.right(k.idle) {
			t.add(k.idle, loopAtEnd(k.idle.Text) >= 6, "it answers and goes on: "+a.quote(k.idle.Text[max(0, len(k.idle.Text)-50):]))
		}
	}
	const name, asks = "repeated filler", "do right answers end where they are complete?"
	if t.of == 0 {
		return undecided(name, asks, "no task was solved, so that nothing tells filler from a model that loops", ableNext)
	}
	return test{.1, .5, alpha}.check(name, asks, &t, "right answers are filled up with a repeated word", "count only the answer")
}

// loopAtEnd counts how often the last word is repeated at the end.
func loopAtEnd(text string) (n int) {
	f := strings.Fields(text)
	for i := len(f) - 1; i >= 0 && f[i] == f[len(f)-1]; i-- {
		n++
	}
	return n
}

// endMarks are the marks of models' templates that end a text or a turn.
var endMarks = regexp.MustCompile(`<\|(?:im_end|endoftext|eot_id|end_of_text|end|eom_id|return)\|>|</s>|<end_of_turn>|<｜end▁of▁sentence｜>|\[EOS\]`)

// afterEnd finds text behind the end, and ends inside the text.
func (a *auditor) afterEnd(alpha float64) Check {
	var t tally
	for _, x := range a.all {
		if !x.usable() {
			continue
		}
		marks := len(endMarks.FindAllString(x.shown(), -1))
		behind, ended := 0, false
		for i := range x.rec.Events {
			k := x.rec.Events[i].Kind
			ended = ended || k == record.KindFinish
			if ended && k.Payload() && x.q.n <= 1 {
				behind++
			}
		}
		t.add(x, marks > 1 || behind > 0, fmt.Sprintf("%d marks of an end in the text, %d events of text behind finish_reason: %s", marks, behind, a.quote(x.shown())))
	}
	return test{.02, .3, alpha}.check("one end", "is there nothing behind the end of an answer?", &t, "answers go on behind their end", "cut the text at its first end, and count that")
}

// plain are answers to plain questions, which need no blanks.
func (a *auditor) plain(s *answers) (out []*exchange) {
	for i := range s.recalls.short {
		out = append(out, s.recalls.short[i].x)
	}
	for i := range s.tasks {
		out = append(out, s.tasks[i].idle)
	}
	for _, e := range s.echoes.all {
		out = append(out, e.answer)
	}
	keep := out[:0]
	for _, x := range out {
		if x.usable() {
			keep = append(keep, x)
		}
	}
	return keep
}
