package dimension

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/scenario"
)

// DialogueConfig is the configuration of Dialogue. Its zero value works.
type DialogueConfig struct {
	Scenarios check.FileRef `yaml:"scenarios" doc:"file of scenarios; they are generated from the run's seed if left out"`
	Count     int           `yaml:"count" min:"1" max:"1000" doc:"how many scenarios are generated; 12 if left out"`
	Domains   []string      `yaml:"domains" most:"4" doc:"of the generated ones: billing, subscription, support, travel; all if left out"`
	Languages []string      `yaml:"languages" most:"2" doc:"of the generated ones: en, zh; both if left out"`
	Mode      string        `yaml:"mode" oneof:"scripted,live,both" doc:"what stands in the history: the reference replies of the scenario (scripted), the variant's own (live), or one after the other (both); scripted if left out"`
	Probes    *bool         `yaml:"probes" doc:"whether the state is asked for after each turn, on a branch that is not appended to the dialogue; true if left out"`

	MaxTokens   int64    `yaml:"max_tokens" min:"1" max:"100000" doc:"limit of output tokens of a reply, and of a side question where that is not too few for its JSON; 160 if left out"`
	Temperature *float64 `yaml:"temperature" min:"0" max:"2" doc:"0 if left out"`

	Alpha     *float64 `yaml:"alpha" min:"0" max:"1" doc:"weight of similarity in the response consistency score, beside that of retention; 0.3 if left out"`
	Embedding `yaml:",inline"`
}

// CheckConfig reports what does not fit together.
func (c *DialogueConfig) CheckConfig(n *config.Node) {
	if c.given() > 1 {
		n.Fault(fmt.Sprintf("wants one embedder, got %d", c.given()), "give embedder: {url: …, model: …}, weights: FOLDER or hashing: true, or none for hashing")
	}
	for _, list := range []struct {
		key    string
		values []string
		of     []string
	}{{"domains", c.Domains, scenario.Domains()}, {"languages", c.Languages, []string{"en", "zh"}}} {
		for i, v := range list.values {
			if !slices.Contains(list.of, v) || slices.Contains(list.values[:i], v) {
				n.At(list.key).Fault(fmt.Sprintf("has %q, of which there are no scenarios, or twice", v), fmt.Sprintf("name some of %q, each once", list.of))
			}
		}
	}
	if !c.Scenarios.IsZero() && (c.Count > 0 || len(c.Domains)+len(c.Languages) > 0) {
		n.At("scenarios").Fault("names a file, but count, domains and languages are of scenarios that are generated", "remove the file, or those")
	}
}

// replays lists the ways in which the dialogues are led.
func (c *DialogueConfig) replays() []string {
	if c.Mode == "both" {
		return []string{"scripted", "live"}
	}
	return []string{cmp.Or(c.Mode, "scripted")}
}

func (c *DialogueConfig) probing() bool { return c.Probes == nil || *c.Probes }

func (c *DialogueConfig) alpha() float64 {
	if c.Alpha == nil {
		return .3
	}
	return *c.Alpha
}

// scenarios reads the file, or makes them, and returns a digest of what they say.
func (c *DialogueConfig) scenarios(p *check.Pass) ([]*scenario.Scenario, string, error) {
	if c.Scenarios.IsZero() {
		list := scenario.Generate(scenario.Spec{N: cmp.Or(c.Count, 12), Domains: c.Domains, Languages: c.Languages}, p.Seed)
		text, err := scenario.Write(list)
		sum := sha256.Sum256(text)
		return list, hex.EncodeToString(sum[:]), err
	}
	data, err := p.File(c.Scenarios)
	if err != nil {
		return nil, "", err
	}
	list, err := c.readScenarios(string(c.Scenarios), data)
	return list, "", err
}

// CheckFile reports what is wrong with the file of scenarios.
func (c *DialogueConfig) CheckFile(name string, data []byte) error {
	_, err := c.readScenarios(name, data)
	return err
}

func (c *DialogueConfig) readScenarios(name string, data []byte) ([]*scenario.Scenario, error) {
	list, err := scenario.Read(name, data)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if !s.Scripted() && c.Mode != "live" {
			return nil, fmt.Errorf("scenario %s has turns without a reference reply (assistant), which scripted replay puts into the history: add them, or write mode: live", s.ID)
		}
	}
	return list, nil
}

