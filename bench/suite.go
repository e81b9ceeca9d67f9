package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/assay-llm/assay/baseline"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// Suite says what to test. Load reads one; the zero Suite tests nothing.
type Suite struct {
	Version   int                       `yaml:"version,required" doc:"version of this format: 1"`
	Name      string                    `yaml:"name,required" doc:"name of the suite, for reports and run directories"`
	Seed      *uint64                   `yaml:"seed" doc:"seed of the plan; chosen and recorded when left out"`
	Variants  config.Map[Variant]       `yaml:"variants,required" doc:"who is measured, one to four of them; baseline and candidate are compared"`
	Workloads config.Map[workload.Spec] `yaml:"workloads" doc:"what is sent to each variant, one workload after the other; a suite has workloads, checks or both"`
	Blocks    int                       `yaml:"blocks" min:"1" max:"1000" doc:"blocks that each workload is cut into, so that the variants take turns (A B B A); 4 if left out, 12 with stop: early"`
	Stop      string                    `yaml:"stop" oneof:"early" doc:"early: look at the evidence while the run goes on, and stop as soon as the contract is decided; it goes to its end if left out"`
	Profile   string                    `yaml:"profile" oneof:"quick,standard,full,version" doc:"a built-in profile of checks with their clauses, beside what stands here: see assay profiles"`
	Checks    []CheckRef                `yaml:"checks" doc:"what is asked and judged about the answers of each variant, after the workloads"`
	Asking    Asking                    `yaml:"asking" doc:"how fast and how much checks ask"`
	Contract  ContractRef               `yaml:"contract" doc:"the contract: a file, or its clauses in place"`
	Registry  *baseline.Policy          `yaml:"registry" doc:"the registry of baselines that each run is compared with and added to; see docs/baselines.md"`

	file  string
	sets  map[string]*corpus.Set
	files map[check.FileRef][]byte // that checks read themselves
	sums  *sync.Map                // digests of files of weights, by fileState: a search for capacity makes many runs
}

const (
	defaultBlocks = 4
	earlyBlocks   = 12 // of a run that may stop early: two for each look
	maxVariants   = 4
)

// Baseline and Candidate are the names of the variants that are compared.
const (
	Baseline  = "baseline"
	Candidate = "candidate"
)

// Variant is a servable version of a service: an endpoint, or a simulated engine
// that the run starts itself.
type Variant struct {
	URL      string            `yaml:"url" doc:"http(s)://host:port/v1 of an OpenAI-compatible server"`
	Model    string            `yaml:"model" doc:"model name sent with each request"`
	Key      config.Secret     `yaml:"key" doc:"API key: env:NAME or file:PATH"`
	API      string            `yaml:"api" oneof:"chat,completions,messages,responses,ollama,tgi,embeddings,rerank,template" doc:"which API to use: OpenAI's chat, completions, responses or embeddings, Anthropic's messages, ollama, tgi, rerank, or template for any other; chat if left out"`
	Template *llm.Template     `yaml:"template" doc:"how to speak to a server of another API, at the url as it is"`
	Headers  map[string]string `yaml:"headers" doc:"headers added to each request; a value may be env:NAME or file:PATH, and of a header with a secret it must be"`
	Protocol string            `yaml:"protocol" oneof:"http/1.1,h2" doc:"HTTP version; http/1.1 if left out"`
	Proxy    string            `yaml:"proxy" doc:"http(s)://host:port of a proxy, or env:NAME or file:PATH of one with a password; the environment is not asked"`
	CA       string            `yaml:"ca" doc:"PEM file of certificates to trust instead of the system's"`
	Timeout  config.Duration   `yaml:"timeout" min:"1ms" doc:"of a whole request; 10m if left out"`
	Stall    config.Duration   `yaml:"stall" min:"1ms" doc:"longest silence within an answer; 2m if left out"`
	Tokens   string            `yaml:"tokens" oneof:"usage,events" doc:"usage (the server counts) or events (each payload event is one token); usage if left out"`
	Sim      *sim.Config       `yaml:"sim" doc:"a simulated engine instead of an endpoint"`

	Metrics    MetricsAddress  `yaml:"metrics" doc:"address of the engine's Prometheus metrics, http(s)://host:port/metrics, or off; /metrics at the host of url if left out, where they may be missing"`
	Price      *contract.Price `yaml:"price" doc:"what its tokens cost, for what a clause that is not decided would cost"`
	GPUMetrics string          `yaml:"gpu_metrics" doc:"address of the metrics of dcgm-exporter for the GPUs of the engine, http(s)://host:9400/metrics"`
	ResetCache bool            `yaml:"reset_cache" doc:"have the engine empty its prefix cache before each workload, and prove with a canary that it did"`
	About      About           `yaml:"about" doc:"what is known of it: only runs of the same model family, precision, engine and hardware are compared with a registered baseline"`
}

