package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Spec says which scenarios [Generate] makes. Its zero value but for N works: all
// domains, both languages, 3 to 8 turns.
type Spec struct {
	N         int
	Domains   []string // of Domains; nil: all
	Languages []string // en, zh; nil: both
	Least     int      // turns; 0: 3
	Most      int      // 0: 8
}

// Domains lists the domains that there are words for.
func Domains() []string { return []string{"billing", "subscription", "support", "travel"} }

// Generate makes scenarios of a seed, domains and languages taking turns. It is a pure
// function, and no two scenarios of any seeds that a person will see are alike: each
// has references, dates and amounts of its own, and its turns are worded by chance.
// It panics on a domain or a language that it has no words for.
func Generate(spec Spec, seed uint64) []*Scenario {
	domains, languages := spec.Domains, spec.Languages
	if len(domains) == 0 {
		domains = Domains()
	}
	if len(languages) == 0 {
		languages = []string{"en", "zh"}
	}
	least, most := spec.Least, spec.Most
	if least == 0 {
		least = 3
	}
	if most == 0 {
		most = max(least, 8)
	}
	out := make([]*Scenario, spec.N)
	for i := range out {
		domain, language := domains[i%len(domains)], languages[i/len(domains)%len(languages)]
		w, ok := words[language]
		d, has := w.domains[domain]
		if !ok || !has {
			panic(fmt.Sprintf("scenario: there are no words for %q in %q", domain, language))
		}
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s %s %d", domain, language, i)
		g := &generator{r: rand.New(rand.NewPCG(seed, h.Sum64())), w: w, d: d} //nolint:gosec // it has to be repeatable
		g.s = &Scenario{ID: fmt.Sprintf("%s-%s-%03d", domain, language, i+1), Language: language, Domain: domain, System: d.system}
		g.dialogue(least + g.r.IntN(max(1, most-least+1)))
		if faults := g.s.compile(nil); len(faults) > 0 {
			panic(fmt.Sprintf("scenario: made a faulty one: %v", faults))
		}
		out[i] = g.s
	}
	return out
}

// language is what there is to say in one language.
type language struct {
	domains map[string]domain

	opening, closing                                []string // around what the first turn states
	update, cancel, recall, first, previous, claim  []string // of any slot: {n} its noun, {v} a value
	filler                                          []string
	keep                                            []string // answers a question after a claim: {n}, {v}
	done, told, asked, doubted, dropped, chat, sure []string // replies of the reference transcript
	and, is                                         string   // joins clauses; "{n} is {v}"
}

// domain is what dialogues of one domain are about.
type domain struct {
	system string
	slots  []topic
	copy   []string // asks for something that needs an address nobody has told
	pick   []string // asks for something that one of two references is meant in: {a}, {b}
	picked string   // noun of that reference
}

// topic is a slot that a dialogue may be about.
type topic struct {
	name, kind, noun string
	names            []string // further names
	values           []Choice // of an enum
	prefix           string   // of a reference
	state            []string // states it: {v}
	cancel           bool     // it may be cancelled
	twin, twinNoun   string   // a slot that may get the same value
	same             []string // asks for that
}

// generator makes one scenario.
type generator struct {
	r *rand.Rand
	w language
	d domain
	s *Scenario

	topics  []topic             // that the dialogue speaks of, twins included
	now     map[string]string   // value of each slot; "": cancelled
	history map[string][]string // its values, the first one first
	since   map[string][]int    // turns, from 1, in which they were given
	fresh   []topic             // not yet spoken of
	pending func(t *Turn)       // what the next turn answers
}

func (g *generator) pick(list []string) string { return list[g.r.IntN(len(list))] }

// fill puts words for marks such as {n}.
func fill(template string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(template)
}

// fresh values of each kind.
func (g *generator) value(t topic, not ...string) string {
	for {
		var v string
		switch t.kind {
		case "enum":
			v = t.values[g.r.IntN(len(t.values))][0]
		case "number":
			v = strconv.Itoa(2 + g.r.IntN(28))
		case "money":
			v = fmt.Sprintf("%s %d", map[bool]string{true: "CNY", false: "USD"}[g.s.chinese()], 40+g.r.IntN(4000))
		case "date":
			v = fmt.Sprintf("2027-%02d-%02d", 1+g.r.IntN(12), 1+g.r.IntN(28))
		case "text":
			v = g.reference(t.prefix)
		}
		if !slices.Contains(not, v) {
			return v
		}
	}
}

