package dimension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/quiz"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/verify"
)

// HallucinationConfig is the configuration of Hallucination.
type HallucinationConfig struct {
	Given `yaml:",inline"`

	Source      string         `yaml:"source" oneof:"prompt,none" doc:"what answers have to rest on: what the prompt says, or nothing (closed-book: only right, wrong and abstaining are told apart, by what the cases expect); prompt if left out"`
	Cases       int            `yaml:"cases" min:"20" max:"10000" doc:"how many passages are made, each with a question, of which every fourth is not answered by it; 160 if left out"`
	Judge       check.Endpoint `yaml:"judge" doc:"a model that says of each sentence of an answer whether the source has it, and of closed-book answers whether they are right; facts and names are compared by rules if left out"`
	MaxClaims   int            `yaml:"max_claims" min:"1" max:"100" doc:"how many sentences of an answer are judged; 12 if left out"`
	Samples     int            `yaml:"samples" min:"0" max:"20" doc:"further answers to each question, by which the first is screened for what the model does not say again; none if left out"`
	Temperature *float64       `yaml:"temperature" min:"0.1" max:"2" doc:"of the further answers; 1 if left out. The first is asked for at 0"`
}

// CheckConfig checks what depends on each other.
func (c *HallucinationConfig) CheckConfig(n *config.Node) {
	switch {
	case !c.grounded() && c.Set.IsZero():
		n.Fault("asks without a source, and has no set", "the questions that are made rest on a passage: name a set, or leave source out")
	case !c.Set.IsZero() && c.Cases > 0:
		n.Fault("has a set, and says how many cases to make", "write limit: for the cases of a set")
	case c.Temperature != nil && c.Samples == 0:
		n.Fault("has a temperature, but asks for no further answers", "write samples: 5, or leave it out")
	case c.MaxClaims > 0 && (c.Judge.IsZero() || !c.grounded()):
		n.Fault("bounds the claims that are judged, but nobody judges any", "name a judge, or leave it out")
	}
}

func (c *HallucinationConfig) grounded() bool { return c.Source != "none" }

// Hallucination looks for what answers make up.
var Hallucination = &check.Check{
	Name:   "hallucination",
	Doc:    "what answers make up: claims without support in the source, wrong answers beside abstaining, and what a model does not say again",
	Config: func() any { return new(HallucinationConfig) },
	Values: hallucinationValues,
	Run:    runHallucination,
}

func hallucinationValues(conf any) (out []check.Value) {
	c, ok := conf.(*HallucinationConfig)
	if !ok {
		c = new(HallucinationConfig)
	}
	if c.grounded() {
		out = []check.Value{
			yesNo("unsupported", "answers with unsupported claims", "of an answer with checkable claims: at least one has no support in the source; an answer without claims has no number", false),
			{Name: "unsupported_share", Title: "unsupported share of an answer", Doc: "of an answer with checkable claims: how many of them have no support; its mean gives a short answer as much weight as a long one", Unit: record.Proportion, Most: 1},
			{Name: "claims", Title: "checkable claims", Doc: "claims of an answer that can be held against the source", Unit: record.Points, Higher: true},
			{Name: "rate", Title: "unsupported claims", Doc: "unsupported claims of all answers over checkable claims of all answers", Unit: record.Proportion, Most: 1, Whole: true},
			yesNo("invented", "invented answers", "of a question that the source does not answer: it is answered all the same", false),
		}
	}
	out = append(out,
		yesNo("wrong", "wrong answers", "of a question with an expected answer that was answered: it is wrong. Abstaining has no number here, and one that cannot be read is missing", false),
		yesNo("abstained", "abstaining", "of a question with an expected answer: the answer says that it does not know, and gives none. An empty or unreadable one does not abstain", false))
	if c.Samples > 0 {
		out = append(out, check.Value{Name: "surprise", Title: "surprise by further answers", Doc: "SelfCheckGPT's unigram score: mean −ln p of the answer's words among all answers, in nats; a screen, to be compared between like questions only", Unit: record.Points})
		if !c.Judge.IsZero() {
			out = append(out, check.Value{Name: "selfcheck", Title: "not borne out by further answers", Doc: "SelfCheckGPT's prompt score: mean over sentences and further answers of 0 if one bears the sentence out, 1 if not, 1/2 if it cannot be told", Unit: record.Points, Most: 1})
		}
	}
	return out
}