// CheckConfig reports what does not fit together.
func (v *Variant) CheckConfig(n *config.Node) {
	switch {
	case v.URL == "" && v.Sim == nil:
		n.Fault("has neither url nor sim", "write url: http://host:port/v1, or sim: {} for a simulated engine")
		return
	case v.URL != "" && v.Sim != nil:
		n.At("sim").Fault("stands beside url", "keep one of them")
		return
	}
	v.checkHeaders(n.At("headers"))
	v.checkAPI(n)
	v.checkMetrics(n.At("metrics"))
	v.checkGPUs(n.At("gpu_metrics"))
	if v.Sim != nil {
		for _, key := range []string{"key", "proxy", "ca", "protocol"} {
			if n.Has(key) {
				n.At(key).Fault("does not go with sim", "remove it; a simulated engine is served on loopback over HTTP/1.1")
			}
		}
		return
	}
	v.checkURL(n.At("url"))
	v.checkProxy(n.At("proxy"))
}

// checkAPI reports what does not go with the API.
func (v *Variant) checkAPI(n *config.Node) {
	switch {
	case v.Sim != nil && !slices.Contains([]string{"", llm.APIChat, llm.APICompletions}, v.API):
		n.At("api").Fault("does not go with sim", "remove it; a simulated engine speaks chat and completions")
	case v.API == llm.APITemplate && v.Template == nil:
		n.At("api").Fault("has no template to go by", "add template: with a request and the paths of the text; docs/protocols.md has an example")
	case v.Template == nil:
	case v.API != llm.APITemplate:
		n.At("template").Fault("stands beside another api", "write api: template, or remove it")
	case v.Template.Request != "" && len(v.Template.Text) > 0: // else said already
		if err := v.Template.Validate(); err != nil {
			complain(n.At("template"), err, "", "docs/protocols.md has an example")
		}
	}
}

// prices are what the variants' tokens cost, where the suite says it.
func (s *Suite) prices() map[string]contract.Price {
	prices := make(map[string]contract.Price)
	for name, v := range s.Variants.All() {
		if v.Price != nil {
			prices[name] = *v.Price
		}
	}
	return prices
}

// ConfigSchema asks for either url or sim beside what the fields ask for.
func (Variant) ConfigSchema() map[string]any {
	type variantFields Variant // without ConfigSchema
	either := func(key string) any { return map[string]any{"required": []any{key}} }
	return map[string]any{"allOf": []any{config.SchemaOf(variantFields{})}, "oneOf": []any{either("url"), either("sim")}}
}

// someURL is a good URL, to have other parts of a target checked with.
const someURL = "http://127.0.0.1"

func (v *Variant) checkURL(n *config.Node) {
	if !strings.Contains(v.URL, "://") {
		hint := "write http://host:port/v1"
		if !strings.ContainsAny(v.URL, "@?#") { // what may hold a secret is not repeated
			hint = "write http://" + v.URL
		}
		n.Fault("does not start with http:// or https://", hint)
		return
	}
	if err := (llm.Target{URL: v.URL}).Validate(); err != nil {
		complain(n, err, "url: ", "write http://host:port/v1")
		return
	}
	checkQuery(n, v.URL)
}

// checkQuery refuses an address with a secret in its query.
func checkQuery(n *config.Node, address string) {
	if u, err := url.Parse(address); err == nil {
		for name := range u.Query() {
			if secretName.MatchString(name) {
				n.Fault("its query holds a secret, which would be kept with the run", "write key: env:NAME, or a header with env:NAME as its value")
				return
			}
		}
	}
}

