package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-llm/assay/config"
)

// Live is what whoever serves live traffic does with a clause: when a violated
// demand acts, what it does, and when it is taken back. A zero Live watches
// nothing. It is not read when a run is judged.
type Live struct {
	For      config.Duration `yaml:"for" max:"24h" doc:"how long the demand must be violated before anything is done; at once if left out"`
	Do       []Action        `yaml:"do,required" doc:"what is done, such as hold, page or shrink 50%"`
	Recover  Recovery        `yaml:"recover" doc:"when it is taken back"`
	NoData   string          `yaml:"no_data" oneof:"hold,act,quiet" doc:"too little evidence: hold everything as it is, act as if violated, or end what is only pending; hold if left out"`
	Judge    string          `yaml:"judge" oneof:"evidence,bound,point" doc:"evidence: what a test over all sessions of the step shows, valid however often one looks, for comparisons with the baseline; bound: what the bound of the window shows at the clause's confidence, at each look; point: an estimate beyond the limit, whose false alarms nobody bounds; evidence where it can, else bound, if left out"`
	Cooldown config.Duration `yaml:"cooldown" max:"24h" doc:"how long after recovery it does not act again"`
	Latch    Latch           `yaml:"latch" doc:"such as 3 in 1h: so many times acted within that time, and it stays until a person releases it"`
}

// IsZero reports whether nothing is watched.
func (l Live) IsZero() bool { return len(l.Do) == 0 }

// Recovery says when an action is taken back. The zero Recovery takes it back as
// soon as the clause is shown to hold, against a yardstick with half the margin.
type Recovery struct {
	When *Clause         `yaml:"when" doc:"stricter demand to be met, such as need: p99(ttft) <= 640ms; the clause itself, with half its margin to a yardstick, if left out"`
	For  config.Duration `yaml:"for" max:"24h" doc:"how long it must be met without a break"`
	By   string          `yaml:"by" oneof:"itself,hand" doc:"hand: only a person takes it back; itself if left out"`
}

// IsZero reports whether nothing is said.
func (r Recovery) IsZero() bool { return r == Recovery{} }

// Latch bounds how often a rule may act before it stays. The zero Latch bounds
// nothing.
type Latch struct {
	Times  int
	Within time.Duration
}

// String writes the latch as contracts do.
func (l Latch) String() string {
	if l.Times == 0 {
		return ""
	}
	return fmt.Sprintf("%d in %s", l.Times, config.Duration(l.Within))
}

// IsZero reports whether there is none.
func (l Latch) IsZero() bool { return l == Latch{} }

// MarshalText writes the latch as contracts do.
func (l Latch) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// DecodeConfig reads "3 in 1h".
func (l *Latch) DecodeConfig(n *config.Node) {
	text, ok := n.Text()
	if !ok {
		return
	}
	times, within, found := strings.Cut(text, " in ")
	k, err := strconv.Atoi(strings.TrimSpace(times))
	d, bad := config.ParseDuration(strings.TrimSpace(within))
	if !found || err != nil || bad != nil || k < 1 || k > mostFlaps || d <= 0 || time.Duration(d) > maxWindow {
		n.Fault(fmt.Sprintf("%q is no number of times in a stretch of time", text), "write such as latch: 3 in 1h")
		return
	}
	l.Times, l.Within = k, time.Duration(d)
}

// mostFlaps bounds what a state remembers of one rule.
const mostFlaps = 100

// ConfigSchema describes a latch.
func (Latch) ConfigSchema() map[string]any {
	return map[string]any{"type": "string", "pattern": `^\s*[0-9]+ in \S+\s*$`, "examples": []any{"3 in 1h"}}
}

// Action is one thing to do: a name of the vocabulary and, for some, an amount:
// "hold", "shrink 50%". Whoever serves the traffic carries it out.
type Action string