// passageCase is one question, and what is known of its answers.
type passageCase struct {
	corpus.Case
	source  string // all that an answer may rest on
	echo    string // the question alone, of which an answer may repeat what it likes
	asks    bool   // an answer is expected
	open    bool   // the source does not answer it
	trials  []*check.Trial
	answers []*grounded // by variant; nil: there is no answer
}

// grounded is what is known of one answer.
type grounded struct {
	text                         string
	claims, unsupported, unclear int
	invention                    string // an unsupported claim
	capped                       int    // sentences that were not judged
	is                           standing
	unjudged                     bool    // the judge has no verdict on what it is
	surprise, selfcheck          float64 // NaN: not known
}

// standing is what an answer is to what is expected. The zero standing is that
// nothing of it can be read.
type standing uint8

const (
	unreadable standing = iota
	right
	wrong
	abstains
)

func runHallucination(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*HallucinationConfig)
	inquiries, err := conf.inquiries(p)
	if err != nil {
		return err
	}
	s, err := conf.reading(p)
	if err != nil {
		return err
	}
	asked := conf.ask(ctx, p, inquiries)
	judged := p.Each(ctx, len(inquiries), func(ctx context.Context, i int) error {
		q := inquiries[i]
		for v := range p.Variants {
			if err := s.look(ctx, q, v); err != nil {
				return err
			}
		}
		return nil
	})
	conf.write(p, inquiries)
	conf.estimate(p, inquiries)
	conf.report(p, inquiries)
	return errors.Join(asked, judged, s.faults())
}

// inquiries are the cases of the set, or those that the seed makes.
func (c *HallucinationConfig) inquiries(p *check.Pass) (out []*passageCase, err error) {
	if c.Set.IsZero() {
		for _, q := range quiz.Inquiries(p.Seed, cmp.Or(c.Cases, 160), c.Languages) {
			out = append(out, &passageCase{
				Case:   corpus.Case{ID: q.ID, Prompt: q.Prompt, Expect: q.Expect, Labels: map[string]string{"language": q.Language}},
				source: q.Prompt, echo: question(q.Prompt), asks: q.Expect != "", open: q.Expect == "",
			})
		}
		return out, nil
	}
	a := c.asking()
	cases, err := a.cases(p)
	if err != nil {
		return nil, err
	}
	for _, k := range cases {
		q := &passageCase{Case: k, asks: k.Expect != "", open: k.Labels["answerable"] == "no"}
		for _, m := range a.messages(k) {
			q.source += m.Content + "\n\n"
		}
		q.echo = question(q.source)
		if q.asks && q.open {
			return nil, fmt.Errorf("case %s of %s is not answerable, and expects an answer: leave out one of the two", k.ID, c.Set.File)
		}
		if !q.asks && !c.grounded() {
			return nil, fmt.Errorf("case %s of %s expects nothing, and has no source to rest on", k.ID, c.Set.File)
		}
		out = append(out, q)
	}
	return out, nil
}

// question is the last paragraph of a prompt that has several: what stands before it
// is the material. A prompt of one paragraph is question and material alike, and
// nothing is a mere echo of it.
func question(prompt string) string {
	prompt = strings.TrimSpace(prompt)
	if i := strings.LastIndex(prompt, "\n\n"); i >= 0 {
		return prompt[i+2:]
	}
	return ""
}

// claimed are the claims of an answer that are no echo of the question.
func (q *passageCase) claimed(text string) []verify.Claim {
	echo := verify.Claims(text, q.echo)
	return slices.DeleteFunc(verify.Claims(text, q.source), func(c verify.Claim) bool {
		return slices.ContainsFunc(echo, func(e verify.Claim) bool { return e.Supported && e.Fact == c.Fact })
	})
}