func (v *Variant) checkProxy(n *config.Node) {
	if v.Proxy == "" {
		return
	}
	if isReference(v.Proxy) {
		n.Decode(new(config.Secret))
		return
	}
	const hint = "write http://host:port, or env:NAME or file:PATH of a text such as http://user:password@host:port"
	if u, err := url.Parse(v.Proxy); err == nil && u.User != nil {
		n.Fault("holds a password, which would be kept with the run", hint)
		return
	}
	target := llm.Target{URL: v.URL, Proxy: v.Proxy, Protocol: v.Protocol}
	if (llm.Target{URL: v.URL}).Validate() != nil {
		target.URL = someURL // said already
	}
	if err := target.Validate(); err != nil {
		complain(n, err, "proxy: ", hint)
	}
}

// secretName matches names of headers and parameters whose values are secrets.
var secretName = regexp.MustCompile(`(?i)(^|[-_.])(auth|authorization|key|apikey|token|secret|cookie|password|signature|sig)($|[-_.])`)

func (v *Variant) checkHeaders(n *config.Node) {
	for _, name := range slices.Sorted(maps.Keys(v.Headers)) {
		at, value := n.At(name), v.Headers[name]
		if isReference(value) {
			at.Decode(new(config.Secret))
			continue
		}
		if err := (llm.Target{URL: someURL, Headers: map[string]string{name: value}}).Validate(); err != nil {
			complain(at, err, "", "use letters, digits and - in the name, and one line of text as the value")
			continue
		}
		if secretName.MatchString(name) {
			at.Fault("a header of this name holds a secret, which would be kept with the run (its value is not shown)",
				"put the whole value into an environment variable and write env:NAME; replace the secret if this file was shared")
		}
	}
}

// isReference reports whether a text refers to a secret.
func isReference(text string) bool {
	return strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:")
}

// complain reports each line of an error at a node, without the prefix, which
// the node's path says already. What stands behind a semicolon is the next step.
func complain(n *config.Node, err error, prefix, hint string) {
	for line := range strings.Lines(err.Error()) {
		what, advice, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), prefix), "; ")
		if !found {
			advice = hint
		}
		if form, ok := strings.CutPrefix(advice, "want "); ok {
			advice = "write " + form
		}
		n.Fault(what, advice)
	}
}

// ContractRef is a contract in a file of its own, or in place.
type ContractRef struct {
	File     string             // relative to the suite; "": in place
	Contract *contract.Contract // nil: none is demanded, or the file is not read yet
}

// DecodeConfig reads a path, a contract or a list of clauses.
func (c *ContractRef) DecodeConfig(n *config.Node) {
	switch {
	case n.IsMapping():
		c.Contract = new(contract.Contract)
		n.Decode(c.Contract)
	case n.IsSequence():
		n.Fault("wants a mapping, got a list", "write contract: {clauses: [...]}, or the name of a file")
	case n.Kind() != config.Text:
		n.Fault(fmt.Sprintf("wants the name of a file or a mapping, got %s", cmp.Or(n.Scalar(), "no value")), "write contract: contract.yaml, contract: {clauses: [...]}, or remove the key")
	default:
		if s, ok := n.Text(); ok {
			if c.File = s; s == "" {
				n.Fault("wants the name of a file, got empty text", "write contract: contract.yaml, or remove the key")
			}
		}
	}
}

// ConfigSchema describes a path or a contract.
func (ContractRef) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{
		map[string]any{"type": "string", "minLength": 1},
		config.SchemaOf(contract.Contract{}),
	}}
}

// MarshalYAML writes the contract in place, wherever it came from.
func (c ContractRef) MarshalYAML() (any, error) {
	if c.Contract != nil {
		return c.Contract, nil
	}
	return c.File, nil
}

// IsZero reports whether there is no contract.
func (c ContractRef) IsZero() bool { return c.File == "" && c.Contract == nil }

