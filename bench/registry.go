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
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/baseline"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// About is what a suite or a user says of a variant, beyond what can be measured:
// which baselines it may be compared with, and where the files lie that it is made of.
type About struct {
	Family    string `yaml:"family" doc:"family of the model, such as llama-3.1-8b; the model's name if left out"`
	Precision string `yaml:"precision" doc:"of its weights, such as bf16 or fp8"`
	Engine    string `yaml:"engine" doc:"with its version, such as vllm 0.9.2; what its metrics say if left out"`
	Hardware  string `yaml:"hardware" doc:"class of the machine that serves, such as h100-sxm x2"`
	Weights   string `yaml:"weights" doc:"file or folder of the weights it serves, on this machine: their digest stands in the lock; see docs/reproducibility.md"`
	Tokenizer string `yaml:"tokenizer" doc:"file of its tokenizer, such as tokenizer.json, for its digest in the lock"`
	Template  string `yaml:"template" doc:"file of its chat template, for its digest in the lock"`
	Image     string `yaml:"image" doc:"digest of its container image, such as sha256:9f86…, for the lock"`
}

// info is what the manifest keeps for the key of a baseline; nil: nothing was said.
func (a About) info() map[string]string {
	out := map[string]string{"family": a.Family, "precision": a.Precision, "engine": a.Engine, "hardware": a.Hardware}
	maps.DeleteFunc(out, func(_, v string) bool { return v == "" })
	if len(out) == 0 {
		return nil
	}
	return out
}

// Snapshot is what a registry of baselines keeps of one variant of the run; "" is the
// variant that the run is about. What about says goes before what the run knows.
func (r *Result) Snapshot(variant string, about About) (baseline.Snapshot, error) {
	e, verdict := r.Evidence(), (*contract.Verdict)(nil)
	if variant == "" {
		variant = e.Candidate
	}
	var names []string
	for _, v := range r.Manifest.Variants {
		names = append(names, v.Name)
	}
	if !slices.Contains(names, variant) {
		return baseline.Snapshot{}, fmt.Errorf("taking a snapshot of %s: the run has no variant %q\n  hint: it has %s", r.Dir, variant, strings.Join(names, ", "))
	}
	if r.contract != nil && variant == e.Candidate {
		own := r.own
		verdict = &own
	}
	e.Candidate = variant
	key, err := r.key(variant, about)
	if err != nil {
		return baseline.Snapshot{}, err
	}
	digest, err := recordsDigest(r.Dir)
	if err != nil {
		return baseline.Snapshot{}, fmt.Errorf("taking a snapshot of %s: %w", r.Dir, err)
	}
	s := baseline.Source{Manifest: r.Manifest, Evidence: e, Verdict: verdict, Path: r.Dir, Records: digest, Key: key}
	if r.policy != nil {
		s.Also = r.policy.Filled().Quantities()
	}
	out, err := baseline.Take(s)
	if err == nil && out.Quarantine == "" {
		out.Quarantine = r.regressed(variant)
	}
	return out, err
}

// regressed says that the run failed against its baseline.
func (r *Result) regressed(variant string) string {
	if r.delta == nil || variant != r.Evidence().Candidate {
		return ""
	}
	for _, c := range r.delta.Results(*r.policy, r.Evidence()) {
		if c.Grade == contract.Fail {
			return "it failed: " + c.Reason
		}
	}
	return ""
}

// key says which runs the variant of this one may be compared with.
func (r *Result) key(variant string, about About) (baseline.Key, error) {
	m := r.Manifest
	var info record.VariantInfo
	for _, v := range m.Variants {
		if v.Name == variant {
			info = v
		}
	}
	engine := info.Engine["engine"]
	for _, s := range m.Engines {
		if s.Variant == variant && s.Engine != "dcgm" {
			engine = cmp.Or(engine, s.Engine)
		}
	}
	simulated := ""
	if info.Engine["engine"] == "sim" {
		simulated = "simulated"
	}
	digest, err := r.workloads()
	if err != nil {
		return baseline.Key{}, fmt.Errorf("taking a snapshot of %s: %w", r.Dir, err)
	}
	return baseline.Key{
		Workload:  digest,
		Family:    cmp.Or(about.Family, info.About["family"], info.Model, simulated),
		Precision: cmp.Or(about.Precision, info.About["precision"], baseline.Unstated),
		Engine:    cmp.Or(baseline.Major(cmp.Or(about.Engine, info.About["engine"], engine)), baseline.Unstated),
		Hardware:  cmp.Or(about.Hardware, info.About["hardware"], simulated),
	}, nil
}

