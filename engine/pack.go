package engine

import (
	"math"
	"time"

	"github.com/assay-llm/assay/record"
)

// packer holds the snapshots within a window in a tenth of their memory: a window may
// last for hours. Those at its edges, with buckets, are not for it.
type packer struct {
	names []string
	index map[string]int // in names
	rows  []packed
}

// packed is a snapshot; a value that is not known is a NaN, as are those behind the end.
type packed struct {
	engine string
	at     record.Instant
	took   time.Duration
	values []float64
	resets []string
}

func (p *packer) add(x *Snapshot) {
	if p.index == nil {
		p.index = make(map[string]int)
	}
	row := packed{engine: x.Engine, at: x.At, took: x.Took, resets: x.Resets}
	for name := range x.Values {
		if _, ok := p.index[name]; !ok {
			p.index[name] = len(p.names)
			p.names = append(p.names, name)
		}
	}
	row.values = make([]float64, len(p.names))
	for i, name := range p.names {
		v, ok := x.Values[name]
		if !ok {
			v = math.NaN()
		}
		row.values[i] = v
	}
	p.rows = append(p.rows, row)
}

// unpack gives back what was added.
func (p *packer) unpack() []*Snapshot {
	out := make([]*Snapshot, len(p.rows))
	for i, row := range p.rows {
		x := &Snapshot{Engine: row.engine, At: row.at, Took: row.took, Values: make(map[string]float64, len(row.values)), Resets: row.resets}
		for k, v := range row.values {
			if !math.IsNaN(v) {
				x.Values[p.names[k]] = v
			}
		}
		out[i] = x
	}
	return out
}
