package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// Play plays a suite whose variants are all simulated engines, as Run would run it
// (warm-up, blocks, variants that take turns), without a client and the time that
// it takes, and returns what a contract judges. Equal seeds give equal evidence.
// engine, if not nil, gives the engine of a variant instead of the suite's.
func (s *Suite) Play(seed uint64, engine func(variant string) sim.Config) (contract.Evidence, error) {
	var e contract.Evidence
	var names []string
	var players []*sim.Player
	for name, v := range s.Variants.All() {
		if err := v.playable(); err != nil {
			return e, fmt.Errorf("playing %s: %w", name, err)
		}
		c := v.Sim
		if engine != nil {
			own := engine(name)
			c = &own
		}
		p, err := sim.NewPlayer(*c)
		if err != nil {
			return e, fmt.Errorf("playing %s: %w", name, err)
		}
		p.Variant, p.API = name, v.API
		p.Sink = func(r *record.Record) { e.Records = append(e.Records, *r) }
		players, names = append(players, p), append(names, name)
	}
	var problem string
	if e.Baseline, e.Candidate, problem = roles(names); problem != "" {
		return e, errors.New(problem)
	}
	for title, spec := range s.Workloads.All() {
		windows, err := s.playWorkload(title, spec, seed, players)
		if err != nil {
			return e, err
		}
		e.Windows = append(e.Windows, windows...)
	}
	record.Sort(e.Records)
	return e, nil
}

// playable says why a variant cannot be played.
func (v *Variant) playable() error {
	switch {
	case v.Sim == nil:
		return errors.New("it is an endpoint, and only simulated engines are played\n  hint: give it sim:, or run the suite")
	case v.Timeout != 0 || v.Stall != 0:
		return errors.New("the limits timeout and stall are a client's, and there is none\n  hint: remove them, or run the suite")
	case v.Sim.Start != 0:
		return errors.New("the engine would take time to load\n  hint: remove sim.start")
	}
	return nil
}

// playWorkload plays one workload on all variants, which share a clock.
func (s *Suite) playWorkload(title string, spec workload.Spec, seed uint64, players []*sim.Player) ([]record.Window, error) {
	var now time.Duration
	for _, p := range players {
		now = max(now, p.Now())
	}
	// together has a player go on where the last one stopped.
	together := func(p *sim.Player, do func()) {
		p.Wait(now)
		do()
		now = p.Now()
	}
	blocks := s.blocks()
	parts := make([]*sim.Part, len(players))
	for i, p := range players {
		plan, err := workload.New(title, spec, s.sets, seed, saltOf(fmt.Sprintf("%08x", uint32(seed)), i))
		if err != nil {
			return nil, fmt.Errorf("planning %s: %w", title, err)
		}
		parts[i] = p.Part(plan, blocks)
		defer parts[i].Close()
		parts[i].Cap, parts[i].Drain = int(spec.Cap), time.Duration(spec.Drain)
		if v, _ := s.Variants.Get(p.Variant); v.ResetCache {
			p.ResetPrefixCache()
		}
		together(p, parts[i].WarmUp)
	}
	var windows []record.Window
	for block := range blocks {
		for _, i := range turn(block, len(players)) {
			together(players[i], func() { windows = append(windows, parts[i].Block(block)) })
		}
	}
	return windows, nil
}
