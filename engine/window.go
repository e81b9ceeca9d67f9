package engine

import "github.com/assay-llm/assay/record"

// Window returns what a span tells from scrape to scrape, for whoever judges its course.
// What [Between] has lost over the span is lost here.
func Window(s Span) record.EngineWindow {
	out := record.EngineWindow{Counters: make(map[string][]record.EngineGrowth), Gauges: make(map[string][]record.EngineGrowth)}
	d := Between(s)
	out.Lost = d.Lost
	for i, x := range s.Snapshots {
		if out.Variant, out.Workload, out.Block, out.Engine = x.Variant, x.Workload, x.Block, x.Engine; i == 0 {
			continue
		}
		before := s.Snapshots[i-1]
		for name, v := range x.Values {
			step := record.EngineGrowth{From: before.At, To: x.At, By: v}
			switch _, lost := d.Lost[name]; {
			case lost:
			case grows(name):
				step.By -= before.Values[name]
				out.Counters[name] = append(out.Counters[name], step)
			case x.Edge == "":
				out.Gauges[name] = append(out.Gauges[name], step)
			}
		}
	}
	return out
}
