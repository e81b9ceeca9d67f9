package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// ear is what a run hears of the engine of one variant, or of its GPUs.
type ear struct {
	source *metrics.Source            // nil: nothing is heard
	heard  map[string][]metrics.Heard // by workload
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

func (v *Variant) checkGPUs(n *config.Node) {
	if v.GPUMetrics == "" {
		return
	}
	if v.Sim != nil {
		n.Fault("does not go with sim", "remove it; a simulated engine has no GPU")
		return
	}
	if err := metrics.CheckURL(v.GPUMetrics); err != nil {
		complain(n, errors.New(strings.TrimSuffix(err.Error(), ", or off")), "", "write http://host:9400/metrics")
		return
	}
	checkQuery(n, v.GPUMetrics)
}

// listen finds the metrics of a variant's engine and of its GPUs. Only where the
// suite names them is it an error that they are not there.
func (r *run) listen(ctx context.Context, v *variant, target llm.Target) error {
	if v.spec.GPUMetrics != "" {
		if err := r.connectTo(ctx, v, &v.gpus, v.spec.GPUMetrics, target.CA); err != nil {
			return r.unheard(ctx, v, err, "mend gpu_metrics in the suite, or remove it")
		}
	}
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
	err := r.connectTo(ctx, v, &v.engine, address, target.CA)
	switch {
	case err == nil:
		return nil
	case v.spec.Metrics != "" || ctx.Err() != nil:
		return r.unheard(ctx, v, err, "mend the address of its metrics in the suite, or write metrics: off")
	}
	r.note("no metrics of the engine of %s: %v", v.name, err)
	return nil
}

func (r *run) unheard(ctx context.Context, v *variant, err error, hint string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &TargetError{v.name, fmt.Errorf("%w; hint: %s", err, hint)}
}

// connectTo opens an ear at an address and notes how its metrics differ from those
// that are known.
func (r *run) connectTo(ctx context.Context, v *variant, e *ear, address string, certificates []byte) error {
	source, err := metrics.NewSource(address, certificates)
	if err != nil {
		return err
	}
	contract, err := source.Connect(ctx)
	if err != nil {
		source.Close()
		return err
	}
	e.source, e.heard = source, make(map[string][]metrics.Heard)
	for _, words := range contract.Words() {
		r.note("engine of %s (%s): %s", v.name, source.Engine(), words)
	}
	return nil
}

// note keeps with the run what its reader must know.
func (r *run) note(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	if !slices.Contains(r.manifest.Notes, text) {
		r.manifest.Notes = append(r.manifest.Notes, text)
	}
}

// during measures a block and keeps what engine and GPUs said meanwhile.
func (r *run) during(ctx context.Context, v *variant, workload string, block int, do func() error) (err error) {
	r.hear(ctx, v, &v.gpus, workload, block, func() {
		r.hear(ctx, v, &v.engine, workload, block, func() { err = do() })
	})
	return err
}

func (r *run) hear(ctx context.Context, v *variant, e *ear, workload string, block int, do func()) {
	if e.source == nil {
		do()
		return
	}
	span := e.source.During(ctx, r.epoch, metrics.Every, do)
	for _, x := range span.Snapshots {
		x.Variant, x.Workload, x.Block = v.name, workload, block
	}
	e.heard[workload] = append(e.heard[workload], metrics.Fold(span))
	if span.Failed > 0 {
		r.note("%d scrapes of the metrics of %s failed: %s", span.Failed, v.name, span.Failures[0])
	}
	if err := metrics.Append(filepath.Join(r.dir, metrics.FileName), span); err != nil {
		r.note("%v", err) // the records are what counts
	}
}

// engines adds up what was heard, and sets the records beside it.
func (r *run) engines(records []record.Record) {
	for name := range r.suite.Workloads.All() {
		for _, v := range r.variants {
			for _, e := range []*ear{&v.engine, &v.gpus} {
				if len(e.heard[name]) == 0 {
					continue
				}
				side := metrics.Summarize(v.name, name, e.heard[name])
				metrics.Reconcile(&side, records)
				for _, text := range side.Notes {
					r.note("%s", text)
				}
				r.manifest.Engines = append(r.manifest.Engines, side)
			}
		}
	}
}

// heard reads back what the engines of a run said, window by window; nothing where nothing
// is kept, or what is cannot be read.
func heard(dir string) (windows []record.EngineWindow) {
	f, err := os.Open(filepath.Join(dir, metrics.FileName))
	if err != nil {
		return nil
	}
	defer f.Close()
	snapshots, _, err := metrics.Read(f)
	if err != nil {
		return nil
	}
	for _, span := range metrics.Spans(snapshots) {
		windows = append(windows, metrics.Window(span))
	}
	return windows
}
