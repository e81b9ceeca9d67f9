package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/assay-llm/assay/baseline"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/lock"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// Options say how to run a suite. The zero value works.
type Options struct {
	Runs   string                        // folder of the run directories; "": runs
	Seed   *uint64                       // instead of the suite's
	Salt   *string                       // instead of a fresh one: repeats an earlier run to the byte
	Getenv func(string) string           // for secrets; nil: no environment
	Watch  *Watch                        // nil: nobody watches
	Notice func(format string, a ...any) // what the user should know now; nil: dropped

	Calibrator *Calibrator // of the client's ceiling; nil: nobody measures it
	Registry   string      // address of the registry of baselines, instead of the suite's; "": the suite's, if it has one
	Force      bool        // send what this host is not known to carry; the certificate decides
	Lock       *Held       // what the run is held to; nil: to nothing

	// Capabilities tells what an endpoint was seen to do; nil: nobody knows. It is
	// asked of variants that a check wants something of, and of judges.
	Capabilities func(ctx context.Context, t llm.Target) check.Capabilities

	virtual *virtual // of tests
}

// virtual lets a run go on in virtual time (testing/synctest), over a network in
// memory.
type virtual struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Watch lets another goroutine follow a run. The zero Watch is ready.
type Watch struct {
	Live load.Live
	step atomic.Pointer[Step]
}

// Step is where a run stands.
type Step struct {
	Dir      string
	Workload string
	Variant  string
	Block    int
	Blocks   int // of this workload, over all variants
	WarmUp   bool
	Start    time.Time
	Length   time.Duration // planned, of the whole run; 0: unknown
}

// Step returns where the run stands; ok is false before the first shot.
func (w *Watch) Step() (s Step, ok bool) {
	if p := w.step.Load(); p != nil {
		return *p, true
	}
	return Step{}, false
}

// A TargetError says that a variant could not be measured at all.
type TargetError struct {
	Variant string
	Err     error
}

// Error names the variant, what happened and the next step.
func (e *TargetError) Error() string {
	what, hint, found := strings.Cut(e.Err.Error(), "hint: ")
	if !found {
		hint = "check that the server is up and that its url, model and key in the suite are right"
	}
	return fmt.Sprintf("reaching %s: %s\n  hint: %s", e.Variant, strings.TrimSpace(what), strings.TrimSpace(hint))
}

// Unwrap returns what happened.
func (e *TargetError) Unwrap() error { return e.Err }

// A SetupError says that something the suite refers to is not there: a secret, a
// certificate. It is the user's to mend, not the target's.
type SetupError struct{ Err error }

// Error says what is missing.
func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns what is missing.
func (e *SetupError) Unwrap() error { return e.Err }

// run is one run under way.
type run struct {
	suite    *Suite
	opts     Options
	dir      string
	epoch    time.Time
	manifest *record.Manifest
	variants []*variant
	writer   *record.Writer
	monitor  *load.Monitor
	length   time.Duration
	registry baseline.Address // where the suite has a registry
	sealer   *check.Seal      // of private answers; nil: they are not kept
	past     *past            // nil: the run is not one that is resumed
	facts    *lock.Lock       // what the run depends on
	unmarked bool             // a checkpoint failed, and the reader was told
}

// variant is a variant under measurement.
type variant struct {
	name   string
	spec   Variant
	client *llm.Client
	target llm.Target // of client
	plans  map[string]*workload.Plan
	engine ear
	gpus   ear
}

// Run runs a suite and returns its result. When ctx ends, it stops sending,
// drains and returns what there is with ctx's cause. A *TargetError means that a
// variant could not be reached; a config.Faults that the suite is wrong.
func Run(ctx context.Context, s *Suite, o Options) (*Result, error) {
	r := newRun(s, o)
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if err := r.preflight(ctx); err != nil {
		return nil, err
	}
	if late := s.late(); len(late) > 0 {
		r.opts.Notice("the run stops early only if it fails: before its end nothing can pass %s", strings.Join(late, ", "))
	}
	return r.execute(ctx)
}

func newRun(s *Suite, o Options) *run {
	if o.Notice == nil {
		o.Notice = func(string, ...any) {}
	}
	if o.Watch == nil {
		o.Watch = new(Watch)
	}
	if o.Runs == "" {
		o.Runs = "runs"
	}
	return &run{suite: s, opts: o}
}