// CheckConfig reports what does not fit together.
func (s *Suite) CheckConfig(n *config.Node) {
	if s.Version != 1 {
		n.At("version").Fault(fmt.Sprintf("is %d, but this program reads version 1", s.Version), "write version: 1")
	}
	if !plainName(s.Name) {
		n.At("name").Fault("is not the name of a suite", "use at most 63 of a-z, A-Z, 0-9, - _ and .")
	}
	if s.Variants.Len() > maxVariants {
		n.At("variants").Fault(fmt.Sprintf("has %d variants; at most %d take turns", s.Variants.Len(), maxVariants), "measure them in several runs")
	}
	if _, _, problem := roles(s.Variants.Keys()); problem != "" && (n.Has("contract") || n.Has("profile")) {
		n.At("variants").Fault(problem+": the contract would not know which one to judge", "rename the one that may go live to candidate, and the one to compare it with to baseline")
	}
	for _, key := range []string{"variants", "workloads"} {
		if n.At(key).IsMapping() && len(n.At(key).Pairs()) == 0 {
			n.At(key).Fault("is empty", "add one entry")
		}
	}
	if s.Stop != "" && !n.Has("contract") && !n.Has("profile") {
		n.At("stop").Fault("has nothing to stop at: there is no contract that could be decided", "add contract:, or remove stop")
	}
	if !n.Has("workloads") && !n.Has("checks") && !n.Has("profile") {
		n.Fault("has neither workloads nor checks", "write workloads: with what to send, checks: with what to ask, or profile: quick")
	}
	s.checkPriorities(n.At("workloads"))
	s.checkChecks(n.At("checks"))
}

// checkPriorities reports priorities that a variant's API cannot express.
func (s *Suite) checkPriorities(n *config.Node) {
	for name, w := range s.Workloads.All() {
		at := n.At(name).At("priority")
		ranked := w.Priority != 0
		for i := range w.Mix {
			if w.Mix[i].Priority != 0 {
				ranked, at = true, n.At(name).At("mix")
			}
		}
		for variant, v := range s.Variants.All() {
			if ranked && !slices.Contains([]string{"", llm.APIChat, llm.APICompletions}, v.API) {
				at.Fault(fmt.Sprintf("the variant %s speaks the API %s, which has no priority", variant, v.API), "remove it, or measure by api: chat")
				break
			}
		}
	}
}

func plainName(s string) bool {
	return s != "" && len(s) <= 63 && s[0] != '.' && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r))
	})
}

// Load reads a suite with the contract and the prompt sets that it names. Those
// are looked up below the suite's folder and nowhere else. The error is a
// config.Faults when it is the suite or what it names that is wrong.
func Load(path string) (*Suite, error) {
	dir, name := filepath.Split(path)
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the suite %s: %w\n  hint: name a file such as suite.yaml", path, reason(err))
	}
	defer root.Close()
	data, err := readSome(root, name)
	if err != nil {
		return nil, fmt.Errorf("reading the suite %s: %w\n  hint: name a file such as suite.yaml", path, reason(err))
	}
	return parse(path, data, root)
}

// Parse reads a suite from memory. The prompt sets and the contract that it names
// are looked up below the folder dir; if that is "", it can name none.
func Parse(file string, data []byte, dir string) (*Suite, error) {
	if dir == "" {
		return parse(file, data, nil)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of the prompts %s: %w", dir, reason(err))
	}
	defer root.Close()
	return parse(file, data, root)
}

// parse reads the suite; if it is sound, it reads what it names, and reports all
// that is wrong with that together.
func parse(path string, data []byte, root *os.Root) (*Suite, error) {
	s := &Suite{file: path, sets: make(map[string]*corpus.Set), files: make(map[check.FileRef][]byte), sums: new(sync.Map)}
	var top *config.Node
	if err := config.Decode(path, data, s, config.Root(&top)); err != nil {
		return nil, err
	}
	faults := s.readSets(top, root)
	faults = append(faults, s.readCheckFiles(root)...)
	own, err := s.readContract(top, root)
	faults = append(faults, own...)
	faults.Sort()
	if theirs, ok := errors.AsType[config.Faults](err); ok { // of the contract's own file
		faults = append(faults, theirs...)
	} else if err != nil {
		return nil, err
	}
	faults = append(faults, s.addProfiles(top)...)
	faults = append(faults, s.Contract.Contract.Strangers(s.places())...)
	faults = append(faults, s.Contract.Contract.Declare(s.checked(), checkNames())...)
	if len(faults) > 0 {
		return nil, faults
	}
	return s, nil
}

