package dimension

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/haystack"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// longReader is a model that finds the sentence about what is asked, if nothing is in its
// way.
type longReader struct {
	perByte float64                          // tokens; 0: it does not count
	window  int                              // tokens; a longer prompt is cut, or else refused
	cuts    bool                             // … it is cut
	blind   func(tokens, depth float64) bool // where it overlooks the needle
}

var (
	askedRE  = regexp.MustCompile(`What is the access code of the (.+?)\?`)
	statedRE = regexp.MustCompile(`The access code of the (.+?) is (\d{7})\.`)
)

func (m longReader) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	prompt := q.Messages[0].Content
	tokens := int(m.perByte*float64(len(prompt))) + 9
	sent := tokens
	if m.window > 0 && tokens > m.window {
		if !m.cuts {
			return &check.Answer{Outcome: record.HTTP4xx, Status: 400, Detail: "This model's maximum context length is exceeded"}, nil
		}
		prompt, tokens = prompt[int(float64(tokens-m.window)/m.perByte):], m.window
	}
	a := &check.Answer{Outcome: record.OK, Status: 200, Text: "not stated", Finish: "stop", Output: record.Tokens(4)}
	if m.perByte > 0 {
		a.Prompt = record.Tokens(int64(tokens))
	}
	asked := askedRE.FindStringSubmatch(prompt)
	for _, c := range statedRE.FindAllStringSubmatchIndex(prompt, -1) {
		at := float64(c[0]) / float64(len(prompt))
		if asked != nil && prompt[c[2]:c[3]] == asked[1] && (m.blind == nil || !m.blind(float64(sent), at)) {
			a.Text = "It is " + prompt[c[4]:c[5]] + "."
		}
	}
	return a, nil
}

func runContextOn(t *testing.T, conf *ContextConfig, models ...check.Asker) *check.Outcome {
	t.Helper()
	c := check.Config{Checks: []check.Declared{{Check: Context, Config: conf}}, Seed: 11}
	for i, m := range models {
		c.Variants = append(c.Variants, check.Variant{Name: []string{"baseline", "candidate"}[i], Asker: m})
	}
	out, err := check.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Why != "" {
		t.Fatalf("it proves nothing: %s", out[0].Why)
	}
	return out[0]
}