// execute does what is planned, or what of it is left.
func (r *run) execute(ctx context.Context) (*Result, error) {
	if err := r.reachable(ctx); err != nil {
		return nil, err
	}
	defer load.Slack()()
	var result *Result
	err := r.connected(ctx, func() error {
		if err := r.depend(ctx); err != nil {
			return err
		}
		var err error
		if r.past != nil {
			err = r.rejoin()
		} else if err = r.open(); err == nil {
			err = r.keepFacts()
		}
		if err != nil {
			return err
		}
		result, err = r.measure(ctx)
		return err
	})
	return result, err
}

// connected calls do while every variant can be asked.
func (r *run) connected(ctx context.Context, do func() error) error {
	engines, stop := context.WithCancel(context.WithoutCancel(ctx))
	waits, err := r.connect(ctx, engines)
	defer func() {
		for _, v := range r.variants {
			if v.client != nil {
				_ = v.client.Close()
			}
			v.engine.close()
			v.gpus.close()
		}
		stop()
		for _, wait := range waits {
			_ = wait()
		}
	}()
	if err != nil {
		return err
	}
	return do()
}

// prepare fixes what is random and makes every plan, so that a wrong suite fails
// before anything is sent.
func (r *run) prepare() error {
	if err := r.located(); err != nil {
		return err
	}
	s := r.suite
	seed := rand.Uint64() >> 11 // chosen once and recorded; JSON readers keep 53 bits
	if s.Seed != nil {
		seed = *s.Seed
	}
	if r.opts.Seed != nil {
		seed = *r.opts.Seed
	} else if s.Seed == nil {
		seed = r.opts.Lock.seed(seed)
	}
	salt := freshSalt()
	if r.opts.Salt != nil {
		salt = *r.opts.Salt
	}
	r.manifest = &record.Manifest{
		Schema: record.ManifestSchema, Name: s.Name, Assay: Version(), Seed: seed, Salt: salt,
		State: "running", SuiteFile: s.file, Host: hostFacts(),
	}
	for name, spec := range s.Variants.All() {
		v := &variant{name: name, spec: spec, plans: make(map[string]*workload.Plan)}
		for title, w := range s.Workloads.All() {
			plan, err := workload.New(title, w, s.sets, seed, saltOf(salt, len(r.variants)))
			if err != nil {
				return fmt.Errorf("planning %s: %w", title, err)
			}
			v.plans[title] = plan
		}
		r.variants = append(r.variants, v)
	}
	if err := r.checkUnder(); err != nil {
		return err
	}
	resolved := *s
	resolved.Seed = &seed
	text, err := config.Encode(resolved)
	if err != nil {
		return fmt.Errorf("writing the resolved suite: %w", err)
	}
	sum := sha256.Sum256(text)
	r.manifest.Suite, r.manifest.Digest = string(text), hex.EncodeToString(sum[:])
	r.describe()
	return nil
}

// freshSalt returns a text that no earlier run put before its prompts.
func freshSalt() string {
	return fmt.Sprintf("%08x", rand.Uint32())
}

// saltOf gives each variant a salt of its own and of equal length: two variants
// of one server must not warm each other's prefix cache.
func saltOf(salt string, variant int) string {
	if salt == "" {
		return ""
	}
	return fmt.Sprintf("%s%c", salt, 'a'+variant)
}

// describe fills in who is measured and what is sent.
func (r *run) describe() {
	m := r.manifest
	for _, v := range r.variants {
		api, protocol := v.spec.API, v.spec.Protocol
		if api == "" {
			api = llm.APIChat
		}
		if protocol == "" {
			protocol = llm.ProtocolHTTP1
		}
		m.Variants = append(m.Variants, record.VariantInfo{Name: v.name, URL: v.spec.URL, Model: v.spec.Model, API: api, Protocol: protocol, About: v.spec.About.info()})
	}
	first := r.variants[0]
	for name, spec := range r.suite.Workloads.All() {
		p := first.plans[name]
		info := record.WorkloadInfo{
			Name: name, Arrivals: p.String(), Open: p.Open(), Planned: p.Planned(),
			WarmUp: p.WarmUps(), Plan: p.Digest(), Labels: spec.Labels, Process: p.Process(), Rate: p.Rate(),
			Prompts:  r.suite.promptsDigest(),
			Unsalted: m.Salt == "" || spec.Salt != nil && !*spec.Salt,
		}
		if !p.Open() {
			info.Users = p.Users()
		}
		m.Workloads = append(m.Workloads, info)
		r.length += time.Duration(len(r.variants)) * p.For()
	}
}

