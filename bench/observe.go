package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/assay-llm/assay/config"
	metrics "github.com/assay-llm/assay/engine"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// MetricsAddress is where an engine shows its metrics, or noMetrics; "": at the
// usual place, if there.
type MetricsAddress string

// noMetrics is what a suite writes for an engine whose metrics are not wanted.
const noMetrics = "off"

// DecodeConfig reads an address, or the word off with or without quotes: there is
// nothing that it could be taken for.
func (a *MetricsAddress) DecodeConfig(n *config.Node) {
	if n.Kind() == config.Text && n.Scalar() == noMetrics {
		*a = noMetrics
		return
	}
	if s, ok := n.Text(); ok {
		*a = MetricsAddress(s)
	}
}

// ConfigSchema describes an address or off, which editors may take for false.
func (MetricsAddress) ConfigSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "string", "minLength": 1}, map[string]any{"const": false}}}
}

// ear is what a run hears of the engine of one variant.
type ear struct {
	source *metrics.Source           // nil: the engine shows no metrics
	spans  map[string][]metrics.Span // by workload
}

func (e *ear) close() {
	if e.source != nil {
		e.source.Close()
	}
}

func (v *Variant) checkMetrics(n *config.Node) {
	switch {
	case v.Metrics == "" || v.Metrics == noMetrics:
	case v.Sim != nil:
		n.Fault("does not go with sim", "remove it; a simulated engine's metrics are known, or write off")
	default:
		if err := metrics.CheckURL(string(v.Metrics)); err != nil {
			complain(n, err, "", "write http://host:port/metrics, or off")
			return
		}
		checkQuery(n, string(v.Metrics))
	}
}

// listen finds the metrics of a variant's engine. Only where the suite names them is it
// an error that they are not there.
func (r *run) listen(ctx context.Context, v *variant, target llm.Target) error {
	address := string(v.spec.Metrics)
	switch {
	case address == noMetrics:
		return nil
	case address == "" && v.spec.Proxy != "":
		r.note("the metrics of %s were not asked for, since they are not read through a proxy", v.name)
		return nil
	case address == "":
		address = metrics.MetricsURL(target.URL)
	}
	source, err := metrics.NewSource(address, target.CA)
	if err == nil {
		var contract metrics.Contract
		if contract, err = source.Connect(ctx); err == nil {
			v.engine.source = source
			for _, words := range contract.Words() {
				r.note("engine of %s (%s): %s", v.name, source.Engine(), words)
			}
			return nil
		}
		source.Close()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if v.spec.Metrics != "" {
		return &TargetError{v.name, fmt.Errorf("%w; hint: mend the address of its metrics in the suite, or write metrics: off", err)}
	}
	r.note("no metrics of the engine of %s: %v", v.name, err)
	return nil
}

// note keeps with the run what its reader must know.
func (r *run) note(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	if !slices.Contains(r.manifest.Notes, text) {
		r.manifest.Notes = append(r.manifest.Notes, text)
	}
}

// during measures a block and keeps what the engine said meanwhile.
func (r *run) during(ctx context.Context, v *variant, workload string, block int, do func() error) (err error) {
	if v.engine.source == nil {
		return do()
	}
	span := v.engine.source.During(ctx, r.epoch, metrics.Every, func() { err = do() })
	for _, x := range span.Snapshots {
		x.Variant, x.Workload, x.Block = v.name, workload, block
	}
	if v.engine.spans == nil {
		v.engine.spans = make(map[string][]metrics.Span)
	}
	v.engine.spans[workload] = append(v.engine.spans[workload], span)
	if span.Failed > 0 {
		r.note("%d scrapes of the metrics of %s failed: %s", span.Failed, v.name, span.Failures[0])
	}
	if err := metrics.Append(filepath.Join(r.dir, metrics.FileName), span); err != nil {
		r.note("%v", err) // the records are what counts
	}
	return err
}

// engines adds up what the engines said, and sets the records beside it.
func (r *run) engines(records []record.Record) {
	for name := range r.suite.Workloads.All() {
		for _, v := range r.variants {
			if len(v.engine.spans[name]) == 0 {
				continue
			}
			side := metrics.Summarize(v.name, name, v.engine.spans[name])
			metrics.Reconcile(&side, records)
			for _, text := range side.Notes {
				r.note("%s", text)
			}
			r.manifest.Engines = append(r.manifest.Engines, side)
		}
	}
}