// ask asks each question once at temperature 0, and as often again as samples says.
func (c *HallucinationConfig) ask(ctx context.Context, p *check.Pass, inquiries []*passageCase) error {
	a := c.asking()
	a.Replicates, a.Temperature = 1+c.Samples, c.Temperature
	if a.Temperature == nil {
		one := 1.0
		a.Temperature = &one
	}
	byID := make(map[string]*passageCase, len(inquiries))
	var cases []corpus.Case
	for _, q := range inquiries {
		q.trials, q.answers = make([]*check.Trial, 1+c.Samples), make([]*grounded, len(p.Variants))
		byID[q.ID] = q
		cases = append(cases, q.Case)
	}
	shots := a.shots(cases)
	for i := range shots {
		if shots[i].Question.Replicate == 0 {
			shots[i].Question.Temperature = new(float64)
		}
	}
	trials, err := p.Ask(ctx, shots)
	for _, t := range trials {
		byID[t.Shot.Case].trials[t.Shot.Question.Replicate] = t
	}
	return err
}

// settle says what an answer is to what is expected, by rules. An answer that holds
// the expected detail is right, whatever it hedges; it abstains if it says so and
// invents nothing; it is wrong if it gives another detail of the kind, or says
// something else in a few words where words are expected.
func settle(text, expect string, claims []verify.Claim, refused, invents bool) standing {
	if has(text, expect) {
		return right
	}
	if (refused || verify.Abstains(text)) && !invents {
		return abstains
	}
	want := verify.Claims(expect+".", "")
	for _, c := range claims {
		if len(want) == 0 || slices.ContainsFunc(want, func(w verify.Claim) bool { return related(w.Kind, c.Kind) }) {
			return wrong
		}
	}
	if n := verify.Words(text); n > 0 && n <= fewWords && (len(want) == 0 || want[0].Kind == verify.FactProper) {
		return wrong
	}
	return unreadable
}

// fewWords may be an answer and nothing else.
const fewWords = 4

// related reports whether a detail of one kind may stand for one of the other.
func related(a, b verify.FactKind) bool {
	number := func(k verify.FactKind) bool {
		return k == verify.FactNumber || k == verify.FactQuantity || k == verify.FactMoney
	}
	return a == b || number(a) && number(b)
}

// has reports whether a text has every detail of what is expected, or its words.
func has(text, expect string) bool {
	want := verify.Claims(expect+".", text)
	for _, c := range want {
		if !c.Supported {
			return false
		}
	}
	return len(want) > 0 || verify.Expected{Kind: verify.Phrase, Value: expect}.Check(text).Outcome == verify.Right
}

// support is asked of each sentence of an answer.
func support() judge.Criterion {
	return judge.Criterion{
		Name: "support", Sees: []string{"source"},
		Asks: "The source is all that somebody was given who had to answer a question; the answer is one sentence out of what was answered. Does the source bear out what it states? Names, numbers, dates, units and negations have to be the same. What the source does not say counts as not borne out, even if it is true.",
		Levels: []judge.Level{
			{Verdict: "contradicted", Means: "The source says otherwise."},
			{Verdict: "not_in_context", Means: "The source says nothing of it."},
			{Verdict: "not_checkable", Means: "It states nothing that a source could bear out: a courtesy, an opinion, a question, or that the source does not say or that it is not known."},
			{Verdict: "supported", Means: "The source bears it out."},
		},
	}
}

// answered is asked of closed-book answers.
func answered() judge.Criterion {
	return judge.Criterion{
		Name: "answered", Sees: []string{"question", "reference"},
		Asks: "The reference is the right answer to the question. What does the answer do?",
		Levels: []judge.Level{
			{Verdict: "wrong", Means: "It gives an answer that is not that of the reference, or several."},
			{Verdict: "abstained", Means: "It says that it does not know or cannot answer, and gives no answer."},
			{Verdict: "right", Means: "It gives the answer of the reference, in whatever words."},
		},
	}
}

// bornOut is asked of a sentence and one further answer.
func bornOut() judge.Criterion {
	return judge.Criterion{
		Name: "borne_out", Sees: []string{"source"},
		Asks: "The source is another answer to the same question. Is the sentence supported by it?",
		Levels: []judge.Level{
			{Verdict: "no", Means: "It says otherwise, or says nothing of it."},
			{Verdict: "unclear", Means: "It cannot be told."},
			{Verdict: "yes", Means: "It says the same."},
		},
	}
}