// connect starts the simulated engines, makes the clients and asks every
// endpoint once.
func (r *run) connect(ctx, engines context.Context) (waits []func() error, err error) {
	if r.sealer, err = r.seal(); err != nil {
		return nil, &SetupError{err}
	}
	for i, v := range r.variants {
		target, err := v.spec.target(r.suite, r.opts.Getenv)
		if err != nil {
			return waits, &SetupError{fmt.Errorf("preparing %s: %w", v.name, err)}
		}
		if v.spec.Sim != nil {
			url, wait, err := serveSim(engines, *v.spec.Sim)
			if err != nil {
				return waits, &TargetError{v.name, err}
			}
			waits = append(waits, wait)
			target.URL = url
			r.manifest.Variants[i].URL = url
			r.manifest.Variants[i].Engine = map[string]string{"engine": "sim"}
			if text, err := config.Encode(v.spec.Sim); err == nil {
				r.manifest.Variants[i].Engine["config"] = strings.TrimSpace(string(text))
			}
		}
		if r.opts.virtual != nil {
			target.Dial = r.opts.virtual.dial
		}
		v.target = target
		if v.client, err = llm.NewClient(target); err != nil {
			return waits, &TargetError{v.name, err}
		}
		if err := v.client.Probe(ctx); err != nil {
			if ctx.Err() != nil {
				return waits, context.Cause(ctx)
			}
			return waits, &TargetError{v.name, err}
		}
		if err := r.listen(ctx, v, target); err != nil {
			return waits, err
		}
	}
	return waits, nil
}

// target resolves a variant to what the client needs.
func (v Variant) target(s *Suite, getenv func(string) string) (llm.Target, error) {
	t := llm.Target{
		URL: v.URL, API: v.API, Template: v.Template, Model: v.Model, Protocol: v.Protocol, Proxy: v.Proxy,
		TokensFromEvents: v.Tokens == "events", Timeout: time.Duration(v.Timeout), Stall: time.Duration(v.Stall), KeepText: -1,
	}
	below := func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(s.file), name)
		}
		return os.ReadFile(name)
	}
	for _, w := range s.Workloads.All() {
		if w.Grows() {
			t.KeepText = 0 // answers are sent back
		}
	}
	if err := v.secrets(&t, getenv, below); err != nil {
		return t, err
	}
	if v.CA != "" {
		pem, err := below(v.CA)
		if err != nil {
			return t, fmt.Errorf("reading the certificates: %w", err)
		}
		t.CA = pem
	}
	return t, nil
}

// secrets fills in what the suite gives by reference: the key, a proxy with a
// password, headers.
func (v Variant) secrets(t *llm.Target, getenv func(string) string, below func(string) ([]byte, error)) error {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	// resolved replaces a reference to a secret by the secret.
	resolved := func(what, text string) (string, error) {
		if !isReference(text) {
			return text, nil
		}
		ref, err := config.ParseSecret(text)
		if err == nil {
			text, err = ref.Resolve(getenv, below)
		}
		if err != nil {
			return "", fmt.Errorf("reading the %s: %w", what, err)
		}
		return text, nil
	}
	var err error
	if t.Key, err = resolved("key", v.Key.String()); err != nil {
		return err
	}
	if t.Proxy, err = resolved("proxy", v.Proxy); err != nil {
		return err
	}
	t.Headers = make(map[string]string, len(v.Headers))
	for name, value := range v.Headers {
		if t.Headers[name], err = resolved("header "+name, value); err != nil {
			return err
		}
	}
	return nil
}

// open makes the run directory with its first manifest and its journal.
func (r *run) open() error {
	r.epoch = time.Now()
	r.manifest.Start = r.epoch.Round(0)
	r.manifest.ID = newID(r.epoch)
	r.dir = filepath.Join(r.opts.Runs, r.manifest.ID)
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	if err := r.checkpoint(); err != nil {
		return err
	}
	writer, err := record.Create(record.OS(), r.dir)
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	r.writer = writer
	r.monitor = load.NewMonitor(r.epoch, r.opts.virtual != nil)
	return nil
}

// checkpoint writes down where the run stands, for one that goes on with it.
func (r *run) checkpoint() error {
	if err := record.WriteManifest(record.OS(), r.dir, r.manifest); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	return nil
}

// newID names a run; names sort by time.
func newID(at time.Time) string {
	return fmt.Sprintf("%s-%06x", at.UTC().Format("20060102T150405.000"), rand.Uint32()>>8)
}

