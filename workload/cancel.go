package workload

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-llm/assay/config"
)

// Cancel is a kind of users who do not wait for the end of their answer. Exactly
// one of During, AfterTokens and After says when they hang up.
type Cancel struct {
	Share       config.Percent `yaml:"share,required" doc:"share of all requests"`
	During      string         `yaml:"during" oneof:"prefill" doc:"prefill: as soon as the request is sent, before anything comes back"`
	AfterTokens Length         `yaml:"after_tokens" doc:"once so many tokens of the answer came, if it is that long"`
	After       Pause          `yaml:"after" doc:"so long after the request was due, if the answer is not complete by then"`
}

// Cancels are the kinds of users who hang up. In a suite they are a list, or one
// of them.
type Cancels []Cancel

// maxCancels bounds the kinds of one workload.
const maxCancels = 16

// DecodeConfig reads a list or a single mapping.
func (c *Cancels) DecodeConfig(n *config.Node) {
	*c = nil
	if n.IsSequence() {
		n.Decode((*[]Cancel)(c))
		return
	}
	var one Cancel
	if n.Decode(&one) {
		*c = Cancels{one}
	}
}

// MarshalYAML writes one of them as a mapping.
func (c Cancels) MarshalYAML() (any, error) {
	if len(c) == 1 {
		return c[0], nil
	}
	return []Cancel(c), nil
}

// IsZero reports whether nobody hangs up.
func (c Cancels) IsZero() bool { return len(c) == 0 }

// ConfigSchema describes both forms.
func (Cancels) ConfigSchema() map[string]any {
	one := config.SchemaOf(Cancel{})
	return map[string]any{"oneOf": []any{one, map[string]any{"type": "array", "items": one, "minItems": 1}}}
}

// Share returns the share of all requests that are planned to be cancelled.
func (c Cancels) Share() float64 {
	sum := 0.0
	for i := range c {
		sum += float64(c[i].Share)
	}
	return sum
}

// CheckConfig reports what is wrong within one kind, at its position.
func (c *Cancel) CheckConfig(n *config.Node) { c.problems("").report(n, "") }

func (c *Cancel) problems(path string) (ps problems) {
	at := func(key string) string { return strings.Trim(path+"."+key, ".") }
	var when []string
	for _, w := range []struct {
		key string
		set bool
	}{{"during", c.During != ""}, {"after_tokens", c.AfterTokens.Set()}, {"after", c.After.Set()}} {
		if w.set {
			when = append(when, w.key)
		}
	}
	switch {
	case !(c.Share > 0 && c.Share <= 1):
		ps.add(at("share"), fmt.Sprintf("must be more than 0%% and at most 100%%, got %v", c.Share), "write such as 5%")
	case len(when) == 0:
		ps.add(at(""), "does not say when", "add during: prefill, after_tokens: 20 or after: 3s")
	case len(when) > 1:
		ps.add(at(when[1]), "stands beside "+when[0], "keep one; a list can have both")
	case c.During != "" && c.During != string(CutPrefill):
		ps.add(at("during"), fmt.Sprintf("wants prefill, got %q", c.During), "write prefill, or after: 3s")
	}
	if what, hint := c.AfterTokens.problem(); what != "" {
		ps.add(at("after_tokens"), what, hint)
	}
	if what, hint := c.After.problem(); what != "" {
		ps.add(at("after"), what, hint)
	}
	return ps
}

// cancels judges who hangs up.
func (ps *problems) cancels(s *Spec) {
	if len(s.Cancel) > maxCancels {
		ps.add("cancel", fmt.Sprintf("has %d kinds, at most %d are possible", len(s.Cancel), maxCancels), "leave some out")
		return
	}
	tokens := false
	for i := range s.Cancel {
		*ps = append(*ps, s.Cancel[i].problems(fmt.Sprintf("cancel[%d]", i))...)
		tokens = tokens || s.Cancel[i].AfterTokens.Set()
	}
	if tokens && !isTrue(s.Stream) {
		ps.add("cancel", "after_tokens does not go with stream: false, since such an answer comes all at once", "write after: 3s, or stream: true")
	}
	if sum := s.Cancel.Share(); len(s.Cancel) > 1 && sum > 1+1e-9 {
		ps.add("cancel", fmt.Sprintf("the shares add up to %v, more than all requests", config.Percent(sum)), "lower one of them")
	}
}

// CutKind says at what a request is planned to be cancelled.
type CutKind string

// The kinds. The zero CutKind is never.
const (
	CutNever   CutKind = ""
	CutPrefill CutKind = "prefill" // when it was sent
	CutTokens  CutKind = "tokens"  // when Cut.Tokens of its answer came
	CutTime    CutKind = "time"    // Cut.After its due instant
)

// Cut is when a request is planned to be cancelled. The zero Cut is never.
type Cut struct {
	When   CutKind
	Tokens int64
	After  time.Duration
}

// cuts draws which requests are cancelled, and when.
type cuts struct {
	who, when  Stream
	cumulative []float64
	draw       []func(u float64) Cut
}

// newCuts returns nil if nobody hangs up.
func newCuts(c Cancels, stream func(string) Stream) *cuts {
	if len(c) == 0 {
		return nil
	}
	k := &cuts{who: stream("cancel"), when: stream("cancel at")}
	sum := 0.0
	for i := range c {
		sum += float64(c[i].Share)
		k.cumulative = append(k.cumulative, sum)
		k.draw = append(k.draw, c[i].sampler())
	}
	return k
}

func (c *Cancel) sampler() func(u float64) Cut {
	switch {
	case c.AfterTokens.Set():
		draw := c.AfterTokens.sampler()
		return func(u float64) Cut { return Cut{When: CutTokens, Tokens: int64(draw(u))} }
	case c.After.Set():
		draw := c.After.sampler()
		return func(u float64) Cut { return Cut{When: CutTime, After: time.Duration(draw(u))} }
	}
	return func(float64) Cut { return Cut{When: CutPrefill} }
}

// at returns when the request of a key is cancelled.
func (k *cuts) at(key int64) Cut {
	u := k.who.uniform(key)
	for i, c := range k.cumulative {
		if u < c {
			return k.draw[i](k.when.uniform(key))
		}
	}
	return Cut{}
}

// String describes them: "5% cancelled after 20 tokens".
func (c Cancels) String() string {
	var parts []string
	for i := range c {
		when := "in prefill"
		switch {
		case c[i].AfterTokens.Set():
			when = fmt.Sprintf("after %v tokens", c[i].AfterTokens)
		case c[i].After.Set():
			when = fmt.Sprintf("after %v", c[i].After)
		}
		parts = append(parts, fmt.Sprintf("%v cancelled %s", c[i].Share, when))
	}
	return strings.Join(parts, ", ")
}
