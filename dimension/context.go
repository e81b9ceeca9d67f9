package dimension

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/haystack"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// ContextConfig is the configuration of Context.
type ContextConfig struct {
	Lengths     []int64         `yaml:"lengths" doc:"lengths of the context in tokens, prompt and room for the answer together; rising. Doubled from 512 up to the limit if left out"`
	Limit       int64           `yaml:"limit" min:"512" max:"10000000" doc:"the longest length where lengths are left out; if left out, too, 4096, or what the context windows of all variants hold, at most 8192, where the run has looked at them for another check"`
	Depths      int             `yaml:"depths" min:"1" max:"21" doc:"at how many depths needles stand, evenly from the begin of the text to its end; 5 if left out"`
	Texts       int             `yaml:"texts" min:"2" max:"10000" doc:"how many texts of each length and kind, the depths taking turns; 20 if left out"`
	Kinds       []string        `yaml:"kinds" oneof:"retrieval,multi_key,update,count,coreference,contradiction,absent" doc:"what is asked for; retrieval and absent if left out. Of absent there are half as many texts"`
	Language    string          `yaml:"language" oneof:"en,zh" doc:"of the texts and questions; en if left out"`
	Haystack    check.FileRef   `yaml:"haystack" doc:"a text of your own to hide needles in, instead of generated ones; nothing of it is used twice in one prompt"`
	MaxTokens   int64           `yaml:"max_tokens" min:"1" max:"100000" doc:"limit of output tokens; 64 if left out"`
	Threshold   float64         `yaml:"threshold" min:"0.01" max:"1" doc:"the share found that the effective length has to reach; 0.85 if left out"`
	FalseAlarms float64         `yaml:"false_alarms" min:"0.001" max:"0.2" doc:"how often at most any breakpoint, sagging middle or shorter effective length is reported where there is none; 0.02 if left out"`
	Adaptive    bool            `yaml:"adaptive" doc:"look for the breakpoint alone, at the lengths that tell most for their tokens, instead of asking everything"`
	Rule        string          `yaml:"rule" oneof:"jump" doc:"a published rule reported beside the values: jump (the share found is more than 0.15 below that at the shortest length), which is often wrong"`
	Influence   InfluenceConfig `yaml:"influence" doc:"which part of the text the answers depend on; not asked if left out"`
}

// InfluenceConfig says how words of the text are replaced to see what answers
// depend on.
type InfluenceConfig struct {
	Probes   int     `yaml:"probes" min:"2" max:"1000" doc:"how many probes, each asked once as it is and once for each window; 20 if left out"`
	Windows  int     `yaml:"windows" min:"3" max:"101" doc:"windows, evenly over the text; 9 if left out"`
	Length   int64   `yaml:"length" min:"512" max:"10000000" doc:"length of the context in tokens; the longest of the lengths if left out"`
	Depth    float64 `yaml:"depth" min:"0.01" max:"1" doc:"where the needle stands; 0.5 if left out"`
	Reach    int64   `yaml:"reach" min:"1" max:"100000" doc:"tokens to each side of a window's centre; 128 if left out"`
	Decay    int64   `yaml:"decay" min:"1" max:"100000" doc:"tokens over which the noise fades to 37 %; 64 if left out"`
	Strength float64 `yaml:"strength" min:"0.01" max:"1" doc:"chance that a word at the centre is replaced; 0.9 if left out"`
}

// IsZero reports whether influence is not asked for.
func (c InfluenceConfig) IsZero() bool { return c == InfluenceConfig{} }

// shortestContext is the fewest tokens that hold needles, a question and some text.
const shortestContext = 448

