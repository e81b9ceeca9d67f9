package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// Declared is a check as a suite has it.
type Declared struct {
	Check  *Check
	Config any // decoded; nil if the check takes none

	Busy bool // it runs a second time under Config.Load: see Declared.Twin
}

// Config says what Run does, and with what. Variants and Checks are required.
type Config struct {
	Checks   []Declared
	Variants []Variant
	Seed     uint64
	Salt     string                 // of the run, put where no cache of an earlier run shall help; "": none
	Sets     map[string]*corpus.Set // by the file of their SetRef
	Files    map[FileRef][]byte     // what is in the files that configurations name

	// Judge and Embedder connect to an endpoint that a configuration names, once, when
	// a check first wants it. nil: there are none, and a check that wants one cannot
	// run.
	Judge    func(Endpoint) (Asker, error)
	Embedder func(Endpoint) (Embedder, error)

	// Can tells what an endpoint that a configuration names was seen to do, as
	// Variant.Can does of a variant. nil: nothing is known of them.
	Can func(Endpoint) Capabilities

	// Load brings the load of that check to every variant, calls during while it is
	// there, and ends it. Its error is that of during, or says why the load was not what it
	// should have been. nil: no check can run under load. LoadKey tells the loads of
	// several processes of one run apart: what was asked under one is no answer under another.
	Load    func(ctx context.Context, check string, during func(context.Context) error) error
	LoadKey string

	Memory Memory // answers that are known; nil: none, and none is kept beyond the run

	// Private holds the answers of private questions: Memory through a Seal, say. nil:
	// they are kept for as long as the call of Run lasts, and nowhere.
	Private Memory

	PerEndpoint int           // questions under way to one endpoint; 0: 8
	Overall     int           // questions under way; 0: 32
	Retries     int           // further tries after a failure of transport; 0: 2, negative: none
	Backoff     time.Duration // before the first further try, doubled for each next; 0: 1 s
	Budget      Budget

	Progress func(Progress)            // called as questions are answered, one call at a time; nil: nobody looks
	Keep     func(digest, text string) // stores a text that a finding refers to; nil: it is dropped
}

// Variant is one version of a service, to be asked.
type Variant struct {
	Name  string
	Model string
	Asker Asker
	Price Price
	Can   Capabilities
}

// Memory holds answers beyond the life of a run. It is safe for concurrent use.
type Memory interface {
	// Recall returns the answer that was saved under a key.
	Recall(key string) (a *Answer, ok bool, err error)
	// Save keeps an answer; when it returns, the answer survives a crash.
	Save(key, endpoint string, a *Answer) error
}

// Progress is how far a check has come.
type Progress struct {
	Check          string
	Index, Of      int // of the check among all, from 1
	Asked, Planned int // shots, of all variants
	Spent          Spending
}

// Outcome is what became of one declared check.
type Outcome struct {
	Check      string            `json:"check"`
	Why        string            `json:"why,omitempty"` // why it proves nothing: it could not run, or not to its end; "": it did
	Values     []Value           `json:"values,omitempty"`
	Signatures []Signature       `json:"signatures,omitempty"` // of each value, in the same order
	Estimates  []record.Estimate `json:"estimates,omitempty"`  // of the values of the whole check
	Findings   []Finding         `json:"findings,omitempty"`
	Figures    []Figure          `json:"figures,omitempty"`
	Notes      []string          `json:"notes,omitempty"`
	Cost       Cost              `json:"cost"`
	Data       any               `json:"data,omitempty"` // what the check published
	Records    []record.Record   `json:"-"`              // every case that was asked, of every variant
}

// Run runs the checks, each after those that it reads and else in the order of
// the suite. Every declared check has an Outcome, in the order of the suite,
// whatever became of it. The error is of the run as a whole: two checks that wait
// for each other, a context that ended, a Memory that does not keep; the outcomes
// that are there by then are returned with it.
func Run(ctx context.Context, c Config) ([]*Outcome, error) {
	return newRunner(c).all(ctx)
}

// all runs every check.
func (r *runner) all(ctx context.Context) ([]*Outcome, error) {
	c := &r.c
	order, err := Order(c.Checks)
	if err != nil {
		return nil, err
	}
	for n, i := range order {
		r.at.Index, r.at.Of = n+1, len(order)
		d := c.Checks[i]
		p := r.pass(d)
		o, err := r.play(ctx, d, p)
		r.done[d.Check.Name] = o
		if err == nil && d.Busy {
			err = r.busy(ctx, d, p, o)
		}
		if err != nil {
			return r.outcomes(), err
		}
	}
	return r.outcomes(), nil
}

// outcomes lists what there is, in the order of the suite.
func (r *runner) outcomes() (out []*Outcome) {
	for _, d := range r.c.Checks {
		if o, ok := r.done[d.Check.Name]; ok {
			out = append(out, o)
		}
		if twin, ok := d.Twin(); ok {
			if o, ok := r.done[twin.Check.Name]; ok {
				out = append(out, o)
			}
		}
	}
	return out
}

// CircleError says that checks wait for each other.
type CircleError struct {
	Names []string // in the order in which they read each other; the first is the last
}

// Error names the circle.
func (e *CircleError) Error() string {
	return fmt.Sprintf("the checks %s wait for each other in a circle", strings.Join(e.Names, " → "))
}

