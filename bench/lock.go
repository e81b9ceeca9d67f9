package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/lock"
	"github.com/assay-llm/assay/record"
)

// lockName is the file of a run directory that says what the run depends on.
const lockName = "lock.yaml"

// Held is a lock that a run is held to.
type Held struct {
	File string
	*lock.Lock
}

// seed is the one that the lock fixes, or else the other.
func (h *Held) seed(other uint64) uint64 {
	if h == nil {
		return other
	}
	if n, err := strconv.ParseUint(h.Seeds["run"].Value, 10, 64); err == nil {
		return n
	}
	return other
}

// ReadLock reads a lock file. The error is a config.Faults when it is the file that is
// wrong.
func ReadLock(file string) (*Held, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the lock %s: there is no such file\n  hint: make it with assay lock SUITE, or name another with --lock", file)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lock %s: %w", file, reason(err))
	}
	l, err := lock.Parse(file, data)
	if err != nil {
		return nil, err
	}
	return &Held{file, l}, nil
}

// Depends reads what a run depends on from its directory. The error wraps
// fs.ErrNotExist when the run was made by a version that did not write it down.
func Depends(dir string) (*lock.Lock, error) {
	file := filepath.Join(dir, lockName)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading what the run %s depends on: %w", dir, err)
	}
	return lock.Parse(file, data)
}

// A LockError says that what is to be measured is not what the lock holds.
type LockError struct {
	File    string
	Refused []lock.Field
}

// Error names every fact with what was expected and what was found.
func (e *LockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nothing was sent: %s holds other facts", e.File)
	for _, f := range e.Refused {
		fmt.Fprintf(&b, "\n  %s: expected %s, found %s (%s)", f.Path, f.A, f.B, f.Why)
	}
	fmt.Fprintf(&b, "\n  hint: put it back as it was; if the change is meant, write a new lock with assay lock SUITE -o %s", e.File)
	return b.String()
}

// Lock finds out what a run of the suite would depend on. It starts the simulated
// engines of the suite and asks every endpoint about itself; of one that does not tell how
// it cuts and writes prompts, it counts the tokens of a few short questions.
func Lock(ctx context.Context, s *Suite, o Options) (*lock.Lock, error) {
	r := newRun(s, o)
	if err := r.prepare(); err != nil {
		return nil, err
	}
	err := r.connected(ctx, func() (err error) {
		r.facts, err = r.learn(ctx, true)
		return err
	})
	return r.facts, err
}

// depend finds out what the run depends on, and holds it to its lock.
func (r *run) depend(ctx context.Context) (err error) {
	if r.facts, err = r.learn(ctx, r.opts.Lock != nil); err != nil {
		return err
	}
	if r.past != nil {
		r.sameAsBefore()
		return nil
	}
	info := &record.LockInfo{Digest: r.facts.Digest()}
	for _, f := range r.facts.Unknown() {
		info.Unknown = append(info.Unknown, f.Path)
	}
	r.manifest.Lock = info
	h := r.opts.Lock
	if h == nil {
		return nil
	}
	e := lock.Enforce(h.Lock, r.facts)
	if len(e.Refused) > 0 {
		return &LockError{h.File, e.Refused}
	}
	info.Held = h.File
	for _, f := range e.Noted {
		r.note("%s is not what the lock %s says, which matters little: it was %s and is %s", f.Path, h.File, f.A, f.B)
	}
	if n := len(e.Unheld); n > 0 {
		var paths []string
		for _, f := range e.Unheld {
			paths = append(paths, f.Path)
		}
		r.note("the lock %s does not know, and so nothing holds: %s", h.File, strings.Join(paths, ", "))
		r.opts.Notice("the lock %s does not hold %s: %s", h.File, strings.Join(paths, ", "), e.Unheld[0].A)
	}
	return nil
}

// sameAsBefore notes what a run that goes on depends on otherwise than when it began.
func (r *run) sameAsBefore() {
	before, err := Depends(r.dir)
	if err != nil {
		r.note("whether the run depends on the same things as before its stop is not known: %v", err)
		return
	}
	for _, f := range lock.Compare(before, r.facts).Differ {
		if f.Class > lock.Equivalent {
			r.note("resumed with another %s: it was %s and is %s (%s)", f.Path, f.A, f.B, f.Why)
		}
	}
}

// keepFacts writes down what the run depends on.
func (r *run) keepFacts() error {
	text, err := r.facts.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.dir, lockName), text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", lockName, err)
	}
	return nil
}