// CheckConfig wants lengths that rise.
func (c *ContextConfig) CheckConfig(n *config.Node) {
	for i, l := range c.Lengths {
		if l < shortestContext+c.room() || i > 0 && l <= c.Lengths[i-1] {
			n.Fault(fmt.Sprintf("has the lengths %v, of which number %d is too short, or not longer than the one before", c.Lengths, i+1),
				fmt.Sprintf("give rising lengths of %d tokens or more", shortestContext+c.room()))
			return
		}
	}
	if len(c.Lengths) > 0 && c.Limit > 0 {
		n.Fault("has lengths and a limit", "leave one of them out")
	}
	if len(c.present()) == 0 {
		n.Fault("asks for nothing but what is absent, so that nothing can be found", "add a kind, such as retrieval")
	}
	if c.Adaptive && len(c.Lengths) == 1 {
		n.Fault("looks for a breakpoint among one length", "give more lengths, or leave adaptive out")
	}
}

func (c *ContextConfig) room() int64 { return cmp.Or(c.MaxTokens, 64) }

// kinds are what is asked for, each once.
func (c *ContextConfig) kinds() (out []haystack.Kind) {
	if len(c.Kinds) == 0 {
		return []haystack.Kind{haystack.Retrieval, haystack.Absent}
	}
	for _, k := range haystack.Kinds() {
		if slices.Contains(c.Kinds, string(k)) {
			out = append(out, k)
		}
	}
	return out
}

func (c *ContextConfig) present() []haystack.Kind {
	return slices.DeleteFunc(c.kinds(), func(k haystack.Kind) bool { return k == haystack.Absent })
}

func (c *ContextConfig) asks(k haystack.Kind) bool { return slices.Contains(c.kinds(), k) }

// Context asks for what is hidden in long texts.
var Context = &check.Check{
	Name:   "context",
	Doc:    "what a variant finds in long contexts, by length, depth and kind of question: effective length, breakpoints, a sagging middle",
	Config: func() any { return new(ContextConfig) },
	Values: contextValues,
	Run:    runContext,
}

func contextValues(conf any) []check.Value {
	c, _ := conf.(*ContextConfig)
	if c == nil {
		c = new(ContextConfig)
	}
	values := []check.Value{
		yesNo("found", "found in context", "all that was asked for stands in the answer, and nothing else of its kind; of questions whose answer is in the text", true),
		{Name: "complete", Title: "completeness in context", Doc: "share of what was asked for that the answer has", Unit: record.Proportion, Higher: true, Most: 1},
	}
	values = append(values,
		check.Value{Name: "effective_length", Title: "effective context length", Doc: "the longest length up to which the share found, fitted so that it only falls, reaches the threshold; 0: less than the shortest", Unit: record.TokenUnit, Whole: true, Higher: true},
		check.Value{Name: "area", Title: "completeness over length", Doc: "completeness averaged over the logarithm of the length, then over the texts", Unit: record.Proportion, Whole: true, Higher: true, Most: 1})
	if c.asks(haystack.Absent) {
		values = append(values, check.Value{Name: "corrected", Title: "found, corrected for guessing", Doc: "(h-g)/(1-g), of the share found h and the share invented g", Unit: record.Proportion, Whole: true, Higher: true})
		values = append(values, yesNo("invented", "invented in context", "the answer gives a value although the text has none", false))
	}
	if c.asks(haystack.Coreference) {
		values = append(values, check.Value{Name: "f1", Title: "coreference F1", Doc: "harmonic mean of precision and recall over the words of the name, over its characters in Chinese", Unit: record.Points, Higher: true, Most: 1})
	}
	return values
}

// contextRun is one run of the check.
type contextRun struct {
	p       *check.Pass
	conf    *ContextConfig
	kinds   []haystack.Kind
	lengths []int64 // tokens
	depths  []float64
	text    string         // the user's haystack
	scales  []contextScale // by variant
	asked   []contextAsked
	shares  [][]contextCell // by variant and length
	data    *ContextData
}

// contextAsked is a question with its probe.
type contextAsked struct {
	trial               *check.Trial
	probe               *haystack.Probe
	text, length, depth int         // indices; texts of one index are one of each length and kind
	size                contextSize // of the whole prompt
	fates               []contextFate
	found               []bool // by variant
	complete            []float64
}

// contextFate is what became of one question to one variant.
type contextFate uint8

const (
	fateFailed   contextFate = iota // no answer, and not because of the length
	fateAnswered                    // by the whole text
	fateCut                         // by what the server left of the text
	fateRefused                     // it does not fit into the window
)

