package bench

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	Workloads config.Map[workload.Spec] `yaml:"workloads,required" doc:"what is sent to each variant, one workload after the other"`
	Blocks    int                       `yaml:"blocks" min:"1" max:"1000" doc:"blocks that each workload is cut into, so that the variants take turns (A B B A); 4 if left out"`
	Contract  ContractRef               `yaml:"contract" doc:"the contract: a file, or its clauses in place"`

	file string
	sets map[string]*corpus.Set
}

const (
	defaultBlocks = 4
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
	API      string            `yaml:"api" oneof:"chat,completions" doc:"which API to use; chat if left out"`
	Headers  map[string]string `yaml:"headers" doc:"headers added to each request"`
	Protocol string            `yaml:"protocol" oneof:"http/1.1,h2" doc:"HTTP version; http/1.1 if left out"`
	Proxy    string            `yaml:"proxy" doc:"http(s)://host:port of a proxy; the environment is not asked"`
	CA       string            `yaml:"ca" doc:"PEM file of certificates to trust instead of the system's"`
	Timeout  config.Duration   `yaml:"timeout" min:"1ms" doc:"of a whole request; 10m if left out"`
	Stall    config.Duration   `yaml:"stall" min:"1ms" doc:"longest silence within an answer; 2m if left out"`
	Tokens   string            `yaml:"tokens" oneof:"usage,events" doc:"usage (the server counts) or events (each payload event is one token); usage if left out"`
	Sim      *sim.Config       `yaml:"sim" doc:"a simulated engine instead of an endpoint"`
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
	if v.Sim != nil {
		for _, key := range []string{"key", "proxy", "ca", "protocol"} {
			if n.Has(key) {
				n.At(key).Fault("does not go with sim", "remove it; a simulated engine is served on loopback over HTTP/1.1")
			}
		}
		return
	}
	if err := (llm.Target{URL: v.URL}).Validate(); err != nil {
		n.At("url").Fault(strings.ReplaceAll(err.Error(), "\n", "; "), "write http://host:port/v1")
		return
	}
	if err := (llm.Target{URL: v.URL, Proxy: v.Proxy, Headers: v.Headers, Protocol: v.Protocol}).Validate(); err != nil {
		n.Fault(strings.ReplaceAll(err.Error(), "\n", "; "), "")
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
		n.At("name").Fault("is not a name", "use at most 63 of a-z, A-Z, 0-9, - _ and .")
	}
	if s.Variants.Len() > maxVariants {
		n.At("variants").Fault(fmt.Sprintf("has %d variants; at most %d take turns", s.Variants.Len(), maxVariants), "measure them in several runs")
	}
	for _, key := range []string{"variants", "workloads"} {
		if n.At(key).IsMapping() && len(n.At(key).Pairs()) == 0 {
			n.At(key).Fault("is empty", "add one entry")
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
// config.Faults when it is the suite or the contract that is wrong.
func Load(path string) (*Suite, error) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the suite's folder: %w", err)
	}
	defer root.Close()
	data, err := readSome(root, name)
	if err != nil {
		return nil, fmt.Errorf("reading the suite: %w", err)
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
		return nil, fmt.Errorf("opening the folder of the prompts: %w", err)
	}
	defer root.Close()
	return parse(file, data, root)
}

func parse(path string, data []byte, root *os.Root) (*Suite, error) {
	s := &Suite{file: path, sets: make(map[string]*corpus.Set)}
	var top *config.Node
	if err := config.Decode(path, data, s, config.Root(&top)); err != nil {
		return nil, err
	}
	if err := s.readContract(top, root); err != nil {
		return nil, err
	}
	return s, s.readSets(top, root)
}

func (s *Suite) readContract(top *config.Node, root *os.Root) error {
	if s.Contract.File == "" {
		return nil
	}
	data, err := readSome(root, s.Contract.File)
	if err != nil {
		return config.Faults{top.At("contract").Mark(reason(err), "write a file below the suite's folder, or the clauses in place")}
	}
	s.Contract.Contract = new(contract.Contract)
	return config.Decode(filepath.Join(filepath.Dir(s.file), s.Contract.File), data, s.Contract.Contract)
}

// readSets reads each prompt set once.
func (s *Suite) readSets(top *config.Node, root *os.Root) error {
	var faults config.Faults
	for name, spec := range s.Workloads.All() {
		file, format := spec.Prompts.File, spec.Prompts.Format
		if file == "" || s.sets[file] != nil {
			continue
		}
		at := top.At("workloads").At(name).At("prompts").At("file")
		set, err := readSet(root, file, format)
		if err != nil {
			faults = append(faults, at.Mark(reason(err), "write a JSONL file of prompts below the suite's folder"))
			continue
		}
		s.sets[file] = set
	}
	if faults != nil {
		return faults
	}
	return nil
}

func readSet(root *os.Root, file, format string) (*corpus.Set, error) {
	if root == nil {
		return nil, fmt.Errorf("opening %s: this suite stands alone", file)
	}
	f, err := root.Open(filepath.FromSlash(file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return corpus.Read(file, f, format)
}

// maxFile bounds a configuration file; config has its own, tighter limits.
const maxFile = 8 << 20

func readSome(root *os.Root, name string) ([]byte, error) {
	if root == nil {
		return nil, fmt.Errorf("opening %s: this suite stands alone", name)
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("is a folder")}
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// reason says in a few words why a file could not be read.
func reason(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// Schema returns the JSON Schema of a suite.
func Schema() ([]byte, error) {
	return config.Schema(Suite{}, "https://assay-llm.github.io/schema/suite-1.json", "Assay suite, version 1")
}
