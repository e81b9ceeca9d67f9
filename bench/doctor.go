package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/pace"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/workload"
)

// DiagnosisSchema names the JSON form of a Diagnosis.
const DiagnosisSchema = "assay.doctor/1"

// Diagnosis says whether this host is a fit place to measure from.
type Diagnosis struct {
	Schema   string            `json:"schema"`
	Assay    string            `json:"assay"`
	Host     map[string]string `json:"host"`
	State    host.State        `json:"state"` // the worst: fail, warn, unknown, ok
	Findings []host.Finding    `json:"findings"`
	Loads    []Examined        `json:"loads"`
}

// Examined is a load that the host was examined for.
type Examined struct {
	Workload string          `json:"workload"` // of the suite; "": the default
	Shape    record.Shape    `json:"shape"`
	Peak     *float64        `json:"peak_rate"` // planned; null: no open loop
	Ceiling  *record.Ceiling `json:"ceiling"`   // null: not measured
	Findings []host.Finding  `json:"findings"`
}

// DoctorOptions say what to examine. The zero value examines the host alone.
type DoctorOptions struct {
	Suite      *Suite      // nil: a short chat
	Calibrator *Calibrator // nil: no ceiling is measured
	Root       fs.FS       // holds proc and sys; nil: the host's
	Runs       string      // folder of the run directories; "": runs
}

// Doctor examines this host, and measures the client's ceiling for every shape of
// the suite.
func Doctor(ctx context.Context, o DoctorOptions) (*Diagnosis, error) {
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	d := &Diagnosis{Schema: DiagnosisSchema, Assay: Version(), Host: hostFacts()}
	loads, needs, err := o.loads()
	if err != nil {
		return nil, err
	}
	facts := host.Read(o.Root) // before this program makes pressure itself
	waiter := pace.New()
	defer waiter.Close()
	measured, err := host.Measure(ctx, cmp.Or(o.Runs, "runs"), waiter)
	if err != nil {
		return nil, fmt.Errorf("examining the host: %w", err)
	}
	for i := range loads {
		if o.Calibrator == nil {
			break
		}
		if err := o.calibrate(ctx, loads, i); err != nil {
			return nil, err
		}
		if c := loads[i].Ceiling; c != nil {
			measured.Stamps = host.No
			if c.Stamps {
				measured.Stamps = host.Yes
			}
		}
	}
	facts.Throttled = host.Read(o.Root).Throttled // with what the load did
	d.Findings = host.Examine(facts, measured)
	for i := range loads {
		loads[i].Findings = append(host.Fit(facts, measured, needs[i]), loads[i].Findings...)
	}
	d.Loads = loads
	d.State = d.worst()
	return d, nil
}

// loads are the workloads of the suite, or a short chat, and what each needs.
func (o *DoctorOptions) loads() (loads []Examined, needs []host.Need, err error) {
	if o.Suite == nil {
		return []Examined{{Shape: DefaultShape()}}, []host.Need{{Streams: load.DefaultCap, Records: -1}}, nil
	}
	inProcess := false
	for _, v := range o.Suite.Variants.All() {
		inProcess = inProcess || v.Sim != nil
	}
	var seed uint64
	if o.Suite.Seed != nil {
		seed = *o.Suite.Seed
	}
	for name, spec := range o.Suite.Workloads.All() {
		p, err := workload.New(name, spec, o.Suite.sets, seed, saltOf(freshSalt(), 0))
		if err != nil {
			return nil, nil, fmt.Errorf("planning %s: %w", name, err)
		}
		e := Examined{Workload: name, Shape: ShapeOf(p)}
		n := need(p, spec, inProcess)
		if p.Open() {
			e.Peak = &n.Rate
		}
		loads, needs = append(loads, e), append(needs, n)
	}
	return loads, needs, nil
}

// calibrate measures the ceiling for load i, unless one before has its shape.
func (o *DoctorOptions) calibrate(ctx context.Context, loads []Examined, i int) error {
	e := &loads[i]
	if same := slices.IndexFunc(loads[:i], func(b Examined) bool { return b.Shape == e.Shape && b.Ceiling != nil }); same >= 0 {
		e.Ceiling = loads[same].Ceiling
	} else {
		c := *o.Calibrator
		c.Quick = cmp.Or(c.Quick, defaultQuick) / time.Duration(len(loads))
		var err error
		if e.Ceiling, err = c.Measure(ctx, e.Shape); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			f := host.Finding{ID: "ceiling", State: host.Uncertain, Text: "the ceiling of this client could not be measured: " + err.Error(), Next: "try again on an idle machine"}
			if limit, ok := errors.AsType[*LimitError](err); ok {
				f = host.Finding{ID: "ceiling", State: host.Failed, Text: limit.What, Next: limit.Hint}
			}
			e.Findings = append(e.Findings, f)
			return nil
		}
	}
	e.Findings = append(e.Findings, carries(e))
	return nil
}

// carries says what the ceiling means for the load.
func carries(e *Examined) host.Finding {
	f := host.Finding{ID: "ceiling", State: host.OK, Text: report.Ceiling(e.Ceiling)}
	if disturbed(e.Ceiling) {
		f.State, f.Next = host.Warning, "something else held the client back: stop what else runs here, and measure anew"
	}
	if e.Peak == nil {
		return f
	}
	share := *e.Peak / e.Ceiling.Requests
	f.Text += fmt.Sprintf("; planned peak %.0f requests/s, %.2g %% of it", *e.Peak, share*100)
	if share > most {
		f.State = host.Failed
		f.Next = "lower the rate below half of the ceiling, or use an idle machine with more cores"
	}
	return f
}

// worst is the worst state of all findings.
func (d *Diagnosis) worst() host.State {
	all := slices.Clone(d.Findings)
	for _, e := range d.Loads {
		all = append(all, e.Findings...)
	}
	for _, s := range []host.State{host.Failed, host.Warning, host.Uncertain} {
		if slices.ContainsFunc(all, func(f host.Finding) bool { return f.State == s }) {
			return s
		}
	}
	return host.OK
}