func runContext(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*ContextConfig)
	r := &contextRun{p: p, conf: conf, kinds: conf.kinds()}
	if conf.Haystack != "" {
		data, err := p.File(conf.Haystack)
		if err != nil {
			return err
		}
		if !utf8.Valid(data) {
			return fmt.Errorf("%s is no text in UTF-8", conf.Haystack)
		}
		r.text = string(data)
	}
	r.plan()
	r.sign()
	if err := r.calibrate(ctx); err != nil {
		return err
	}
	var err error
	if conf.Adaptive {
		err = r.search(ctx)
	} else {
		err = r.grid(ctx)
	}
	if err == nil && !conf.Influence.IsZero() {
		err = r.influence(ctx)
	}
	if r.data != nil {
		p.Publish(r.data)
	}
	return err
}

func (r *contextRun) sign() {
	how := "generated text, " + cmp.Or(r.conf.Language, "en")
	if r.conf.Haystack != "" {
		how = string(r.conf.Haystack)
	}
	var kinds []string
	for _, k := range r.kinds {
		kinds = append(kinds, string(k))
	}
	how = fmt.Sprintf("needles in %s (%s), %d lengths from %d to %d tokens, %d depths", how, strings.Join(kinds, ", "), len(r.lengths), r.lengths[0], r.lengths[len(r.lengths)-1], len(r.depths))
	for _, v := range contextValues(r.conf) {
		r.p.Sign(check.Signature{Value: v.Name, Estimator: how})
	}
}

// plan fixes lengths and depths.
func (r *contextRun) plan() {
	c := r.conf
	if r.lengths = c.Lengths; len(c.Lengths) == 0 {
		r.lengths = defaultLengths(c.Limit, c.room(), r.p.Variants)
	}
	n := cmp.Or(c.Depths, 5)
	for i := range n {
		d := .5
		if n > 1 {
			d = float64(i) / float64(n-1)
		}
		r.depths = append(r.depths, d)
	}
}

// defaultLengths doubles from 512 to the limit, which is among them.
func defaultLengths(limit, room int64, variants []*check.Subject) (out []int64) {
	if limit == 0 {
		const unseen, dearest = 4096, 8192
		limit = dearest
		for _, v := range variants {
			window := int64(unseen)
			if p := v.Can[check.CapRefusesOverlong]; p.Standing == check.Proven && p.Level > 0 {
				window = int64(p.Level)
			}
			limit = min(limit, window)
		}
	}
	least := max(512, shortestContext+room)
	for l := least; l*5 <= limit*4; l *= 2 {
		out = append(out, l)
	}
	return append(out, max(limit, least))
}

// contextSize is a prompt as its tokens are reckoned: tokenisers take digits and
// punctuation one by one, and letters by the word, so that of two texts of one length
// that with more figures has a quarter more tokens.
type contextSize struct{ digits, marks, others float64 } // characters

func sizeOf(text string) (z contextSize) {
	for _, c := range text {
		switch {
		case unicode.IsDigit(c):
			z.digits++
		case unicode.IsPunct(c) || unicode.IsSymbol(c):
			z.marks++
		default:
			z.others++
		}
	}
	return z
}

func (z contextSize) chars() float64 { return z.digits + z.marks + z.others }

// contextScale is how a variant counts the tokens of a prompt.
type contextScale struct {
	known    bool
	perChar  float64 // tokens, on average
	overhead float64 // tokens of the chat template

	digit, mark, other float64 // tokens of such a character
}

func (s contextScale) tokens(z contextSize) float64 {
	return s.overhead + s.digit*z.digits + s.mark*z.marks + s.other*z.others
}

// usualScale is taken where a server does not count.
func usualScale(language string) contextScale {
	if language == "zh" {
		return contextScale{perChar: .8, overhead: 20, digit: .8, mark: .8, other: .8}
	}
	return contextScale{perChar: .37, overhead: 20, digit: .37, mark: .37, other: .37}
}