func (g *generator) reference(prefix string) string {
	if prefix == "@" {
		return g.pick([]string{"lin", "mara", "chen", "noor", "ada", "wei", "tom", "iris"}) + strconv.Itoa(100+g.r.IntN(900)) + "@example." + g.pick([]string{"com", "org", "net"})
	}
	return fmt.Sprintf("%s-%06d", prefix, 100000+g.r.IntN(900000))
}

// spoken writes a value as people do.
func (g *generator) spoken(kind, v string) string {
	if v == "" {
		return ""
	}
	switch kind {
	case "money":
		_, n, _ := strings.Cut(v, " ")
		if g.s.chinese() {
			return n + " 元"
		}
		return "$" + n
	case "date":
		var y, m, d int
		_, _ = fmt.Sscanf(v, "%d-%d-%d", &y, &m, &d)
		month := []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}[m-1]
		switch {
		case g.s.chinese():
			return fmt.Sprintf("%d年%d月%d日", y, m, d)
		case g.r.IntN(2) == 0:
			return fmt.Sprintf("%d %s %d", d, month, y)
		}
		return fmt.Sprintf("%s %d, %d", month, d, y)
	}
	return v
}

func (g *generator) say(templates []string, t topic, v string) string {
	return fill(g.pick(templates), "{n}", t.noun, "{v}", g.spoken(t.kind, v))
}

// dialogue makes the turns.
func (g *generator) dialogue(turns int) {
	g.now, g.history, g.since = make(map[string]string), make(map[string][]string), make(map[string][]int)
	g.fresh = slices.Clone(g.d.slots)
	g.r.Shuffle(len(g.fresh)-1, func(i, j int) { g.fresh[i+1], g.fresh[j+1] = g.fresh[j+1], g.fresh[i+1] }) // the first one always comes
	g.open()
	needs := 0
	for len(g.s.Turns) < turns {
		t := Turn{}
		if g.pending != nil {
			answer := g.pending
			g.pending = nil
			answer(&t)
		} else {
			g.act(&t, needs == 0 && len(g.s.Turns) == turns-1)
		}
		needs += t.Implies.Len()
		g.s.Turns = append(g.s.Turns, t)
	}
}

// open is the first turn: it states two or three slots.
func (g *generator) open() {
	var t Turn
	var said []string
	for range 2 + g.r.IntN(2) {
		topic := g.fresh[0]
		g.fresh = g.fresh[1:]
		v := g.value(topic)
		said = append(said, g.say(topic.state, topic, v))
		g.set(&t, topic, v)
	}
	sep := " "
	if g.s.chinese() {
		sep = ""
	}
	t.User = g.pick(g.w.opening) + sep + strings.Join(said, sep) + g.pick(g.w.closing)
	t.Assistant = g.confirm(&t)
	g.s.Turns = append(g.s.Turns, t)
}

// set gives a slot a value in a turn, and expects to hear it.
func (g *generator) set(t *Turn, topic topic, v string) {
	if _, known := g.s.Slots.Get(topic.name); !known {
		g.s.Slots.Set(topic.name, Slot{Kind: topic.kind, Names: append([]string{topic.noun}, topic.names...), Values: topic.values})
		g.topics = append(g.topics, topic)
	}
	t.Sets.Set(topic.name, Given(v))
	g.hold(topic.name, v)
	g.expect(t).Mentions.Set(topic.name, Given(v))
}

func (g *generator) hold(slot, v string) {
	g.now[slot] = v
	g.history[slot] = append(g.history[slot], v)
	g.since[slot] = append(g.since[slot], len(g.s.Turns)+1)
}

func (g *generator) expect(t *Turn) *Expect {
	if t.Expect == nil {
		t.Expect = new(Expect)
	}
	return t.Expect
}

func (g *generator) topic(name string) topic {
	return g.topics[slices.IndexFunc(g.topics, func(t topic) bool { return t.name == name })]
}