// Dialogue leads dialogues of several turns and reads whether what was said is kept.
var Dialogue = &check.Check{
	Name:   "dialogue",
	Doc:    "dialogues of several turns: whether what was said, implied, changed and cancelled is kept, and what is open is asked for",
	Config: func() any { return new(DialogueConfig) },
	Wants:  []check.Capability{check.CapSchema},
	Values: dialogueValues,
	Run:    runDialogue,
}

// dialogueValues are those of single replies and side questions, and those of the whole.
func dialogueValues(conf any) []check.Value {
	part := func(name, title, doc string, higher bool) check.Value {
		return check.Value{Name: name, Title: title, Doc: doc, Unit: record.Points, Higher: higher, Most: 1}
	}
	values := []check.Value{
		yesNo("expected", "replies as expected", "the reply does all that its turn expects; of turns that expect something", true),
		yesNo("auto_satisfied", "implied values used", "every value that the turn implies, and that follows from what was said, is used and not asked for; of turns with such values", true),
		yesNo("needless_clarification", "needless questions", "the reply asks for an implied value that follows from what was said; of turns with such values", false),
		yesNo("clarified", "open values asked for", "the reply asks for what is ambiguous or missing; of turns that leave something open", true),
		yesNo("false_assumption", "false assumptions", "the reply goes on without asking for what is ambiguous or missing; of turns that leave something open", false),
		yesNo("forbidden", "forbidden questions", "the reply asks for what the turn forbids to ask for; of turns that forbid something", false),
		part("kept", "constraints kept", "share of the constraints that the reply exercises which it satisfies; of replies that exercise one or more", true),
		part("exercised", "constraints exercised", "share of the active constraints that the reply exercises: those of which kept knows", true),
		part("state", "state known", "share of the slots whose value the answer to the side question states right, cancelled ones as such; of side questions whose answer can be read", true),
		yesNo("state_read", "state answers read", "values can be read from the answer to the side question", true),
		part("rcs", "response consistency", "mean over windows of three turns of alpha · capped similarity of residues + (1 − alpha) · retention; of dialogues with such windows", true),
		part("rcs_least", "least response consistency", "that of the worst window of the dialogue", true),
		part("distinct", "distinct words", "share of different ones among the pairs of neighbouring words of three replies, mean over the windows of the dialogue: low where a model repeats itself", true),
	}
	replays := []string{"scripted"}
	if c, ok := conf.(*DialogueConfig); ok {
		replays = c.replays()
	}
	for _, replay := range replays {
		values = append(values, check.Value{Name: "depth_" + replay, Title: "depth, " + replay, Doc: "how many turns back a value may have been said until the share of implied values used falls to 90 %; 0: it is below at once", Whole: true, Higher: true})
	}
	if len(replays) > 1 {
		values = append(values, check.Value{Name: "spread", Title: "errors spread", Doc: "expected, live less scripted, over the same turns: what a variant's own errors cost it later; below 0: they spread", Whole: true, Higher: true, Least: -1, Most: 1})
	}
	return values
}

// Values of a turn's reply, of a side question, and of a dialogue.
var (
	turnValues   = []string{"expected", "auto_satisfied", "needless_clarification", "clarified", "false_assumption", "forbidden", "kept", "exercised"}
	probeValues  = []string{"state", "state_read"}
	windowValues = []string{"rcs", "rcs_least", "distinct"}
)

// dialogue is one scenario, led in one way.
type dialogue struct {
	s      *scenario.Scenario
	replay string
	turns  []*dialogueTurn // as far as it was asked
}

// dialogueTurn is what became of one turn. Readings and marks are by variant; nil:
// there is nothing to read.
type dialogueTurn struct {
	reply, probe *check.Trial
	broken       []bool // by variant: a reply of a live dialogue is missing, this one or an earlier one
	readings     []*scenario.Reading
	marks        [][]scenario.Marked
	how          []string // by variant, how the answer to the side question was read: json, prose, unread; "": there is none
}