// measure sends every workload, keeps the records and judges them.
func (r *run) measure(ctx context.Context) (*Result, error) {
	kept, err := keepWatched(r.dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keeping the client's health: %w", err), r.writer.Close())
	}
	r.monitor.Keep(kept.add)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan error, 1)
	go func() { watched <- r.monitor.Run(watching) }()
	err = r.workloads(ctx)
	stop()
	<-watched
	if err == nil {
		err = r.checks(ctx)
	}
	if failed := kept.close(); failed != nil {
		r.note("the client's health was not kept, so that a run like this could not be resumed: %v", failed)
	}

	m := r.manifest
	m.Elapsed = time.Since(r.epoch)
	switch {
	case err == nil:
		m.State = StateDone
	case ctx.Err() != nil:
		m.State = StateInterrupted
	default:
		m.State = StateFailed
		m.Notes = append(m.Notes, err.Error())
	}
	if sealed := r.writer.Seal(); sealed != nil {
		m.State = StateFailed
		err = errors.Join(err, fmt.Errorf("sealing the records: %w", sealed))
	}
	result, failed := r.keep(ctx)
	return result, errors.Join(err, failed)
}

// keep reads the records back as everybody else will, certifies the client,
// judges, and writes what a run directory holds.
func (r *run) keep(ctx context.Context) (*Result, error) {
	m := r.manifest
	records, repair, err := readRecords(r.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the records back: %w", err)
	}
	m.Client = r.certificate(records)
	m.Ledger = record.Ledger(records)
	r.engines(records)
	for i := range m.Workloads {
		w := &m.Workloads[i]
		repeats := r.variants[0].plans[w.Name].Repeats()
		w.Repeats = &repeats
	}
	if err := r.checkpoint(); err != nil {
		return nil, err
	}
	result := &Result{Dir: r.dir, Manifest: m, Records: records, Repair: repair, contract: r.suite.Contract.Contract, looks: r.suite.looks(), prices: r.suite.prices(), declared: r.suite.Checks, checks: r.suite.checked()}
	if result.Outcomes, err = readOutcomes(r.dir); err != nil {
		return nil, err
	}
	result.judge()
	if r.suite.Registry != nil {
		r.register(ctx, result)
		result.judge()
	}
	return result, result.write()
}

// certificate is that of the client until now.
func (r *run) certificate(records []record.Record) record.Certificate {
	c := r.monitor.Certificate(loaded(records, r.suite.checked()))
	if r.suite.Workloads.Len() == 0 { // checks measure no times that a client could spoil
		c.Fit, c.Reasons = true, nil
		return c
	}
	if why := r.past.unwatched(); why != "" {
		c.Fit, c.Reasons = false, append(c.Reasons, why)
	}
	return c
}