// calibrate asks every variant some short texts, to learn how many tokens a character
// has. These questions are no cases.
func (r *contextRun) calibrate(ctx context.Context) error {
	usual := usualScale(r.conf.Language)
	r.scales = make([]contextScale, len(r.p.Variants))
	for v, s := range r.p.Variants {
		var sizes []contextSize
		var tokens []float64
		for i, n := range r.samples(usual) {
			probe, err := haystack.New(haystack.Spec{Kind: haystack.Absent, Language: r.conf.Language, Chars: n, Depth: .5, Seed: r.seed("calibration", i), Needle: r.seed("calibration needle", i), Text: r.text})
			if err != nil {
				return err
			}
			q := r.question(probe, i)
			q.MaxTokens = 1
			a, err := s.Asker.Ask(ctx, &q)
			if err != nil {
				return err
			}
			if used, ok := a.Prompt.N(); ok && a.Answered() {
				sizes, tokens = append(sizes, sizeOf(q.Messages[0].Content)), append(tokens, float64(used))
			}
		}
		r.scales[v] = usual
		if r.p.Rehearsal {
			continue
		}
		if r.scales[v] = fitScale(sizes, tokens, usual); !r.scales[v].known {
			r.p.Note("%s does not count the tokens of prompts in a way that can be used: lengths are guessed from characters, and a server that cuts prompts would not be seen", s.Name)
		}
	}
	return nil
}

// samples are how many characters the texts have that are asked to calibrate: short
// ones that every window holds, ones of about the shortest length, and two that are
// four times as long, if there are such lengths, which a small window may not hold.
func (r *contextRun) samples(usual contextScale) []int {
	at := func(tokens int64) int {
		return max(1000, int(.9*(float64(tokens-r.conf.room())-usual.overhead)/usual.perChar))
	}
	first, last := r.lengths[0], r.lengths[len(r.lengths)-1]
	out := []int{450, 450, 450, 450, 450, 450, at(first), at(first), at(first), at(first)}
	if last >= 2*first {
		out = append(out, at(min(last, 4*first)), at(min(last, 4*first)))
	}
	return out
}

// fitScale fits what was counted by least squares. The longest texts are left out if
// they have fewer tokens than the others lead to expect: they were cut.
func fitScale(sizes []contextSize, tokens []float64, usual contextScale) contextScale {
	const short = 10
	if len(sizes) < short {
		return usual
	}
	s, ok := fitted(sizes[:short], tokens[:short])
	for i := short; ok && i < len(sizes); i++ {
		if tokens[i] < .85*s.tokens(sizes[i]) {
			sizes, tokens = sizes[:short], tokens[:short]
		}
	}
	if ok {
		s, ok = fitted(sizes, tokens)
	}
	if s.known = ok && s.perChar > .02 && s.perChar < 8 && s.overhead < slices.Max(tokens); !s.known {
		return usual
	}
	return s
}

func fitted(sizes []contextSize, tokens []float64) (s contextScale, ok bool) {
	rows := make([][]float64, len(sizes))
	for i, z := range sizes {
		rows[i] = []float64{1, z.digits, z.marks, z.others}
	}
	c, err := stat.Nonnegative(rows, tokens)
	if err != nil {
		return s, false
	}
	s = contextScale{overhead: c[0], digit: c[1], mark: c[2], other: c[3]}
	for _, z := range sizes {
		s.perChar += (s.tokens(z) - s.overhead) / z.chars() / float64(len(sizes))
	}
	return s, true
}

func (r *contextRun) seed(what string, i int) uint64 { return r.p.Rand(what, strconv.Itoa(i)).Uint64() }

func (r *contextRun) question(p *haystack.Probe, replicate int) check.Question {
	return check.Question{
		Messages: []corpus.Message{{Role: "user", Content: p.Prompt()}}, MaxTokens: r.conf.room(), Temperature: new(float64), Replicate: replicate,
	}
}