// readContract reads the contract's file. Its faults are those of the suite; the
// error is what is wrong in the file.
func (s *Suite) readContract(top *config.Node, root *os.Root) (config.Faults, error) {
	name := s.Contract.File
	if name == "" {
		return nil, s.refer(root, ".")
	}
	data, err := readSome(root, name)
	if err != nil {
		return config.Faults{top.At("contract").Mark(fmt.Sprintf("reading %s: %v", name, reason(err)), "name a file in the suite's folder or below it, or write the clauses in place")}, nil
	}
	s.Contract.Contract = new(contract.Contract)
	if err := config.Decode(filepath.Join(filepath.Dir(s.file), name), data, s.Contract.Contract); err != nil {
		return nil, err
	}
	return nil, s.refer(root, path.Dir(filepath.ToSlash(name)))
}

// refer reads the registered values that the contract names. They stand below the
// contract's own folder.
func (s *Suite) refer(root *os.Root, dir string) error {
	return s.Contract.Contract.Refer(func(name string) ([]byte, error) {
		data, err := readSome(root, path.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, reason(err))
		}
		return data, nil
	})
}

// readSets reads each prompt set once.
func (s *Suite) readSets(top *config.Node, root *os.Root) (faults config.Faults) {
	first := make(map[string]string) // file: the workload that it was read for
	for name, spec := range s.Workloads.All() {
		file, format := spec.Prompts.File, spec.Prompts.Format
		if file == "" {
			continue
		}
		at := top.At("workloads").At(name).At("prompts")
		if other, again := first[file]; again {
			if o, _ := s.Workloads.Get(other); o.Prompts.Format != format {
				faults = append(faults, at.At("format").Mark(fmt.Sprintf("%s is read in another format for workload %s", file, other), "write the same format in both"))
			}
			continue
		}
		first[file] = name
		set, err := readSet(root, file, format)
		if err != nil {
			faults = append(faults, s.setFaults(at.At("file"), file, err)...)
			continue
		}
		s.sets[file] = set
	}
	return append(faults, s.readCheckSets(func(at *config.Node, file, format string) config.Faults {
		set, err := readSet(root, file, format)
		if err != nil {
			return s.setFaults(at, file, err)
		}
		s.sets[file] = set
		return nil
	})...)
}

// setFaults reports what is wrong with a prompt set where the suite names it:
// each bad row by its file and line.
func (s *Suite) setFaults(at *config.Node, file string, err error) (faults config.Faults) {
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, err := range errs {
		f, ok := errors.AsType[*corpus.Fault](err)
		if !ok {
			faults = append(faults, at.Mark(fmt.Sprintf("reading %s: %v", file, reason(err)), "name a JSONL file in the suite's folder or below it"))
			continue
		}
		place, hint := filepath.Join(filepath.Dir(s.file), f.File), cmp.Or(f.Hint, "mend the file, or leave such rows out")
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		faults = append(faults, at.Mark(place+": "+f.What, hint))
	}
	return faults
}

func readSet(root *os.Root, file, format string) (*corpus.Set, error) {
	f, err := open(root, file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return corpus.Read(file, f, format)
}

// maxFile bounds a configuration file; config has its own, tighter limits.
const maxFile = 8 << 20

func readSome(root *os.Root, name string) ([]byte, error) {
	f, err := open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// open opens a plain file below root. Anything else is refused before it is
// opened, since opening a pipe waits for its writer.
func open(root *os.Root, name string) (*os.File, error) {
	if root == nil {
		return nil, errors.New("this suite stands alone and can name no file")
	}
	info, err := root.Stat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no plain file")
	}
	return root.Open(filepath.FromSlash(name))
}

// reason says in a few words why a file could not be read, without its name.
func reason(err error) error {
	p, ok := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case ok && strings.Contains(p.Err.Error(), "escapes"): // os.Root has no error to compare with
		return errors.New("it lies outside of the suite's folder")
	case ok:
		return p.Err
	}
	return err
}

// Schema returns the JSON Schema of a suite. It asks for workloads, checks or a profile beside
// what the fields ask for.
func Schema() ([]byte, error) {
	fields, err := config.Schema(Suite{}, "https://assay-llm.github.io/schema/suite-1.json", "Assay suite, version 1")
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(fields))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return nil, fmt.Errorf("describing a suite: %w", err)
	}
	asks := func(key string) any { return map[string]any{"required": []any{key}} }
	root["anyOf"] = []any{asks("workloads"), asks("checks"), asks("profile")}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("describing a suite: %w", err)
	}
	return b.Bytes(), nil
}
