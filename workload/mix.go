package workload

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// Part is one kind of request of a workload that mixes several: who asks, how
// often, and what. Its requests carry Tenant and Labels, so that clauses can speak
// of them alone.
type Part struct {
	Tenant      string            `yaml:"tenant,required" doc:"name of who asks; also the label tenant of its records"`
	Share       config.Percent    `yaml:"share,required" doc:"share of all requests; the shares add up to 100%"`
	Preset      string            `yaml:"preset" oneof:"chat,rag-qa,code-completion,agent,long-tail,batch" doc:"a named workload, of which prompts, output, prefix and correlation are taken where they are left out"`
	Prompts     Prompts           `yaml:"prompts" doc:"what is asked: synthetic text"`
	Output      Length            `yaml:"output" doc:"limit of output tokens (max_tokens) of each request"`
	Correlation float64           `yaml:"correlation" min:"-1" max:"1" doc:"rank correlation between the lengths of prompts and of outputs"`
	Prefix      Prefix            `yaml:"prefix" doc:"text that groups of this part's requests share at their start"`
	IgnoreEOS   bool              `yaml:"ignore_eos" doc:"ask the server to go on to the limit of output tokens"`
	Temperature *float64          `yaml:"temperature" min:"0" max:"2" doc:"sampling temperature; left out: the workload's"`
	Priority    int64             `yaml:"priority" min:"-1000000" max:"1000000" doc:"priority for engines that schedule by it, lower first as in vLLM; not sent if 0"`
	Labels      map[string]string `yaml:"labels" doc:"labels of this part's records, over those of the workload"`
}

const (
	maxParts    = 64
	tenantLabel = "tenant"

	priorityLabel = "priority"
	maxPriority   = 1_000_000
)

// spec is the part as a workload of its own, without arrivals and end.
func (p *Part) spec(whole *Spec) Spec {
	s := Spec{
		Preset: p.Preset, Arrivals: Arrivals{Concurrency: 1}, Prompts: p.Prompts, Output: p.Output, Correlation: p.Correlation,
		Prefix: p.Prefix, IgnoreEOS: p.IgnoreEOS, Temperature: p.Temperature, Stream: whole.Stream, Sessions: whole.Sessions, Cancel: whole.Cancel, Jitter: whole.Jitter, Priority: p.Priority,
	}.resolved()
	if s.Temperature == nil {
		s.Temperature = whole.Temperature
	}
	s.Labels = merged(merged(whole.Labels, p.Labels), map[string]string{tenantLabel: p.Tenant})
	return s
}

// CheckConfig reports what is wrong within a part, each at its position.
func (p *Part) CheckConfig(n *config.Node) { p.problems("").report(n, "") }

func (p *Part) problems(path string) problems {
	var found, ps problems
	if p.Tenant == "" || len(p.Tenant) > maxLabel || strings.ContainsFunc(p.Tenant, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		ps.add("tenant", fmt.Sprintf("is empty, longer than %d bytes or not printable", maxLabel), "choose a short name")
	}
	if !(p.Share > 0 && p.Share <= 1) {
		ps.add("share", fmt.Sprintf("must be more than 0%% and at most 100%%, got %v", p.Share), "write such as 70%")
	}
	if _, _, ok := preset(p.Preset); p.Preset != "" && !ok {
		ps.add("preset", fmt.Sprintf("wants one of %s, got %q", strings.Join(presetNames, ", "), p.Preset), "write one of them")
	}
	if _, own := p.Labels[tenantLabel]; own {
		ps.add("labels", "the label tenant is set by the part's tenant", "remove it")
	}
	if p.Prompts.File != "" {
		ps.add("prompts.file", "parts of a mix have synthetic prompts", "write synthetic: 512, or make the file a workload of its own")
	}
	s := p.spec(&Spec{})
	s.Requests = 1
	ps = append(ps, s.problems()...)
	for _, problem := range ps {
		if path != "" {
			problem.path = path + "." + problem.path
		}
		found = append(found, problem)
	}
	return found
}

// mix judges the parts together.
func (ps *problems) mix(s *Spec) {
	for _, other := range []struct {
		key string
		set bool
	}{
		{"preset", s.Preset != ""},
		{"prompts", s.Prompts.Synthetic.Set() || s.Prompts.File+s.Prompts.Format+s.Prompts.Order != ""},
		{"output", s.Output.Set()},
		{"prefix", s.Prefix != (Prefix{})},
		{"correlation", s.Correlation != 0},
		{"ignore_eos", s.IgnoreEOS},
		{"priority", s.Priority != 0},
	} {
		if other.set {
			ps.add(other.key, "stands beside mix, whose parts say it", "move it into the parts")
		}
	}
	if s.Arrivals.Replay != nil {
		ps.add("arrivals.replay", "has the requests of its trace, which cannot be mixed", "write such as {poisson: 8/s}")
	}
	if len(s.Mix) > maxParts {
		ps.add("mix", fmt.Sprintf("has %d parts, at most %d are possible", len(s.Mix), maxParts), "make them workloads of their own")
		return
	}
	sum := 0.0
	names := map[string]bool{}
	for i := range s.Mix {
		p := &s.Mix[i]
		*ps = append(*ps, p.problems(fmt.Sprintf("mix[%d]", i))...)
		if names[p.Tenant] {
			ps.add("mix", fmt.Sprintf("has the tenant %.40q twice", p.Tenant), "give each part a tenant of its own")
		}
		names[p.Tenant] = true
		sum += float64(p.Share)
	}
	if !(math.Abs(sum-1) < 1e-6) {
		ps.add("mix", fmt.Sprintf("the shares add up to %v, not to 100%%", config.Percent(math.Round(sum*1e6)/1e6)), "change one of them")
	}
}

// mixture makes the shots of a workload of several parts. Which part shot i
// belongs to is drawn from a stream of its own, and each part draws from streams
// of its own, so that a change of one part moves nothing in another.
type mixture struct {
	pick       Stream
	cumulative []float64
	parts      []*generator
}

func newMixture(name string, whole *Spec, seed uint64, phase record.Phase, salt string) *mixture {
	m := &mixture{pick: NewStream(seed, name, phase.String(), "part")}
	sum := 0.0
	for i := range whole.Mix {
		part := &whole.Mix[i]
		spec := part.spec(whole)
		g := newGenerator(name+"\x00"+part.Tenant, &spec, nil, seed, phase, salt)
		g.name, g.tenant = name, part.Tenant
		sum += float64(part.Share)
		m.cumulative, m.parts = append(m.cumulative, sum), append(m.parts, g)
	}
	return m
}

// part returns the index of the part that shot i belongs to.
func (m *mixture) part(i int64) int {
	u := m.pick.uniform(i)
	for k, c := range m.cumulative {
		if u < c {
			return k
		}
	}
	return len(m.parts) - 1
}