// chars is how long a text must be for a length. All variants get the same texts,
// sized by the one that needs the most tokens, a little shorter than the length allows.
func (r *contextRun) chars(length int64, frame int) int {
	most := math.Inf(1)
	for _, s := range r.scales {
		most = math.Min(most, (.96*float64(length-r.conf.room())-s.overhead)/s.perChar)
	}
	return max(450, int(most)-frame)
}

// shot makes one question about one text.
func (r *contextRun) shot(kind haystack.Kind, text, length, depth int) (check.Shot, contextAsked, error) {
	at := r.depths[depth]
	spec := haystack.Spec{
		Kind: kind, Language: r.conf.Language, Depth: at, Text: r.text, Chars: 450,
		// Every question has a text of its own, so that they are independent.
		Seed:   r.p.Rand("text", string(kind), strconv.Itoa(text), strconv.Itoa(length)).Uint64(),
		Needle: r.p.Rand("needle", string(kind), strconv.Itoa(text), strconv.Itoa(length)).Uint64(),
	}
	frame, err := haystack.New(haystack.Spec{Kind: kind, Language: spec.Language, Chars: 450, Depth: at, Needle: spec.Needle})
	if err != nil {
		return check.Shot{}, contextAsked{}, err
	}
	spec.Chars = r.chars(r.lengths[length], utf8.RuneCountInString(frame.Prompt())-utf8.RuneCountInString(frame.Text))
	probe, err := haystack.New(spec)
	if err != nil {
		return check.Shot{}, contextAsked{}, fmt.Errorf("length %d: %w", r.lengths[length], err)
	}
	where := fmt.Sprintf("%g", math.Round(100*at)/100)
	if kind == haystack.Count {
		where = "all" // its needles stand all over the text
	}
	shot := check.Shot{
		Case: fmt.Sprintf("%s-%d-t%03d", kind, r.lengths[length], text), Question: r.question(probe, 0),
		Labels: map[string]string{"kind": string(kind), "length": strconv.FormatInt(r.lengths[length], 10), "depth": where},
	}
	asked := contextAsked{probe: probe, text: text, length: length, depth: depth, size: sizeOf(shot.Question.Messages[0].Content)}
	probe.Text = "" // it is in the question, and readers do without
	return shot, asked, nil
}

// gridPlace is one text of the grid, at a length and a depth, by their indices.
type gridPlace struct{ text, length, depth int }

// gridOrder is a Latin square: each text has every length once, the depth goes on by one
// with every length, and the order of the lengths by one with every text. So each
// length has each depth as often, and stands as often early as late in the run: a server
// that changes meanwhile is no slope.
func gridOrder(texts, lengths, depths, offset int) (out []gridPlace) {
	for t := range texts {
		for j := range lengths {
			length := (j + t) % lengths
			out = append(out, gridPlace{t, length, (offset + t + length) % depths})
		}
	}
	return out
}

// grid asks all texts at all lengths.
func (r *contextRun) grid(ctx context.Context) error {
	var (
		shots []check.Shot
		plan  []contextAsked
	)
	for _, at := range gridOrder(cmp.Or(r.conf.Texts, 20), len(r.lengths), len(r.depths), r.p.Rand("offset").IntN(len(r.depths))) {
		for k, kind := range r.kinds {
			if kind == haystack.Absent && at.text%2 == 1 {
				continue
			}
			shot, asked, err := r.shot(kind, at.text, at.length, (at.depth+k)%len(r.depths))
			if err != nil {
				return err
			}
			shots, plan = append(shots, shot), append(plan, asked)
		}
	}
	var err error
	r.asked, err = r.ask(ctx, shots, plan)
	r.conclude(err == nil)
	return err
}

// ask asks, and judges what was answered.
func (r *contextRun) ask(ctx context.Context, shots []check.Shot, plan []contextAsked) ([]contextAsked, error) {
	byCase := make(map[string]contextAsked, len(plan))
	for i := range plan {
		byCase[shots[i].Case] = plan[i]
	}
	trials, err := r.p.Ask(ctx, shots)
	var out []contextAsked
	for _, t := range trials {
		a := byCase[t.Shot.Case]
		a.trial = t
		r.judge(&a)
		out = append(out, a)
	}
	return out, err
}