// live lists the topics that have a value.
func (g *generator) live(which func(t topic) bool) (out []topic) {
	for _, t := range g.topics {
		if g.now[t.name] != "" && (which == nil || which(t)) {
			out = append(out, t)
		}
	}
	return out
}

// act makes one turn of those that are possible; implicit: it has to rely on what was
// said.
func (g *generator) act(t *Turn, implicit bool) {
	moves := []func(t *Turn) bool{
		g.recall, g.recall, g.recall, g.back, g.back, g.back, g.twin, g.twin,
		g.update, g.update, g.update, g.cancelOne, g.add, g.ambiguous, g.ambiguous, g.missing, g.claim, g.filler,
	}
	if implicit {
		moves = []func(t *Turn) bool{g.back, g.twin, g.recall}
	}
	for {
		if moves[g.r.IntN(len(moves))](t) {
			return
		}
	}
}

// confirm is the reference reply to a turn that sets slots.
func (g *generator) confirm(t *Turn) string {
	var parts []string
	for name, v := range t.Expect.Mentions.All() {
		topic := g.topic(name)
		parts = append(parts, fill(g.w.is, "{n}", topic.noun, "{v}", g.spoken(topic.kind, string(v))))
	}
	return fill(g.pick(g.w.done), "{all}", strings.Join(parts, g.w.and))
}

func (g *generator) recall(t *Turn) bool {
	live := g.live(nil)
	if len(live) == 0 {
		return false
	}
	topic := live[g.r.IntN(len(live))]
	if g.r.IntN(2) == 0 {
		topic = live[0] // what was said first is the farthest back
	}
	v := g.now[topic.name]
	t.User = g.say(g.w.recall, topic, v)
	g.implied(t, topic, Source{From: topic.name}, v)
	t.Assistant = g.say(g.w.told, topic, v)
	return true
}

// implied expects an implied value to be used, and not asked for.
func (g *generator) implied(t *Turn, topic topic, from Source, v string) {
	t.Implies.Set(topic.name, from)
	t.Forbids = append(t.Forbids, "ask("+topic.name+")")
	g.expect(t).Mentions.Set(topic.name, Given(v))
}

// back returns to an earlier value of a slot.
func (g *generator) back(t *Turn) bool {
	live := g.live(func(t topic) bool {
		h := g.history[t.name]
		return len(h) > 1 && h[len(h)-2] != g.now[t.name]
	})
	if len(live) == 0 {
		return false
	}
	topic := live[g.r.IntN(len(live))]
	h, since := g.history[topic.name], g.since[topic.name]
	at, say := len(h)-2, g.w.previous
	if h[0] != g.now[topic.name] && (len(h) > 2 || g.r.IntN(2) == 0) {
		at, say = 0, g.w.first
	}
	t.User = g.say(say, topic, h[at])
	old := g.now[topic.name]
	g.implied(t, topic, Source{From: topic.name, AsOf: strconv.Itoa(since[at])}, h[at])
	g.hold(topic.name, h[at])
	g.expect(t).Not.Set(topic.name, Given(old))
	t.Assistant = g.confirm(t)
	return true
}

// twin gives another slot the value of one.
func (g *generator) twin(t *Turn) bool {
	live := g.live(func(t topic) bool { return t.twin != "" && g.now[t.twin] == "" && len(g.history[t.twin]) == 0 })
	if len(live) == 0 {
		return false
	}
	one := live[g.r.IntN(len(live))]
	two := topic{name: one.twin, kind: one.kind, noun: one.twinNoun, values: one.values}
	g.s.Slots.Set(two.name, Slot{Kind: two.kind, Names: []string{two.noun}, Values: two.values})
	g.topics = append(g.topics, two)
	v := g.now[one.name]
	t.User = g.say(one.same, one, v)
	g.implied(t, two, Source{From: one.name}, v)
	g.hold(two.name, v)
	t.Assistant = g.confirm(t)
	return true
}