// learn gathers every fact. With asking, endpoints may be asked questions, too.
func (r *run) learn(ctx context.Context, asking bool) (*lock.Lock, error) {
	l := &lock.Lock{
		Version: lock.Version, Suite: r.suite.Name, Program: programFacts(), Data: r.suite.dataFacts(),
		Client: make(lock.Part), Volatile: make(lock.Part),
		Seeds: lock.Part{"run": lock.Known(strconv.FormatUint(r.manifest.Seed, 10))},
	}
	for name := range r.suite.Workloads.All() {
		l.Seeds["plan "+name] = lock.Known("sha256:" + r.variants[0].plans[name].Digest())
	}
	var err error
	if l.Test, err = r.suite.testFacts(); err != nil {
		return nil, err
	}
	r.clientFacts(l)
	for _, v := range r.variants {
		if err := r.variantFacts(ctx, l, v, asking); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// testFacts are digests of the parts of the suite as they are read, so that comments and
// spelling do not matter.
func (s *Suite) testFacts() (lock.Part, error) {
	out := make(lock.Part)
	var problem error
	add := func(name string, part any) {
		text, err := config.Encode(part)
		if err != nil {
			problem = fmt.Errorf("writing %s of the suite: %w", name, err)
			return
		}
		out[name] = lock.Known(lock.Digest(text))
	}
	for name, w := range s.Workloads.All() {
		add("workload "+name, w)
	}
	for _, c := range s.Checks {
		add("check "+c.Check.Name, c)
	}
	if len(s.Checks) > 0 {
		add("asking", s.Asking)
	}
	if s.Contract.Contract != nil {
		add("contract", s.Contract.Contract)
	}
	if p := s.Registry; p != nil {
		gates := p.Filled()
		gates.At = "somewhere"
		add("registry", gates)
	}
	out["blocks"] = lock.Known(strconv.Itoa(s.blocks()))
	out["stop"] = lock.Known(cmp.Or(s.Stop, "at the end"))
	return out, problem
}

// dataFacts are the digests of the files that the suite names.
func (s *Suite) dataFacts() lock.Part {
	out := make(lock.Part)
	for file, set := range s.sets {
		out[file] = lock.Known("sha256:" + set.Digest)
	}
	for file, data := range s.files {
		out[string(file)] = lock.Known(lock.Digest(data))
	}
	return out
}

// programFacts say which build measures.
func programFacts() lock.Part {
	out := lock.Part{"version": lock.Known(Version()), "binary": binary()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		out["modules"] = lock.NotKnown("the program was built without build information")
		return out
	}
	out["go"] = lock.Known(info.GoVersion)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			out["commit"] = lock.Known(s.Value)
		case "vcs.modified":
			out["modified"] = lock.Known(s.Value)
		}
	}
	var b strings.Builder
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		fmt.Fprintf(&b, "%s %s %s\n", m.Path, m.Version, m.Sum)
	}
	out["modules"] = lock.Known(lock.Digest([]byte(b.String())))
	return out
}

// binary is the digest of the running program, which says what version and commit of an
// unreleased build do not.
var binary = sync.OnceValue(func() lock.Fact {
	name, err := os.Executable()
	if err != nil {
		return lock.NotKnown("this system does not tell where the program lies")
	}
	f, err := os.Open(name)
	if err != nil {
		return lock.NotKnown("the program cannot be read")
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return lock.NotKnown("the program cannot be read")
	}
	return lock.Known("sha256:" + hex.EncodeToString(sum.Sum(nil)))
})

// clientFacts are of the machine that measures.
func (r *run) clientFacts(l *lock.Lock) {
	h := r.manifest.Host
	for _, name := range []string{"os", "arch", "cores", "gomaxprocs", "cpu", "memory"} {
		if v := h[name]; v != "" {
			l.Client[name] = lock.Known(v)
			continue
		}
		l.Client[name] = lock.NotKnown("this system does not tell")
	}
	if kernel := h["kernel"]; kernel != "" {
		l.Client["kernel"] = lock.Known(majorMinor(kernel))
		l.Volatile["kernel"] = lock.Known(kernel)
	} else {
		l.Client["kernel"] = lock.NotKnown("this system does not tell")
	}
	if name, err := os.Hostname(); err == nil {
		l.Volatile["host"] = lock.Known(name)
	}
}

// majorMinor cuts the patch level off: "6.8.0-31-generic" is 6.8.
func majorMinor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// requestFacts say how a variant is asked, beyond workloads and checks. Names of headers
// count, not what is in them; where it is reached is volatile.
func (v *variant) requestFacts() (lock.Part, error) {
	s := v.spec
	settings, err := json.Marshal([]any{s.Template, slices.Sorted(maps.Keys(s.Headers)), s.Timeout, s.Stall, s.Tokens, s.ResetCache})
	if err != nil {
		return nil, fmt.Errorf("writing how %s is asked: %w", v.name, err)
	}
	out := lock.Part{
		"model": lock.Known(s.Model), "api": lock.Known(cmp.Or(s.API, "chat")), "protocol": lock.Known(cmp.Or(s.Protocol, "http/1.1")),
		"request": lock.Known(lock.Digest(settings)),
	}
	for name, value := range s.About.info() {
		out[map[string]string{"family": "weights.family", "precision": "weights.precision", "engine": "engine.stated", "hardware": "hardware"}[name]] = lock.Known(value)
	}
	return out, nil
}