func runDialogue(ctx context.Context, p *check.Pass) error {
	conf := p.Config.(*DialogueConfig)
	scenarios, digest, err := conf.scenarios(p)
	if err != nil {
		return err
	}
	e, embedder, err := conf.open(p)
	if err != nil {
		return err
	}
	conf.sign(p, digest, embedder)
	var all []*dialogue
	for _, replay := range conf.replays() {
		for _, s := range scenarios {
			all = append(all, &dialogue{s: s, replay: replay})
		}
	}
	asked := p.Each(ctx, len(all), func(ctx context.Context, i int) error { return conf.lead(ctx, p, all[i]) })
	for _, d := range all {
		d.read(p)
	}
	err = conf.consistency(ctx, p, e, all)
	conf.report(p, all)
	return errors.Join(asked, err)
}

// sign says how the numbers come about.
func (c *DialogueConfig) sign(p *check.Pass, digest, embedder string) {
	modes := fmt.Sprintf("%v replay, scenario rules 1", c.replays())
	for _, v := range dialogueValues(c) {
		name, s := v.Name, check.Signature{Value: v.Name, Data: digest, Estimator: modes, Cluster: "scenario"}
		switch {
		case slices.Contains(probeValues, name):
			s.Estimator += ", side question on a branch"
		case slices.Contains(windowValues, name):
			s.Estimator += fmt.Sprintf(", windows of 3, alpha %g, residues compared by %s on a scale of unrelated replies, capped at the baseline's 95th percentile", c.alpha(), embedder)
		}
		p.Sign(s)
	}
}

// lead asks every variant the turns of one dialogue, one after the other, and after
// each the side question.
func (c *DialogueConfig) lead(ctx context.Context, p *check.Pass, d *dialogue) error {
	histories := make([][]corpus.Message, len(p.Variants))
	broken := make([]bool, len(p.Variants))
	if d.s.System != "" {
		for v := range histories {
			histories[v] = []corpus.Message{{Role: "system", Content: d.s.System}}
		}
	}
	for t := range d.s.Turns {
		turn := &dialogueTurn{readings: make([]*scenario.Reading, len(p.Variants)), marks: make([][]scenario.Marked, len(p.Variants)), how: make([]string, len(p.Variants))}
		trial, err := c.ask(ctx, p, d, t, "reply", histories, d.s.Turns[t].User)
		if err != nil {
			return err
		}
		turn.reply = trial
		d.turns = append(d.turns, turn)
		for v, a := range trial.Answers {
			histories[v] = append(histories[v], corpus.Message{Role: "user", Content: d.s.Turns[t].User})
			text := d.s.Turns[t].Assistant
			if d.replay == "live" && a.Answered() {
				text = said(a)
			} else if d.replay == "live" {
				broken[v] = true // what follows is not what the variant would have said
			}
			histories[v] = append(histories[v], corpus.Message{Role: "assistant", Content: text})
		}
		turn.broken = slices.Clone(broken)
		side, ok := d.s.Probe(t)
		if !ok || !c.probing() {
			continue
		}
		if turn.probe, err = c.ask(ctx, p, d, t, "state", histories, side); err != nil {
			return err
		}
	}
	return nil
}

// ask asks every variant one question after its history.
func (c *DialogueConfig) ask(ctx context.Context, p *check.Pass, d *dialogue, t int, kind string, histories [][]corpus.Message, text string) (*check.Trial, error) {
	q := check.Question{MaxTokens: cmp.Or(c.MaxTokens, 160), Temperature: c.Temperature}
	if q.Temperature == nil {
		q.Temperature = new(float64)
	}
	if kind == "state" { // JSON that is cut cannot be read
		q.MaxTokens = max(q.MaxTokens, int64(64+32*len(d.s.State(t))))
	}
	if kind == "state" && !slices.ContainsFunc(p.Variants, func(s *check.Subject) bool { return !s.Can.Has(check.CapSchema) }) {
		q.Schema = d.s.Schema(t)
	}
	questions := make([]check.Question, len(histories))
	for v, h := range histories {
		questions[v] = q
		questions[v].Messages = append(slices.Clip(slices.Clone(h)), corpus.Message{Role: "user", Content: text})
	}
	return p.AskOne(ctx, check.Shot{
		Case: d.s.ID, Turn: t, Labels: map[string]string{"replay": d.replay, "asks": kind, "domain": d.s.Domain, "language": d.s.Language},
		Question: questions[0], Questions: questions,
	})
}
