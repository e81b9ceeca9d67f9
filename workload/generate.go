package workload

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// generator makes the shots of one phase, but for their times. It is immutable.
type generator struct {
	name  string
	spec  *Spec
	set   *corpus.Set // nil: synthetic prompts
	phase record.Phase
	salt  string // "": none

	tenant string   // of all shots; "": none
	mix    *mixture // nil: no parts

	input, output func(u float64) config.Count // nil: not drawn
	couple        func(u, v float64) float64   // nil: lengths are independent

	share  float64                         // of a synthetic prompt that is its group's text
	jitter func(u float64) config.Duration // nil: none
	labels map[string]string               // of the workload

	// A stream for each thing that is drawn, so that a change of one moves no
	// other: with longer outputs, a plan has the same prompts at the same times.
	inputs, outputs, texts, groups, prefixes, seeds, think, blocks, ways, edges Stream

	sessions *sessions // nil: each shot stands alone
	cuts     *cuts     // nil: nobody hangs up

	first    int64 // row of a trace that is asked first
	order    permutation
	shuffled bool
	caseName string // of synthetic prompts, before their number
}

func newGenerator(name string, spec *Spec, set *corpus.Set, seed uint64, phase record.Phase, salt string) *generator {
	stream := func(what string) Stream { return NewStream(seed, name, phase.String(), what) }
	g := &generator{
		name: name, spec: spec, set: set, phase: phase, salt: salt,
		inputs: stream("input"), outputs: stream("output"), texts: stream("text"), groups: stream("group"),
		prefixes: stream("prefix"), seeds: stream("sampling"), think: stream("think"), blocks: stream("block"), ways: stream("jitter"), edges: stream("edge"),
		labels: spec.Labels, share: float64(spec.Prefix.Share),
		shuffled: spec.Prompts.Order != "sequential" || phase == record.WarmUp,
		caseName: "synthetic-",
	}
	if phase == record.WarmUp {
		g.caseName = "warm-up-"
	}
	switch {
	case len(spec.Mix) > 0:
		g.mix = newMixture(name, spec, seed, phase, salt)
		g.sessions = newSessions(spec, nil, stream)
		return g
	case set != nil && set.Trace != nil:
		g.order = newPermutation(len(set.Trace.Rows), stream("order"))
		if spec.Arrivals.Replay != nil && phase == record.Measured {
			g.shuffled = false // row i is shot i
		}
	case set != nil && set.Traffic != nil:
		g.shuffled = false
	case set != nil:
		g.order = newPermutation(len(set.Cases), stream("order"))
	default:
		g.input = spec.Prompts.Synthetic.sampler()
	}
	if spec.Priority != 0 {
		g.labels = merged(spec.Labels, map[string]string{priorityLabel: strconv.FormatInt(spec.Priority, 10)})
	}
	g.sessions = newSessions(spec, set, stream)
	if phase == record.Measured {
		if spec.Jitter.Set() {
			g.jitter = spec.Jitter.sampler()
		}
		g.cuts = newCuts(spec.Cancel, stream)
	}
	if spec.Correlation != 0 {
		g.couple = copula(spec.Correlation)
	}
	if spec.Output.Set() {
		g.output = spec.Output.sampler()
	}
	return g
}

// writer makes shots one after the other; it keeps what they need for a while.
type writer struct {
	*generator
	source Source
	rng    *rand.Rand // reads source
	buf    []byte
	parts  []*writer // of a mix
}

func (g *generator) writer() *writer {
	w := &writer{generator: g}
	w.rng = rand.New(&w.source)
	if g.mix != nil {
		for _, part := range g.mix.parts {
			w.parts = append(w.parts, part.writer())
		}
	}
	return w
}

// at sets the writer's random numbers to the start of a sequence.
func (w *writer) at(s Stream, i int64) *rand.Rand {
	w.source = s.At(i)
	return w.rng
}

// place is where a shot stands in the plan: its random numbers are drawn by it.
type place struct {
	key   int64 // of what is drawn for the request
	owner int64 // of what is drawn once for a session; the key of a shot that stands alone
	turn  int
	turns int // of the session; 0: the shot stands alone
}

// alone is the place of shot i of a plan without sessions.
func alone(i int64) place { return place{key: i, owner: i} }

// shot makes the shot at a place. Without text it leaves out what is asked. The
// index is that of a shot that stands alone.
func (w *writer) shot(at place, text bool) Shot {
	if w.mix != nil {
		return w.parts[w.mix.part(at.owner)].shot(at, text)
	}
	s := Shot{
		Index:       at.key,
		Workload:    w.name,
		Phase:       w.phase,
		Turn:        at.turn,
		Turns:       at.turns,
		History:     at.turn > 0 && w.sessions.history,
		Tenant:      w.tenant,
		IgnoreEOS:   w.spec.IgnoreEOS,
		Stream:      isTrue(w.spec.Stream),
		Temperature: w.spec.Temperature,
		Seed:        int64(w.seeds.Uint64(at.key) >> 33),
		Priority:    w.spec.Priority,
		Labels:      w.labels,
	}
	switch {
	case w.set != nil && w.set.Trace != nil:
		w.traced(&s, text)
	case w.set != nil && w.set.Traffic != nil:
		s.Case = requestName(at.key)
	case w.set != nil:
		w.fromSet(&s, at, text)
	default:
		s.Case = w.caseName + at.name()
		if text {
			w.begin(&s, at)
			w.synthetic(&s, at)
			s.Messages = []corpus.Message{{Role: "user", Content: string(w.buf)}}
		}
	}
	if w.output != nil {
		u := w.outputs.uniform(at.key)
		if w.couple != nil {
			u = w.couple(w.inputs.uniform(at.key), u)
		}
		s.MaxTokens = int64(w.output(u))
	}
	if w.jitter != nil {
		s.Jitter = time.Duration(w.jitter(w.ways.uniform(at.key)))
	}
	if w.cuts != nil {
		s.Cancel = w.cuts.at(at.key)
	}
	return s
}

