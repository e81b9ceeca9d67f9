package baseline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
)

// Policy says where the registry of a suite is, and how runs are held against it. It
// is decoded by package config. With no gates and zeros it means DefaultGates and
// the defaults that the fields name.
type Policy struct {
	At     string         `yaml:"at,required" doc:"where the registry is: a file such as runs/baselines.db, postgres://host/database, or env:NAME or file:PATH of one"`
	Gates  []Gate         `yaml:"gates" doc:"what the change since the baseline, and since the anchor, is held against; if left out, throughput below 88 % blocks, and p99(e2e) more than 85ms higher marks high-risk"`
	Window int            `yaml:"window" min:"24" max:"1000" doc:"how many earlier runs the fences look at; 72 if left out"`
	Fence  float64        `yaml:"fence" min:">0" max:"10" doc:"how far the fences reach, in interquartile ranges; 1.5 if left out"`
	Period int            `yaml:"period" min:"1" max:"200" doc:"after how many runs the figures repeat, such as 7 for a daily run with weekends; 1 if left out"`
	Demand string         `yaml:"demand" oneof:"quick,standard,full,version" doc:"a built-in profile of checks that every registered run of the suite has to run, too: see assay profiles"`
	Effect config.Percent `yaml:"effect" min:"0%" max:"1000%" doc:"the least lasting change that is called a shift; 5% if left out"`
}

// Gate is one demand on the change since a registered snapshot.
type Gate struct {
	ID         string         `yaml:"id,required" doc:"unique name"`
	Need       contract.Need  `yaml:"need,required" doc:"one comparison with the reference, such as rate(output_tokens) >= reference * 0.88"`
	On         contract.Names `yaml:"on" doc:"the workload, or list of workloads, that is judged, each by itself; all if left out"`
	Min        int64          `yaml:"min" min:"1" doc:"judge only if the run has at least this many requests"`
	Confidence config.Percent `yaml:"confidence" doc:"of the one-sided bound that decides, at most 99%; 95% if left out"`
	Mark       string         `yaml:"mark" doc:"only put this mark on the candidate, such as high-risk, where the demand is not met"`
}

const mostGates = 50

// CheckConfig refuses what could never be judged, and an address with a password.
func (p *Policy) CheckConfig(n *config.Node) {
	if !IsReference(p.At) {
		switch at, err := Locate(p.At, nil); {
		case err != nil:
			n.At("at").Fault("is no address of a registry (not shown)", "write a file such as runs/baselines.db, postgres://host/database, or env:NAME of a URL with a password")
		case at.HasPassword():
			n.At("at").Fault("holds a password (not shown)", "put the address into an environment variable and write env:NAME; change the password if this file was shared")
		}
	}
	if len(p.Gates) > mostGates {
		n.At("gates").Fault(fmt.Sprintf("has %d gates; the limit is %d", len(p.Gates), mostGates), "keep those that somebody acts on")
		return
	}
	seen := map[string]bool{}
	for i, item := range n.At("gates").Items() {
		g := p.Gates[i]
		switch {
		case seen[g.ID]:
			item.At("id").Fault("stands twice", "give each gate a name of its own")
		case !g.Need.IsZero() && !g.Need.Limit.Reference:
			item.At("need").Fault("compares with nothing registered", "write a limit such as reference * 0.88; other demands belong into contract:")
		case g.Confidence != 0 && (g.Confidence < 0.5 || g.Confidence > 0.99):
			item.At("confidence").Fault("is not between 50% and 99%", "write 95%, or leave it out; intervals are registered up to 99%")
		case g.Mark != "" && (!plain(g.Mark) || len(g.Mark) > 40):
			item.At("mark").Fault("is no plain text of at most 40 bytes", "write mark: high-risk")
		}
		seen[g.ID] = true
	}
}

// DefaultGates are those of a policy that has none: throughput below 88 % of the
// reference blocks, and a p99 that is more than 85 ms higher marks high-risk.
func DefaultGates() []Gate {
	return []Gate{
		{ID: "throughput", Need: must("rate(output_tokens) >= reference * 0.88"), Min: 200},
		{ID: "p99", Need: must("p99(e2e) <= reference + 85ms"), Mark: "high-risk"},
	}
}

func must(text string) contract.Need {
	n, err := contract.ParseNeed(text)
	if err != nil {
		panic("baseline: " + err.Error())
	}
	return n
}

// Filled is the policy with every default in its place.
func (p Policy) Filled() Policy {
	if len(p.Gates) == 0 {
		p.Gates = DefaultGates()
	}
	p.Window, p.Fence, p.Period, p.Effect = cmp.Or(p.Window, 72), cmp.Or(p.Fence, 1.5), cmp.Or(p.Period, 1), cmp.Or(p.Effect, 0.05)
	return p
}

// Quantities are those that the gates judge: a snapshot must have them.
func (p Policy) Quantities() []contract.Quantity {
	var out []contract.Quantity
	for _, g := range p.Gates {
		if !slices.Contains(out, g.Need.Quantity) {
			out = append(out, g.Need.Quantity)
		}
	}
	return out
}

// clause is the gate as a contract has it.
func (g Gate) clause() contract.Clause {
	return contract.Clause{ID: g.ID, Need: g.Need, On: g.On, Min: g.Min, Confidence: g.Confidence}
}
