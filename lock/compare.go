package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Class says how far two runs can be compared.
type Class uint8

// The classes. Behind the zero Class, which reads as not comparable, they go from the
// best to the worst.
const (
	unset Class = iota

	Identical    // nothing differs
	Equivalent   // what differs is benign by the policy
	Correctable  // comparable with correction: what differs moves the numbers, and can be allowed for
	Incomparable // not comparable
)

var classes = [...]string{"not comparable", "identical", "equivalent", "comparable with correction", "not comparable"}

// String returns the class as reports spell it.
func (c Class) String() string {
	if int(c) >= len(classes) {
		return classes[unset]
	}
	return classes[c]
}

// MarshalText writes the words.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads them; words that it does not know are not comparable.
func (c *Class) UnmarshalText(b []byte) error {
	*c = Incomparable
	if i := slices.Index(classes[1:], string(b)); i >= 0 {
		*c = Class(i + 1)
	}
	return nil
}

// rule is a line of the policy.
type rule struct {
	part, name string // a name ending in * is a beginning; "*" is all
	class      Class
	why        string
}

// policy is what a difference means. The first rule that fits decides; what no rule
// names is not comparable.
var policy = []rule{
	{"volatile", "*", Equivalent, "it may differ between equal environments"},
	{"program", "go", Equivalent, "the same program, built by another Go"},
	{"program", "*", Correctable, "another build may measure otherwise: repeat the older run with this one, or read its changelog"},
	{"client", "*", Correctable, "the client's own share of latencies differs: compare only what the certificates of both runs hold sound, and expect wider intervals"},
	{"test", "contract", Correctable, "the numbers are the same, the verdicts are by different contracts"},
	{"test", "registry", Correctable, "the numbers are the same, they are held against other baselines"},
	{"test", "workload *", Incomparable, "other requests were sent"},
	{"test", "check *", Incomparable, "other questions were asked, or judged otherwise"},
	{"test", "*", Incomparable, "the runs were not made in one way"},
	{"seeds", "run", Correctable, "other draws of the same workload: the intervals hold, pairs do not"},
	{"seeds", "plan *", Correctable, "other draws of the same workload: the intervals hold, pairs do not"},
	{"data", "*", Incomparable, "other prompts, references or labels"},
	{"variants", "gpu.power_limit", Correctable, "speed follows the power limit: correct for it by the clocks that were reached"},
	{"variants", "gpu.clock_limit", Correctable, "speed follows the clock: prefill in proportion, decode by the memory's"},
	{"variants", "gpu.driver", Correctable, "another driver may be faster or slower, and answers alike"},
	{"variants", "engine.flag.num_gpu_blocks", Correctable, "another size of the KV cache moves the capacity, not the latency below it"},
	{"variants", "gpu.*", Incomparable, "other hardware"},
	{"variants", "hardware*", Incomparable, "other hardware"},
	{"variants", "engine.version", Incomparable, "another version of the engine"},
	{"variants", "engine.flag*", Incomparable, "the engine is configured otherwise"},
	{"variants", "engine*", Incomparable, "another engine"},
	{"variants", "image", Incomparable, "another container image"},
	{"variants", "weights*", Incomparable, "another model"},
	{"variants", "model", Incomparable, "another model"},
	{"variants", "tokenizer*", Incomparable, "prompts have other tokens"},
	{"variants", "template*", Incomparable, "the model reads other prompts"},
}

// policy returns what a difference at a place means.
func (p place) policy() (Class, string) {
	for _, r := range policy {
		beginning, open := strings.CutSuffix(r.name, "*")
		if r.part == p.part && (p.name == r.name || open && strings.HasPrefix(p.name, beginning)) {
			return r.class, r.why
		}
	}
	return Incomparable, "the variants were asked in different ways"
}

// Field is one fact of two locks.
type Field struct {
	Path      string `json:"field"`
	Class     Class  `json:"class"` // what a difference there means
	Why       string `json:"why"`
	A         Fact   `json:"a"` // expected, where one side is a lock that holds
	B         Fact   `json:"b"`
	UnderTest bool   `json:"under_test,omitempty"` // it is what the two sides are compared for
}