func codesOf(o *check.Outcome, variant string) (codes []string) {
	for _, f := range o.Findings {
		if f.Variant == variant && f.Severity != check.Info {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func smallContext() *ContextConfig {
	return &ContextConfig{Lengths: []int64{512, 1024, 2048, 4096}, Texts: 20}
}

// TestContextOfASoundModel: everything is found, nothing invented, nothing reported.
func TestContextOfASoundModel(t *testing.T) {
	o := runContextOn(t, smallContext(), longReader{perByte: .3}, longReader{perByte: .41})
	if len(o.Findings) != 0 {
		t.Errorf("findings %+v; want none", o.Findings)
	}
	data := o.Data.(*ContextData)
	for _, v := range data.Variants {
		if v.Break == nil || v.Break.Found || v.Effective == nil || v.Effective.Value != 4096 || v.Effective.Hi != nil || v.Corrected.Value != 1 || *v.Corrected.Lo < .8 {
			t.Errorf("%s: breakpoint %+v, effective length %+v, corrected %+v; want none, 4,096 and more, and 1", v.Variant, v.Break, v.Effective, v.Corrected)
		}
		for j, c := range v.Cells {
			// The one that needs more tokens fills the length; both are asked the same.
			if c.Answered != 30 || c.Tokens > float64(data.Lengths[j]-64) || v.Variant == "candidate" && c.Tokens < .9*float64(data.Lengths[j]-64) {
				t.Errorf("%s at %d: %+v; want 30 answers and prompts of that length, the answer's room left out", v.Variant, data.Lengths[j], c)
			}
		}
	}
	found, depths := map[string]int{}, map[string]int{}
	for _, r := range o.Records {
		_, has := r.Values["context.found"]
		_, invented := r.Values["context.invented"]
		if absent := r.Labels["kind"] == "absent"; has == absent || invented != absent {
			t.Errorf("%s has the values %v", r.Case, r.Values)
		}
		if has && r.Variant == "baseline" {
			found[r.Labels["length"]]++
			depths[r.Labels["length"]+" "+r.Labels["depth"]]++
		}
	}
	if len(depths) != 20 {
		t.Errorf("%d pairs of length and depth, want all 20: %v", len(depths), depths)
	}
	for k, n := range depths {
		if n != 4 {
			t.Errorf("length and depth %s were asked %d times, want 4", k, n)
		}
	}
	if len(o.Figures) != 3 {
		t.Errorf("%d figures, want the curves and a heat map of each variant", len(o.Figures))
	}
	if len(o.Estimates) != 2*3+3 {
		t.Errorf("%d estimates, want three of each variant and three changes", len(o.Estimates))
	}
}

// TestGridIsALatinSquare: over the texts, each length stands at each place of the order
// and has each depth equally often, and each depth each place.
func TestGridIsALatinSquare(t *testing.T) {
	const texts, lengths, depths = 60, 4, 5
	pairs := map[[3]int]int{}
	for i, at := range gridOrder(texts, lengths, depths, 3) {
		place := i % lengths
		pairs[[3]int{0, at.length, place}]++
		pairs[[3]int{1, at.length, at.depth}]++
		pairs[[3]int{2, at.depth, place}]++
	}
	if len(pairs) != lengths*lengths+2*lengths*depths {
		t.Errorf("%d pairs occur", len(pairs))
	}
	for pair, n := range pairs {
		if want := []int{texts / lengths, texts / depths, texts / depths}[pair[0]]; n != want {
			t.Errorf("pair %v occurs %d times, want %d", pair, n, want)
		}
	}
}

// TestContextTellsTheServerFromTheModel: a prompt that was cut is no wrong answer, and
// neither is one that was refused.
func TestContextTellsTheServerFromTheModel(t *testing.T) {
	for _, c := range []struct {
		name   string
		m      longReader
		code   string
		figure string
		want   float64
	}{
		{"cuts", longReader{perByte: .3, window: 1500, cuts: true}, "truncated", "read", 1500},
		{"refuses", longReader{perByte: .3, window: 1500}, "out_of_window", "length", 2048},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := runContextOn(t, smallContext(), longReader{perByte: .3}, c.m)
			if got := codesOf(o, "candidate"); !slices.Equal(got, []string{c.code}) || o.Findings[0].Figures[c.figure] != c.want {
				t.Errorf("findings %+v; want %s alone, with %s %v", o.Findings, c.code, c.figure, c.want)
			}
			for _, r := range o.Records {
				x, has := r.Values["context.found"]
				_, exempt := r.Values[record.Exempt("context.found")]
				long := r.Labels["length"] == "2048" || r.Labels["length"] == "4096"
				if r.Variant == "candidate" && r.Labels["kind"] == "retrieval" && (has == long || exempt || has && x != 1) {
					t.Errorf("%s: found %v (there: %v, exempt: %v); want it missing where the prompt was not read", r.Case, x, has, exempt)
				}
			}
			if e := o.Data.(*ContextData).Variants[1].Effective; e == nil || e.Value != 1024 || e.Hi != nil {
				t.Errorf("effective length %+v; want 1,024, and nothing said of longer ones", e)
			}
			for _, f := range o.Figures {
				if strings.HasPrefix(f.Title, "candidate") && (f.Heat.Cells[0][3].Value != nil || f.Heat.Cells[0][3].Text == "" || f.Heat.Cells[0][0].Value == nil) {
					t.Errorf("the heat map shows %+v where the prompt was not read", f.Heat.Cells[0])
				}
			}
		})
	}
	t.Run("does not count", func(t *testing.T) {
		o := runContextOn(t, smallContext(), longReader{})
		if len(o.Notes) == 0 || !strings.Contains(o.Notes[0], "does not count the tokens") {
			t.Errorf("notes %q; want it said that lengths are guessed", o.Notes)
		}
	})
	t.Run("nobody takes it", func(t *testing.T) {
		o := runContextOn(t, &ContextConfig{Limit: 2048, Texts: 5}, longReader{perByte: .3, window: 1500})
		if len(o.Findings) != 1 || o.Findings[0].Severity != check.Info {
			t.Errorf("findings %+v; want it told", o.Findings)
		}
		for _, r := range o.Records {
			if _, exempt := r.Values[record.Exempt("context.found")]; r.Labels["kind"] == "retrieval" && exempt != (r.Labels["length"] == "2048") {
				t.Errorf("%s: exempt %v; want lengths that nobody asked for and nobody takes left out", r.Case, exempt)
			}
		}
	})
}

func TestContextFindsABreakAndASag(t *testing.T) {
	broken := longReader{perByte: .3, blind: func(tokens, _ float64) bool { return tokens > 1500 }}
	o := runContextOn(t, smallContext(), longReader{perByte: .3}, broken)
	if got := codesOf(o, "candidate"); !slices.Equal(got, []string{"breakpoint", "shorter_context"}) || o.Findings[0].Figures["from"] != 2048 || o.Findings[0].Figures["upto"] != 1024 {
		t.Errorf("findings %+v; want a breakpoint between 1,024 and 2,048", o.Findings)
	}
	if got := codesOf(o, "baseline"); len(got) != 0 {
		t.Errorf("of the baseline: %v; want nothing", got)
	}
	for _, e := range o.Estimates {
		if e.Value == "context.effective_length" && e.Variant == "candidate" && e.Change == record.Ratio && (e.Number == nil || *e.Number != .25) {
			t.Errorf("the ratio of effective lengths is %v, want 0.25", e.Number)
		}
	}
	conf := &ContextConfig{Lengths: []int64{512, 2048}, Depths: 7, Texts: 42, Kinds: []string{"retrieval"}}
	sagging := longReader{perByte: .3, blind: func(tokens, depth float64) bool { return tokens > 1000 && depth > .25 && depth < .6 }}
	o = runContextOn(t, conf, sagging)
	i := slices.IndexFunc(o.Findings, func(f check.Finding) bool { return f.Code == "sagging_middle" })
	if i < 0 || o.Findings[i].Figures["length"] != 2048 || math.Abs(o.Findings[i].Figures["from"]-1./3) > .01 || o.Findings[i].Figures["to"] != .5 {
		t.Errorf("findings %+v; want the middle of 2,048 tokens", o.Findings)
	}
}

func TestContextSaysWhenAnswersAreCutOff(t *testing.T) {
	rambling := asker(func(q *check.Question) *check.Answer {
		a, _ := longReader{perByte: .3}.Ask(t.Context(), q)
		a.Text, a.Finish = "Let me look for the access code of this depot, which is", "length"
		return a
	})
	o := runContextOn(t, smallContext(), longReader{perByte: .3}, rambling)
	if got := codesOf(o, "candidate"); !slices.Contains(got, "answers_cut") || len(codesOf(o, "baseline")) != 0 {
		t.Errorf("findings %+v; want the limit of tokens named", o.Findings)
	}
}

func TestContextSearch(t *testing.T) {
	conf := &ContextConfig{Lengths: []int64{512, 724, 1024, 1448, 2048, 2896, 4096, 5792, 8192}, Adaptive: true}
	broken := longReader{perByte: .3, blind: func(tokens, _ float64) bool { return tokens > 2500 }}
	o := runContextOn(t, conf, longReader{perByte: .3}, broken)
	data := o.Data.(*ContextData)
	s := data.Variants[1].Search
	if got := codesOf(o, "candidate"); !slices.Equal(got, []string{"breakpoint"}) || !slices.Contains(s.Set, 2896) || !s.Known {
		t.Errorf("findings %+v, search %+v; want a break at 2,896", o.Findings, s)
	}
	if s.Tokens > s.Grid/2 {
		t.Errorf("the search cost %.0f tokens, a grid %.0f; want less than half", s.Tokens, s.Grid)
	}
	if b := data.Variants[0].Search; b.None < .5 || len(codesOf(o, "baseline")) != 0 {
		t.Errorf("of the baseline: %+v; want no break", b)
	}
	// A server that refuses all lengths but one is not asked for ever.
	o = runContextOn(t, conf, longReader{perByte: .3, window: 700})
	if len(o.Records) > 200 {
		t.Errorf("%d questions to a server that answers none of them", len(o.Records))
	}
}

// TestContextInfluence: a model that needs the words around the needle is told from
// one that needs the needle alone.
func TestContextInfluence(t *testing.T) {
	conf := &ContextConfig{Lengths: []int64{1024}, Texts: 2, Influence: InfluenceConfig{Probes: 12, Windows: 5}}
	profile := func(m check.Asker) *contextInfluence {
		o := runContextOn(t, conf, m)
		for _, r := range o.Records {
			if _, exempt := r.Values[record.Exempt("context.found")]; r.Labels["kind"] == "influence" && !exempt {
				t.Errorf("%s counts among the cases of the grid", r.Case)
			}
		}
		return o.Data.(*ContextData).Variants[0].Influence
	}
	steady := profile(longReader{perByte: .3})
	if steady.Clean != 1 || steady.Entropy != nil || steady.Near.Value != 0 {
		t.Errorf("a model that reads the needle alone: %+v; want no influence, and no entropy", steady)
	}
	fragile := profile(asker(func(q *check.Question) *check.Answer {
		// It finds nothing where the lines before the needle are not usual ones.
		prompt := q.Messages[0].Content
		at := strings.Index(prompt, "The access code of the "+askedRE.FindStringSubmatch(prompt)[1])
		a, _ := longReader{perByte: .3}.Ask(t.Context(), q)
		if at < 0 {
			return a
		}
		if !regexp.MustCompile(`Ledger|noted|said|watched`).MatchString(prompt[at-150 : at]) {
			a.Text = "not stated"
		}
		return a
	}))
	near, far := fragile.Near.Value, fragile.Far.Value
	if near < .5 || near < far+.4 || fragile.Form.Value > .2 || fragile.Entropy == nil || *fragile.Entropy > .7 {
		t.Errorf("a model that needs what is around the needle: near %v, far %v, form %v, entropy %v", near, far, fragile.Form.Value, fragile.Entropy)
	}
	sum := 0.0
	for _, w := range fragile.Windows {
		sum += w.Share
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the profile sums to %v, want 1", sum)
	}
}

// asker is a model by a function.
type asker func(q *check.Question) *check.Answer

func (f asker) Ask(_ context.Context, q *check.Question) (*check.Answer, error) { return f(q), nil }

// TestContextAsksTheSameAgain: the questions depend on the seed alone, and every kind
// and language can be asked.
func TestContextAsksTheSameAgain(t *testing.T) {
	var kinds []string
	for _, k := range haystack.Kinds() {
		kinds = append(kinds, string(k))
	}
	for _, language := range []string{"en", "zh"} {
		var before uint64
		for range 2 {
			var mu sync.Mutex
			sum := uint64(0)
			m := asker(func(q *check.Question) *check.Answer {
				h := fnv.New64a()
				_, _ = h.Write([]byte(q.Messages[0].Content))
				mu.Lock()
				sum += h.Sum64()
				mu.Unlock()
				return &check.Answer{Outcome: record.OK, Text: "4821937", Finish: "stop", Prompt: record.Tokens(int64(len(q.Messages[0].Content) / 3)), Output: record.Tokens(3)}
			})
			o := runContextOn(t, &ContextConfig{Lengths: []int64{600, 1200}, Texts: 4, Kinds: kinds, Language: language}, m)
			if before != 0 && sum != before {
				t.Errorf("%s: the second run asks other questions", language)
			}
			before = sum
			if got := codesOf(o, "baseline"); slices.Contains(got, "truncated") {
				t.Errorf("%s: %+v", language, o.Findings)
			}
		}
	}
}

// TestContextInChinese: needles, questions and lengths in Chinese are found and sized.
func TestContextInChinese(t *testing.T) {
	ask, state := regexp.MustCompile(`\n(.+?)的门禁码是多少`), regexp.MustCompile(`(?m)^(.+?)的门禁码是(\d{7})。`)
	m := asker(func(q *check.Question) *check.Answer {
		prompt := q.Messages[0].Content
		a := &check.Answer{Outcome: record.OK, Text: "未说明。", Finish: "stop", Prompt: record.Tokens(int64(len([]rune(prompt))) * 7 / 10), Output: record.Tokens(4)}
		asked := ask.FindStringSubmatch(prompt)
		for _, s := range state.FindAllStringSubmatch(prompt, -1) {
			if s[1] == asked[1] {
				a.Text = "门禁码是" + s[2] + "。"
			}
		}
		return a
	})
	conf := smallContext()
	conf.Language = "zh"
	o := runContextOn(t, conf, m)
	v := o.Data.(*ContextData).Variants[0]
	if len(codesOf(o, "baseline")) != 0 || v.Effective.Value != 4096 || v.Corrected.Value != 1 {
		t.Errorf("findings %+v, effective length %+v, corrected %+v; want all found", o.Findings, v.Effective, v.Corrected)
	}
	for j, c := range v.Cells {
		if l := float64(conf.Lengths[j] - 64); c.Tokens > l || c.Tokens < .9*l {
			t.Errorf("prompts of %d tokens have %.0f", conf.Lengths[j], c.Tokens)
		}
	}
}

func TestContextConfig(t *testing.T) {
	for want, text := range map[string]string{
		"of which number 2 is too short":    "lengths: [1000, 1000]",
		"number 1 is too short":             "lengths: [500]",
		"has lengths and a limit":           "lengths: [1000]\nlimit: 2000",
		"asks for nothing but what is abse": "kinds: [absent]",
		"among one length":                  "lengths: [1000]\nadaptive: true",
	} {
		if err := config.Decode("suite.yaml", []byte(text), new(ContextConfig)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	proven := func(level int) *check.Subject {
		return &check.Subject{Can: check.Capabilities{check.CapRefusesOverlong: {Standing: check.Proven, Level: level}}}
	}
	for _, c := range []struct {
		limit    int64
		variants []*check.Subject
		want     []int64
	}{
		{0, []*check.Subject{{}}, []int64{512, 1024, 2048, 4096}},
		{0, []*check.Subject{proven(32768), proven(2048)}, []int64{512, 1024, 2048}},
		{0, []*check.Subject{proven(131072)}, []int64{512, 1024, 2048, 4096, 8192}},
		{3000, []*check.Subject{proven(32768)}, []int64{512, 1024, 2048, 3000}},
		{1200, nil, []int64{512, 1200}},
		{0, []*check.Subject{proven(600)}, []int64{600}},
	} {
		if got := defaultLengths(c.limit, 64, c.variants); !slices.Equal(got, c.want) {
			t.Errorf("defaultLengths(%d) = %v, want %v", c.limit, got, c.want)
		}
	}
}

// TestPublishedRuleIsToldBeside: docs/originals.md has how often it is wrong.
func TestPublishedRuleIsToldBeside(t *testing.T) {
	conf := smallContext()
	conf.Rule = "jump"
	broken := longReader{perByte: .3, blind: func(tokens, _ float64) bool { return tokens > 1500 }}
	o := runContextOn(t, conf, longReader{perByte: .3}, broken)
	var rules []check.Finding
	for _, f := range o.Findings {
		if f.Code == "rule_jump" {
			rules = append(rules, f)
		}
	}
	if len(rules) != 1 || rules[0].Variant != "candidate" || rules[0].Severity != check.Info || rules[0].Figures["length"] != 2048 {
		t.Errorf("findings %+v; want the rule to name 2,048 tokens", rules)
	}
	if d := o.Data.(*ContextData); d.Variants[0].Rule.At != 0 || d.Variants[1].Rule.At != 2048 {
		t.Errorf("rules %+v and %+v", d.Variants[0].Rule, d.Variants[1].Rule)
	}
}

// TestCorrectedCoverage: the exact bounds of both shares cover the truth.
func TestCorrectedCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	const h, g, runs = .92, .1, 400
	covered := 0
	for range runs {
		r := &contextRun{p: &check.Pass{}}
		for i := range 60 {
			a := contextAsked{probe: &haystack.Probe{Kind: haystack.Retrieval}, fates: []contextFate{fateAnswered}, found: []bool{rng.Float64() < h}}
			if i%3 == 0 {
				a.probe, a.found[0] = &haystack.Probe{Kind: haystack.Absent}, rng.Float64() < g
			}
			r.asked = append(r.asked, a)
		}
		if e := r.corrected(0, .95); e.Lo <= (h-g)/(1-g) && e.Hi >= (h-g)/(1-g) {
			covered++
		}
	}
	if least := int(.95*runs - 4*math.Sqrt(.05*.95*runs)); covered < least {
		t.Errorf("covered in %d of %d", covered, runs)
	}
	r := &contextRun{p: &check.Pass{}, asked: []contextAsked{{probe: &haystack.Probe{Kind: haystack.Absent}, fates: []contextFate{fateAnswered}, found: []bool{true}}, {probe: &haystack.Probe{}, fates: []contextFate{fateAnswered}, found: []bool{true}}}}
	if e := r.corrected(0, .95); e.Defined() || e.Warnings[0].Code != stat.CodeUndefined {
		t.Errorf("of a model that always names something: %+v; want no number", e)
	}
}

func TestContextOwnText(t *testing.T) {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "Paragraph %d of a text of the user's own, which says nothing of the kind.\n\n", i)
	}
	out, err := check.Run(t.Context(), check.Config{
		Checks: []check.Declared{{Check: Context, Config: &ContextConfig{Lengths: []int64{512, 1024}, Texts: 4, Haystack: "own.txt"}}}, Seed: 1,
		Files: map[check.FileRef][]byte{"own.txt": []byte(b.String())}, Variants: []check.Variant{{Name: "baseline", Asker: longReader{perByte: .3}}},
	})
	if err != nil || out[0].Why != "" || out[0].Signatures[0].Data == "" || !strings.Contains(out[0].Signatures[0].Estimator, "own.txt") {
		t.Fatalf("%v, %+v", err, out)
	}
	out, err = check.Run(t.Context(), check.Config{
		Checks: []check.Declared{{Check: Context, Config: &ContextConfig{Lengths: []int64{512, 90_000}, Texts: 4, Haystack: "own.txt"}}}, Seed: 1,
		Files: map[check.FileRef][]byte{"own.txt": []byte(b.String())}, Variants: []check.Variant{{Name: "baseline", Asker: longReader{perByte: .3}}},
	})
	if err != nil || !strings.Contains(out[0].Why, "length 90000") || !strings.Contains(out[0].Why, "give a longer one") {
		t.Fatalf("%v, %+v; want it said that the text is too short", err, out[0].Why)
	}
}

// TestTextsOfManyFiguresAreNotCut: a tokeniser takes digits and marks one by one and
// other text by the word, so that texts of one length differ by a fifth in tokens; no
// server is said to cut prompts for that.
func TestTextsOfManyFiguresAreNotCut(t *testing.T) {
	byKind := asker(func(q *check.Question) *check.Answer {
		z := sizeOf(q.Messages[0].Content)
		return &check.Answer{
			Outcome: record.OK, Text: "I do not know.", Finish: "stop", Output: record.Tokens(5),
			Prompt: record.Tokens(int64(12 + 1.5*z.digits + z.marks + .14*z.others)),
		}
	})
	for _, language := range []string{"en", "zh"} {
		for seed := range uint64(5) {
			conf := &ContextConfig{Lengths: []int64{1000, 2000}, Depths: 3, Texts: 20, Language: language}
			out, err := check.Run(t.Context(), check.Config{
				Seed: seed, Checks: []check.Declared{{Check: Context, Config: conf}}, Variants: []check.Variant{{Name: "baseline", Asker: byKind}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if codes := codesOf(out[0], "baseline"); slices.Contains(codes, "truncated") {
				t.Errorf("%s, seed %d: %v", language, seed, codes)
			}
		}
	}
}