// Order returns the indices of the checks in an order in which each comes after
// those that it reads. Of a circle the error is a *CircleError.
func Order(checks []Declared) ([]int, error) {
	const (
		fresh = iota
		under
		done
	)
	index := make(map[string]int, len(checks))
	for i, d := range checks {
		if _, twice := index[d.Check.Name]; twice {
			return nil, fmt.Errorf("the check %s is declared twice", d.Check.Name)
		}
		index[d.Check.Name] = i
	}
	var (
		order []int
		path  []string
		state = make([]int, len(checks))
		visit func(i int) error
	)
	visit = func(i int) error {
		name := checks[i].Check.Name
		switch state[i] {
		case done:
			return nil
		case under:
			return &CircleError{append(path[slices.Index(path, name):], name)}
		}
		state[i] = under
		path = append(path, name)
		for _, dep := range checks[i].Check.Reads {
			if k, ok := index[dep]; ok {
				if err := visit(k); err != nil {
					return err
				}
			}
		}
		path = path[:len(path)-1]
		state[i] = done
		order = append(order, i)
		return nil
	}
	for i := range checks {
		if err := visit(i); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// play runs one check. Its error ends the run; whatever else goes wrong is the
// outcome's Why.
func (r *runner) play(ctx context.Context, d Declared, p *Pass) (*Outcome, error) {
	o := &Outcome{Check: d.Check.Name}
	started := time.Now()
	err := contain(func() error {
		if d.Check.Values != nil {
			o.Values = d.Check.Values(d.Config)
		}
		for _, v := range o.Values {
			p.declared[v.Name] = v
		}
		if why := r.lacks(d); why != "" {
			return errors.New(why)
		}
		return d.Check.Run(ctx, p)
	})
	o.Records = p.records()
	o.Findings, o.Figures, o.Notes, o.Data = p.findings, p.figures, p.notes, p.data
	o.Cost = p.bill.cost(time.Since(started))
	o.Estimates = p.estimated()
	o.Signatures = p.sign(o.Values, o.Records)
	switch {
	case ctx.Err() != nil:
		o.Why = "the run was stopped before it was done"
		return o, context.Cause(ctx)
	case r.broken() != nil:
		o.Why = "its answers could not be kept"
		return o, r.broken()
	case err != nil:
		o.Why = strings.ToValidUTF8(err.Error(), "\ufffd")
	case len(o.Records) == 0 && !d.Check.Offline:
		o.Why = "it asked nothing"
	}
	return o, nil
}

// lacks says what a check needs and does not have; "": nothing.
func (r *runner) lacks(d Declared) string {
	for _, what := range d.Check.Needs {
		for _, v := range r.c.Variants {
			switch proof := v.Can[what]; proof.Standing {
			case Proven:
			case Absent:
				return detailed(fmt.Sprintf("it needs %s, which %s does not have", what, v.Name), proof.Detail)
			default:
				return detailed(fmt.Sprintf("it needs %s, which nothing proves of %s", what, v.Name), proof.Detail)
			}
		}
	}
	for _, s := range Sets(d.Config) {
		if r.c.Sets[s.File] == nil {
			return fmt.Sprintf("there is no set %s", s.File)
		}
	}
	for _, f := range Files(d.Config) {
		if _, ok := r.c.Files[f]; !ok {
			return fmt.Sprintf("there is no file %s", f)
		}
	}
	return ""
}

func detailed(what, detail string) string {
	if detail == "" {
		return what
	}
	return what + ": " + detail
}

// contain calls f and makes an error of its panic.
func contain(f func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("the check broke: %v%s", x, origin(debug.Stack()))
		}
	}()
	return f()
}

// origin names the line that panicked.
func origin(stack []byte) string {
	_, after, found := strings.Cut(string(stack), "panic(")
	if !found {
		return ""
	}
	lines := strings.Split(after, "\n")
	for _, line := range lines[min(2, len(lines)):] {
		if place, ok := strings.CutPrefix(line, "\t"); ok && !strings.Contains(place, "/check/pass.go") && !strings.Contains(place, "/runtime/") {
			place, _, _ = strings.Cut(place, " ")
			return " at " + place[strings.LastIndex(place, "/")+1:]
		}
	}
	return ""
}

// sign completes what the check said of its values.
func (p *Pass) sign(values []Value, records []record.Record) []Signature {
	var out []Signature
	for _, v := range values {
		s := p.signs[v.Name]
		s.Value = p.name(v.Name)
		if s.Data == "" {
			s.Data = strings.Join(sorted(p.used), "+")
		}
		if s.Judge == "" {
			s.Judge = strings.Join(sorted(p.judges), ", ")
		}
		if s.Cluster == "" {
			s.Cluster = clusters(records, p.cluster)
		}
		s.N, s.Missing = 0, 0
		if v.Whole {
			s.N, s.Missing = p.counted(s.Value)
			out = append(out, s)
			continue
		}
		for i := range records {
			if _, na := records[i].Values[record.Exempt(s.Value)]; na {
				continue
			}
			s.N++
			if _, ok := records[i].Values[s.Value]; !ok {
				s.Missing++
			}
		}
		out = append(out, s)
	}
	return out
}

// clusters says whether the cases are independent of each other, and else what they
// have in common.
func clusters(records []record.Record, by string) string {
	for i := range records {
		if records[i].Session != records[i].Case {
			return cmp.Or(by, "session")
		}
	}
	return "case"
}