// name names a synthetic prompt.
func (at place) name() string {
	name := strconv.FormatInt(at.owner, 10)
	if at.turns > 0 {
		name += "." + strconv.Itoa(at.turn)
	}
	return name
}

// synthetic appends a synthetic prompt: the share of it that is its group's, then
// its own. A shorter share of a group's text is the start of a longer one. What
// goes on with a dialogue shares its beginning with nobody else.
func (w *writer) synthetic(s *Shot, at place) {
	tokens, shared, group := w.length(at)
	if s.History {
		shared = 0
	}
	if shared > 0 {
		w.buf = corpus.AppendWords(w.buf, w.at(w.prefixes, group), shared)
		w.buf = append(w.buf, ' ')
	}
	w.buf = corpus.AppendWords(w.buf, w.at(w.texts, at.key), tokens-shared)
}

// length returns the tokens of a synthetic prompt, how many of them it shares
// with the others of its group, and the group.
func (g *generator) length(at place) (tokens, shared, group int64) {
	tokens = int64(g.input(g.inputs.uniform(at.key)))
	return tokens, g.shares(tokens, at.key), g.group(at.owner)
}

// group returns the group of shot or session i: one of all, or one of the newest if groups
// are replaced.
func (g *generator) group(i int64) int64 {
	group := int64(g.groups.below(i, uint64(max(1, g.spec.Prefix.Groups))))
	if reuse := int64(g.spec.Prefix.Reuse); reuse > 0 {
		return i/reuse - group
	}
	return group
}

// begin starts the buffer with what comes before the prompt itself: the salt of
// the run, then the prefix of the shot's group.
//
// The salt is the same in all prompts of a run, so that prompts which share a
// prefix still share it within the run; it comes first, so that none of them
// shares anything with another run. What goes on with a dialogue begins as that
// did, and needs none of it.
func (w *writer) begin(s *Shot, at place) {
	w.buf = w.buf[:0]
	if s.History {
		return
	}
	if w.salt != "" {
		w.buf = append(w.buf, '[')
		w.buf = append(w.buf, w.salt...)
		w.buf = append(w.buf, "] "...)
	}
	if tokens := int64(w.spec.Prefix.Tokens); tokens > 0 {
		w.buf = corpus.AppendWords(w.buf, w.at(w.prefixes, w.group(at.owner)), tokens)
		w.buf = append(w.buf, ' ')
	}
}

// position returns the round through a set or trace of n in which shot i is, and
// the case or row that it asks.
func (g *generator) position(i, n int64) (round, at int64) {
	round, at = i/n, i%n
	if g.shuffled {
		at = int64(g.order.at(round, uint64(at)))
	}
	return round, at
}

// mark tells the prompts of later rounds from those of the first.
func (w *writer) mark(round int64) {
	if round > 0 && w.salt != "" {
		w.buf = append(w.buf, "[round "...)
		w.buf = strconv.AppendInt(w.buf, round+1, 10)
		w.buf = append(w.buf, "] "...)
	}
}

// fromSet takes the shot's case from the set. Each round through the set asks
// every case once. Later rounds mark their prompts, unless salts are off: a case
// that is asked again would find its own prompt in the server's prefix cache,
// as new users' prompts do not.
func (w *writer) fromSet(s *Shot, at place, text bool) {
	round, row := w.position(at.owner, int64(len(w.set.Cases)))
	c := &w.set.Cases[row]
	s.Case, s.MaxTokens = c.ID, c.MaxTokens
	s.Labels = merged(c.Labels, w.labels)
	if !text {
		return
	}
	messages := c.Messages
	if at.turns > 0 && messages != nil {
		messages = asks(messages, at.turn, s.History || at.turn == 0)
	}
	w.begin(s, at)
	if !s.History {
		w.mark(round)
	}
	switch {
	case len(w.buf) == 0:
		s.Messages, s.Prompt = messages, c.Prompt
	case messages == nil:
		s.Prompt = string(append(w.buf, c.Prompt...))
	default:
		s.Messages = slices.Clone(messages)
		s.Messages[0].Content = string(append(w.buf, messages[0].Content...))
	}
}

// merged returns the labels of a case under those of the workload, which win.
func merged(ofCase, ofWorkload map[string]string) map[string]string {
	switch {
	case len(ofCase) == 0:
		return ofWorkload
	case len(ofWorkload) == 0:
		return ofCase
	}
	m := maps.Clone(ofCase)
	maps.Copy(m, ofWorkload)
	return m
}

func userName(u int64) string { return "user-" + strconv.FormatInt(u, 10) }