// workloads is the digest of what was sent: the workloads as the resolved suite has
// them, whether prompts are salted, and the prompts of files; not the seed. "": the
// run does not tell.
func (r *Result) workloads() (string, error) {
	m := r.Manifest
	if m.Suite == "" {
		return "", nil
	}
	s := new(Suite)
	if err := config.Decode(filepath.Join(r.Dir, "manifest.json#suite"), []byte(m.Suite), s); err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "assay.workloads/1 salted %t\n", m.Salt != "")
	for name, w := range s.Workloads.All() {
		text, err := config.Encode(w)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %q\n", name, text)
	}
	for _, w := range m.Workloads {
		fmt.Fprintf(h, "%q %q\n", w.Name, w.Prompts)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// promptsDigest is that of all prompt files of the suite; "": it has none.
func (s *Suite) promptsDigest() string {
	if len(s.sets) == 0 {
		return ""
	}
	h := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(s.sets)) {
		fmt.Fprintf(h, "%q %s\n", file, s.sets[file].Digest)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// recordsDigest is the hex SHA-256 of the records' file.
func recordsDigest(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, "records.parquet"))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(filepath.Join(dir, "records.journal"))
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// registryTimeout bounds how long a run waits for its registry at its end.
const registryTimeout = time.Minute

// located fixes where the registry is, so that a wrong address fails before anything
// is sent. What is written down has no password.
func (r *run) located() error {
	text := r.opts.Registry
	if text == "" {
		if r.suite.Registry == nil {
			return nil
		}
		text = r.suite.Registry.At
	}
	at, err := baseline.Locate(text, r.opts.Getenv)
	if err != nil {
		return &SetupError{err}
	}
	var p baseline.Policy
	if r.suite.Registry != nil {
		p = *r.suite.Registry
	}
	p.At = at.String()
	p = p.Filled()
	suite := *r.suite
	suite.Registry = &p
	r.suite, r.registry = &suite, at
	return nil
}

// reachable opens the registry once before anything is sent.
func (r *run) reachable(ctx context.Context) error {
	if r.suite.Registry == nil {
		return nil
	}
	reg, err := baseline.Create(ctx, r.registry)
	if err != nil {
		return &SetupError{err}
	}
	return reg.Close()
}

// register compares the run with its baseline and adds it to the registry. What goes
// wrong makes the comparison inconclusive; the run itself is kept.
func (r *run) register(ctx context.Context, result *Result) {
	if r.suite.Registry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registryTimeout)
	defer cancel()
	d := &baseline.Delta{Schema: baseline.Schema, Registry: r.registry.String(), References: []baseline.Reference{}, Screens: []baseline.Screen{}}
	result.policy, result.delta = r.suite.Registry, d
	problem := func(err error) {
		d.Problem = strings.ReplaceAll(err.Error(), "\n  hint: ", "; ")
		d.Problem = strings.ReplaceAll(d.Problem, "\n", "; ")
	}
	s, err := result.Snapshot("", About{})
	if err != nil {
		problem(err)
		return
	}
	reg, err := baseline.Create(ctx, r.registry)
	if err != nil {
		problem(err)
		return
	}
	defer reg.Close()
	*d = baseline.Compare(ctx, reg, s, *result.policy)
	if s.Quarantine == "" {
		s.Quarantine = result.regressed(s.Variant)
	}
	if _, err := reg.Add(ctx, s, baseline.Change{Who: Who(r.opts.Getenv), At: time.Now(), Reason: "assay run"}); err != nil {
		problem(err)
		return
	}
	d.Snapshot = s.ID
}

// Who is the user, for the registry.
func Who(getenv func(string) string) string {
	if getenv != nil {
		for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
			if v := getenv(name); v != "" {
				return v
			}
		}
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}

const (
	deltaName = "delta.json"
	maxDelta  = 64 << 20
)

// readDelta reads what the run was compared with.
func (r *Result) readDelta() error {
	if r.policy == nil {
		return nil
	}
	r.delta = &baseline.Delta{Schema: baseline.Schema, Registry: r.policy.At, Problem: "the run kept no comparison with its baseline"}
	f, err := os.Open(filepath.Join(r.Dir, deltaName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the comparison of %s: %w", r.Dir, err)
	}
	defer f.Close()
	d := new(baseline.Delta)
	if err := json.NewDecoder(io.LimitReader(f, maxDelta)).Decode(d); err != nil {
		return fmt.Errorf("reading %s: %w\n  hint: move it away; the run is judged without its baseline then", filepath.Join(r.Dir, deltaName), err)
	}
	if d.Schema != baseline.Schema {
		return fmt.Errorf("reading %s: its form is %.40q, and this program knows %s\n  hint: use the version of assay that made it", filepath.Join(r.Dir, deltaName), d.Schema, baseline.Schema)
	}
	r.delta = d
	return nil
}