func (g *generator) update(t *Turn) bool {
	live := g.live(nil)
	if len(live) == 0 {
		return false
	}
	topic := live[g.r.IntN(len(live))]
	old := g.now[topic.name]
	if topic.kind == "enum" && len(g.history[topic.name]) >= len(topic.values) {
		return false
	}
	v := g.value(topic, g.history[topic.name]...)
	t.User = g.say(g.w.update, topic, v)
	g.set(t, topic, v)
	g.expect(t).Not.Set(topic.name, Given(old))
	t.Assistant = g.confirm(t)
	return true
}

func (g *generator) cancelOne(t *Turn) bool {
	live := g.live(func(t topic) bool { return t.cancel })
	if len(live) == 0 || len(g.live(nil)) < 2 {
		return false
	}
	topic := live[g.r.IntN(len(live))]
	t.User = g.say(g.w.cancel, topic, "")
	t.Cancels = []string{topic.name}
	g.expect(t).Not.Set(topic.name, Given(g.now[topic.name]))
	g.now[topic.name] = ""
	t.Assistant = g.say(g.w.dropped, topic, "")
	return true
}

func (g *generator) add(t *Turn) bool {
	if len(g.fresh) == 0 {
		return false
	}
	topic := g.fresh[0]
	g.fresh = g.fresh[1:]
	v := g.value(topic)
	t.User = g.say(topic.state, topic, v)
	g.set(t, topic, v)
	t.Assistant = g.confirm(t)
	return true
}

// question makes a turn that leaves a slot open, and the next one answer it.
func (g *generator) question(t *Turn, topic topic, source Source, v string) {
	g.s.Slots.Set(topic.name, Slot{Kind: topic.kind, Names: append([]string{topic.noun}, topic.names...)})
	g.topics = append(g.topics, topic)
	g.history[topic.name] = []string{} // spoken of
	t.Implies.Set(topic.name, source)
	g.expect(t).Clarifies = topic.name
	g.pending = func(t *Turn) {
		t.User = g.say(g.w.sure, topic, v)
		g.set(t, topic, v)
		t.Assistant = g.confirm(t)
	}
}

func (g *generator) ambiguous(t *Turn) bool {
	of := g.d.slots[slices.IndexFunc(g.d.slots, func(t topic) bool { return t.prefix != "" && t.prefix != "@" })]
	topic := topic{name: "other_" + of.name, kind: "text", noun: g.d.picked, prefix: of.prefix}
	if g.history[topic.name] != nil {
		return false
	}
	a := g.value(topic)
	b := g.value(topic, a)
	t.User = fill(g.pick(g.d.pick), "{a}", a, "{b}", b)
	t.Assistant = fill(g.pick(g.w.doubted), "{n}", topic.noun, "{a}", a, "{b}", b)
	g.question(t, topic, Source{Ambiguous: []string{a, b}}, []string{a, b}[g.r.IntN(2)])
	return true
}

func (g *generator) missing(t *Turn) bool {
	topic := topic{name: "copy_to", kind: "text", noun: map[bool]string{true: "邮箱地址", false: "email address"}[g.s.chinese()], names: []string{"address", "e-mail", "email", "邮箱", "地址"}, prefix: "@"}
	if g.history[topic.name] != nil {
		return false
	}
	t.User = g.pick(g.d.copy)
	t.Assistant = g.say(g.w.asked, topic, "")
	g.question(t, topic, Source{Missing: true}, g.value(topic))
	return true
}

// claim contradicts the state.
func (g *generator) claim(t *Turn) bool {
	live := g.live(func(t topic) bool { return t.kind == "enum" })
	if len(live) == 0 {
		return false
	}
	topic := live[g.r.IntN(len(live))]
	v := g.now[topic.name]
	wrong := g.value(topic, v)
	t.User = g.say(g.w.claim, topic, wrong)
	t.Implies.Set(topic.name, Source{Contradicts: wrong})
	t.Assistant = fill(g.pick(g.w.doubted), "{n}", topic.noun, "{a}", v, "{b}", wrong)
	g.pending = func(t *Turn) {
		t.User = g.say(g.w.keep, topic, v)
		t.Sets.Set(topic.name, Given(v))
		g.expect(t).Mentions.Set(topic.name, Given(v))
		t.Assistant = g.confirm(t)
	}
	return true
}

func (g *generator) filler(t *Turn) bool {
	t.User, t.Assistant = g.pick(g.w.filler), g.pick(g.w.chat)
	return true
}
