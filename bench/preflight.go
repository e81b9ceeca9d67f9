package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// A LimitError says that this host cannot carry what is planned: a limit of the
// system, or the ceiling of the client.
type LimitError struct {
	What string
	Hint string // the next step
}

// Error says what the limit is and what to do.
func (e *LimitError) Error() string { return e.What + "\n  hint: " + e.Hint }

// The load below which a run is not preceded by a calibration: by costs that no
// client here exceeded by far, a request and an event take so much CPU …
const (
	requestCost = 500 * time.Microsecond
	eventCost   = 50 * time.Microsecond
	idleEnough  = 0.5 // … and all that is planned less than this share of one CPU.
)

// most is the share of the ceiling up to which a planned peak rate is accepted.
const most = 0.5

// cost is the CPU time that a second of a plan's peak is estimated to take, as a
// share of one CPU.
func cost(s record.Shape, peak float64) float64 {
	events := 1
	if s.Stream {
		events = s.Events
	}
	return peak * (requestCost + time.Duration(events)*eventCost).Seconds()
}

// need is what a workload asks of the host.
func need(p *workload.Plan, spec workload.Spec, inProcess bool) host.Need {
	n := host.Need{Streams: int64(p.Users()), Sure: true, Double: inProcess, Rate: p.PeakRate(), Records: -1}
	planned := p.Planned()
	if p.Open() {
		n.Streams, n.Sure = int64(spec.Cap), spec.Cap > 0
		if n.Streams == 0 {
			n.Streams = load.DefaultCap
		}
	}
	if planned >= 0 {
		n.Streams = min(n.Streams, planned)
		n.Records = planned * recordBytes(ShapeOf(p))
	}
	return n
}

// recordBytes is about what one record takes in memory until it is judged.
func recordBytes(s record.Shape) int64 {
	const whole, event = 1 << 10, 48
	if !s.Stream {
		return whole
	}
	return whole + event*int64(s.Events)
}

// preflight refuses a run that this host cannot carry, before anything is sent,
// and writes down what it can.
func (r *run) preflight(ctx context.Context) error {
	facts := host.Read(os.DirFS("/"))
	var measured host.Measured
	measured.Open, measured.Limit = host.Descriptors()
	i := 0
	for name, spec := range r.suite.Workloads.All() {
		inProcess := false
		for _, v := range r.variants {
			inProcess = inProcess || v.spec.Sim != nil
		}
		p := r.variants[0].plans[name]
		n := need(p, spec, inProcess)
		for _, f := range host.Limits(facts, measured, n) {
			switch {
			case f.State == host.Failed && !r.opts.Force:
				return &LimitError{name + " is more than this host can carry: " + f.Text, f.Next}
			case f.State == host.Failed, f.State == host.Warning:
				r.opts.Notice("warning: %s: %s\n  hint: %s", name, f.Text, f.Next)
			}
		}
		info := &r.manifest.Workloads[i]
		i++
		info.Peak = n.Rate
		if err := r.ceiling(ctx, info, ShapeOf(p)); err != nil {
			return err
		}
	}
	return nil
}

// ceiling finds out how far the client is from its end at the planned peak of a
// workload, and refuses what is more than half way there.
func (r *run) ceiling(ctx context.Context, info *record.WorkloadInfo, shape record.Shape) error {
	c := r.opts.Calibrator
	switch {
	case !info.Open:
		info.Why = "a closed loop sends as fast as it is answered: the certificate of the run decides"
		return nil
	case c == nil:
		info.Why = "nobody measured it"
		return nil
	}
	known := c.Known(shape)
	if known != nil && known.AtLeast && info.Peak > most*known.Requests {
		known = nil // it may be higher
	}
	if share := cost(shape, info.Peak); known == nil && share <= idleEnough {
		info.Why = fmt.Sprintf("not measured: the planned peak takes an estimated %.0f %% of one CPU at most; assay doctor measures it", share*100)
		return nil
	}
	if known == nil {
		r.opts.Notice("measuring what this client can carry, as %s plans up to %.0f requests/s", info.Name, info.Peak)
		var err error
		if known, err = c.Probe(ctx, shape, info.Peak/most); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if limit, ok := errors.AsType[*LimitError](err); ok && !r.opts.Force {
				return limit
			}
			info.Why = "it could not be measured: " + err.Error()
			r.opts.Notice("warning: the ceiling of this client could not be measured: %v", err)
			return nil
		}
	}
	info.Ceiling = known
	for _, v := range r.variants {
		if v.spec.Protocol == llm.ProtocolHTTP2 || v.spec.Proxy != "" || strings.HasPrefix(v.spec.URL, "https:") {
			info.Why = "measured over plain HTTP/1.1: the TLS, HTTP/2 or proxy of " + v.name + " makes it lower"
		}
	}
	if info.Peak <= most*known.Requests {
		return nil
	}
	what := fmt.Sprintf("%s plans up to %.0f requests/s, above half of what this client carried here (%.0f requests/s of %d events, measured %s)",
		info.Name, info.Peak, known.Requests, shape.Events, known.At.Local().Format(time.DateTime))
	if disturbed(known) {
		what += ", when something else held it back"
	}
	if r.opts.Force {
		info.Why = "forced: the planned peak is above half of the ceiling"
		r.opts.Notice("warning: %s; forced, the certificate of the run decides", what)
		return nil
	}
	return &LimitError{what, "lower the rate, use an idle machine with more cores, or measure anew with assay doctor; --force sends it anyway, and the client's certificate decides"}
}