// Comparison is two locks side by side.
type Comparison struct {
	Class   Class   `json:"class"`
	Reason  string  `json:"reason"`  // one sentence
	Differ  []Field `json:"differ"`  // the worst first
	Unknown []Field `json:"unknown"` // facts that matter and are not known on a side: nothing shows that they are equal
}

// Compare sets two locks side by side. underTest names facts of variants that are
// meant to differ, since their effect is what the two sides are compared for: "weights",
// or "engine" with all that begins with "engine.". They are listed and do not count.
// With facts unknown that matter, the class is equivalent at best.
func Compare(a, b *Lock, underTest ...string) Comparison {
	c := Comparison{Class: Identical, Differ: []Field{}, Unknown: []Field{}}
	fa, fb := a.facts(), b.facts()
	all := maps.Clone(fa)
	maps.Copy(all, fb)
	for _, at := range slices.SortedFunc(maps.Keys(all), place.compare) {
		x, inA := fa[at]
		y, inB := fb[at]
		f := Field{Path: at.String(), A: at.in(fa, x, inA), B: at.in(fb, y, inB)}
		f.Class, f.Why = at.policy()
		f.UnderTest = slices.ContainsFunc(underTest, func(name string) bool {
			return at.part == "variants" && (at.name == name || strings.HasPrefix(at.name, name+"."))
		})
		switch {
		case f.A.known() && f.B.known() && f.A.Value == f.B.Value:
		case f.A.known() && f.B.known():
			c.Differ = append(c.Differ, f)
			if !f.UnderTest {
				c.Class = max(c.Class, f.Class)
			}
		case f.Class > Equivalent && !f.UnderTest:
			c.Unknown = append(c.Unknown, f)
			c.Class = max(c.Class, Equivalent)
		}
	}
	slices.SortStableFunc(c.Differ, func(x, y Field) int {
		if x.UnderTest != y.UnderTest {
			if x.UnderTest {
				return 1
			}
			return -1
		}
		return int(y.Class) - int(x.Class)
	})
	c.Reason = c.reason()
	return c
}

// in is a fact of one side as it is compared. A fact that the side does not have is known
// not to be there, as a flag that the engine does not list, unless nothing of its kind was
// told: then it is as unknown as all of them.
func (p place) in(side map[place]Fact, f Fact, there bool) Fact {
	if there {
		return f
	}
	if strings.HasPrefix(p.name, "engine.flag.") {
		if all, ok := side[place{p.part, p.variant, "engine.flags"}]; ok && !all.known() {
			return all
		}
	}
	if p.name == "engine.flags" {
		return Fact{Value: "told"}
	}
	return Fact{Value: "none"}
}

func (c *Comparison) reason() string {
	var text string
	switch worst := slices.IndexFunc(c.Differ, func(f Field) bool { return !f.UnderTest }); {
	case worst < 0 && len(c.Differ) > 0:
		text = "only what is under test differs"
	case worst < 0:
		text = "nothing differs"
	default:
		f := c.Differ[worst]
		text = fmt.Sprintf("%s differs: %s", f.Path, f.Why)
	}
	if n := len(c.Unknown); n > 0 {
		text += fmt.Sprintf("; %s not known, so that nothing shows them equal", facts(n))
	}
	return text
}

func facts(n int) string {
	if n == 1 {
		return "1 fact that matters is"
	}
	return fmt.Sprintf("%d facts that matter are", n)
}

// Proven reports whether every fact that matters is known on both sides.
func (c *Comparison) Proven() bool { return len(c.Unknown) == 0 }

// Enforcement is what came of holding something to a lock.
type Enforcement struct {
	Refused []Field // it is not what the lock says, or does not tell any more: A is expected, B found
	Noted   []Field // benign differences
	Unheld  []Field // the lock does not know them, so that nothing holds them
}

// Enforce holds what is there now to a lock.
func Enforce(l, now *Lock) Enforcement {
	var e Enforcement
	c := Compare(l, now)
	for _, f := range c.Differ {
		if f.Class <= Equivalent {
			e.Noted = append(e.Noted, f)
			continue
		}
		e.Refused = append(e.Refused, f)
	}
	for _, f := range c.Unknown {
		if f.A.known() {
			e.Refused = append(e.Refused, f)
			continue
		}
		e.Unheld = append(e.Unheld, f)
	}
	return e
}