// workloads runs every workload, the variants taking turns.
func (r *run) workloads(ctx context.Context) error {
	for name, spec := range r.suite.Workloads.All() {
		if r.stopped(name) {
			continue
		}
		if err := r.workload(ctx, name, spec, r.suite.blocks()); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) workload(ctx context.Context, name string, spec workload.Spec, blocks int) error {
	if r.past != nil && r.look(name, doneBlocks(r.manifest, name, blocks)) {
		return nil // it was killed before it could write down that it was to stop
	}
	drivers := make([]*load.Driver, len(r.variants))
	defer func() {
		for _, d := range drivers {
			if d != nil {
				_ = d.Close()
			}
		}
	}()
	for i, v := range r.variants {
		if r.over(v.name, name, blocks) {
			continue
		}
		d, err := load.New(load.Config{
			Plan: v.plans[name], Variant: v.name, Client: v.client, Epoch: r.epoch,
			Blocks: blocks, Cap: int(spec.Cap), Drain: time.Duration(spec.Drain),
			Sink:    func(rec *record.Record, _ llm.Answer) error { return r.writer.Append(rec) },
			Monitor: r.monitor, Live: &r.opts.Watch.Live, Virtual: r.opts.virtual != nil,
		})
		if err != nil {
			return err
		}
		drivers[i] = d
		r.seek(d, v.name, name)
		r.stand(Step{Workload: name, Variant: v.name, WarmUp: true})
		r.empty(ctx, v, name)
		if _, err := v.client.Open(ctx, connections(v.plans[name], spec)); err != nil && ctx.Err() == nil {
			r.opts.Notice("opening connections to %s ahead of time: %v", v.name, err)
		}
		if err := d.WarmUp(ctx); err != nil {
			return err
		}
	}
	for block := range blocks {
		measured := false
		for k, i := range turn(block, len(drivers)) {
			if r.blockOver(r.variants[i].name, name, block) {
				continue
			}
			r.stand(Step{Workload: name, Variant: r.variants[i].name, Block: block*len(drivers) + k + 1, Blocks: blocks * len(drivers)})
			err := r.during(ctx, r.variants[i], name, block, func() error { return r.block(ctx, drivers[i], block) })
			if err != nil {
				return err
			}
			measured = true
		}
		if measured && r.look(name, block+1) {
			return nil
		}
	}
	return nil
}

// block measures one block. The window is written down at both its ends, so that a
// run that is killed can go on.
func (r *run) block(ctx context.Context, d *load.Driver, block int) error {
	m := r.manifest
	m.Windows = append(m.Windows, d.Opening(block))
	r.mark()
	w, err := d.Block(ctx, block)
	m.Windows[len(m.Windows)-1] = w
	if err == nil { // a block is over when all its records are on disk
		err = r.writer.Sync()
	}
	r.mark()
	return err
}

// mark is a checkpoint in the middle of the run. If it fails, the run goes on: its
// manifest is written again at the end, when the connections are closed, and a client
// that is short of descriptors is for the certificate to tell. Until a later one
// succeeds, a run that is killed cannot be resumed.
func (r *run) mark() {
	if err := r.checkpoint(); err != nil && !r.unmarked {
		r.unmarked = true
		r.note("where the run stood could not be written down at some time: %v", err)
	}
}

// turn returns the order of the variants in a block: forward and backward in
// turn, so that a drift of the machine that is steady hits all alike.
func turn(block, variants int) []int {
	order := make([]int, variants)
	for i := range order {
		order[i] = i
		if block%2 == 1 {
			order[i] = variants - 1 - i
		}
	}
	return order
}

// connections is how many connections to open ahead: one a user of a closed
// loop, the arrivals of two seconds in an open one.
func connections(p *workload.Plan, spec workload.Spec) int {
	const most = 1024
	n := p.Users()
	if p.Open() {
		n = int(2*p.Rate()) + 8
		if spec.Sessions != nil { // whose turns are more than the arrivals
			n = int(2*float64(p.Planned())/p.For().Seconds()) + 8
		}
		if spec.Cap > 0 {
			n = min(n, int(spec.Cap))
		}
	}
	return min(n, most)
}

func (r *run) stand(s Step) {
	s.Dir, s.Start, s.Length = r.dir, r.epoch, r.length
	r.opts.Watch.step.Store(&s)
}

// planned says what the contract may expect of the run.
func (s *Suite) planned() ([]contract.Planned, error) {
	var out []contract.Planned
	for name, spec := range s.Workloads.All() {
		p, err := workload.New(name, spec, s.sets, 0, "")
		if err != nil {
			return nil, fmt.Errorf("planning %s: %w", name, err)
		}
		out = append(out, contract.Planned{
			Workload: name, Requests: uncut(p, s.blocks()), Labels: spec.Labels, Variants: s.Variants.Keys(),
			Streaming: spec.Stream == nil || *spec.Stream, Usage: true, For: p.For(), Looks: len(s.looks()),
		})
	}
	for _, c := range s.checked() {
		out = append(out, contract.Planned{Workload: c.Name, Check: true, Values: c.Metrics, Variants: s.Variants.Keys(), Usage: true})
	}
	return out, nil
}

// uncut is how many requests speak about latencies: those that can be asked before
// their block is over, and that nobody plans to cancel.
func uncut(p *workload.Plan, blocks int) int64 {
	n := p.Askable(blocks)
	if n <= 0 {
		return n
	}
	return max(1, int64(float64(n)*(1-min(1, p.Spec().Cancel.Share()))))
}

// Outlook says what a run of the suite will be able to tell.
func (s *Suite) Outlook() ([]contract.Outlook, error) {
	planned, err := s.planned()
	if err != nil {
		return nil, err
	}
	return contract.Look(s.Contract.Contract, planned), nil
}

// Lint returns what the contract demands of this suite that no run of it can
// decide.
func (s *Suite) Lint() ([]config.Fault, error) {
	if s.Contract.Contract == nil {
		return nil, nil
	}
	planned, err := s.planned()
	if err != nil {
		return nil, err
	}
	return contract.Lint(s.Contract.Contract, planned), nil
}