// actions are the names, from the mildest to the gravest, and which of them take
// an amount.
var actions = []struct {
	name   string
	amount bool
	doc    string
}{
	{"alert", false, "tell those who watch"},
	{"page", false, "wake somebody"},
	{"ticket", false, "open work for later"},
	{"hold", false, "change no weight until it is taken back"},
	{"approve", false, "let a person approve the next step"},
	{"freeze-rebalancing", false, "keep sessions where their cache is"},
	{"warm-cache", false, "fill the prefix cache before more traffic comes"},
	{"isolate-tenant", false, "give the tenant a pool and a cache slice of its own"},
	{"throttle-tenant", false, "slow the noisy neighbour"},
	{"limit-admission", true, "admit so much less"},
	{"limit-concurrency", true, "run so much less at a time"},
	{"cap-weight", true, "give the candidate at most that share"},
	{"shrink", true, "take so much of the candidate's weight"},
	{"step-back", false, "return to the step before"},
	{"serve-cached", false, "answer from the cache where the engine fails"},
	{"reset-stream", false, "reset the GPU's streams to the default one"},
	{"free-memory", false, "free what an idle context holds"},
	{"recycle", false, "drain the replica and start it anew"},
	{"block-release", false, "let the release not go on"},
	{"trunk", false, "send all traffic to the version before the candidate"},
	{"roll-back", false, "end the release, and return to the version before"},
	{"offload-prefill", false, "run prefill on the CPU"},
	{"stop-admission", false, "admit nothing new"},
}

// name splits an action into its name and amount.
func (a Action) name() (name, amount string) {
	name, amount, _ = strings.Cut(string(a), " ")
	return name, amount
}

// DecodeConfig reads an action of the vocabulary.
func (a *Action) DecodeConfig(n *config.Node) {
	text, ok := n.Text()
	if !ok {
		return
	}
	*a = Action(strings.Join(strings.Fields(text), " "))
	name, amount := a.name()
	var names []string
	for _, known := range actions {
		names = append(names, known.name)
		if known.name != name {
			continue
		}
		share, err := config.ParsePercent(amount)
		switch {
		case !known.amount && amount != "":
			n.Fault(fmt.Sprintf("%s takes no amount", name), "write "+name)
		case known.amount && (err != nil || share <= 0 || share > 1):
			n.Fault(fmt.Sprintf("%s needs a share above 0%% and up to 100%%", name), "write such as "+name+" 20%")
		}
		return
	}
	hint := "actions are " + strings.Join(names, ", ")
	if near, ok := nearest(name, names); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	n.Fault(fmt.Sprintf("there is no action %q", name), hint)
}

// ConfigSchema lists the actions.
func (Action) ConfigSchema() map[string]any {
	var names []string
	for _, a := range actions {
		if a.amount {
			names = append(names, a.name+` [0-9.]+%`)
		} else {
			names = append(names, a.name)
		}
	}
	return map[string]any{"type": "string", "pattern": "^(" + strings.Join(names, "|") + ")$"}
}

// rank orders actions by gravity; of several in force, the gravest decides.
func (a Action) rank() int {
	name, _ := a.name()
	return slices.IndexFunc(actions, func(known struct {
		name   string
		amount bool
		doc    string
	},
	) bool {
		return known.name == name
	})
}

// leave is the demand that ends an action: what recover says, or the clause with
// half of each margin to a yardstick.
func (c *Clause) leave() Clause {
	if when := c.Live.Recover.When; when != nil {
		out := *when
		if out.ID == "" {
			out.ID = c.ID + ".recover"
		}
		return out
	}
	return halved(*c)
}

// halved halves each margin to a yardstick, and the reach of each fence.
func halved(c Clause) Clause {
	if l := &c.Need.Limit; l.relative() {
		l.Factor, l.Value, l.Reach = 1+(l.Factor-1)/2, l.Value/2, l.Reach/2
		l.text = l.yardstick()
		switch {
		case l.Factor != 1:
			l.text += " * " + trim(l.Factor, 6)
		case l.Value != 0:
			l.text += " and half the margin"
		}
	}
	all := func(in []Clause) []Clause {
		out := slices.Clone(in)
		for i := range out {
			out[i] = halved(out[i])
		}
		return out
	}
	c.All, c.Any = all(c.All), all(c.Any)
	if c.Not != nil {
		m := halved(*c.Not)
		c.Not = &m
	}
	if c.Count != nil {
		c.Count = &Quorum{AtLeast: c.Count.AtLeast, Of: all(c.Count.Of)}
	}
	return c
}
