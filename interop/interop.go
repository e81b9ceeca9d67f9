package interop

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// Format is a tool whose result files can be read.
type Format string

// The formats.
const (
	VLLM          Format = "vllm"           // vllm bench serve --save-result --save-detailed
	GuideLLM      Format = "guidellm"       // guidellm's JSON output, of 0.7 and of 0.5 and before
	AIPerf        Format = "aiperf"         // profile_export.jsonl, profile_export_aiperf.json
	InferencePerf Format = "inference-perf" // its lifecycle reports
	SGLang        Format = "sglang"         // bench_serving --output-file, with or without --output-details
)

// Formats returns all formats, in the order of their documentation.
func Formats() []Format { return []Format{VLLM, GuideLLM, AIPerf, InferencePerf, SGLang} }

// State is the state of an imported run in its manifest.
const State = "imported"

// Limits of what is read. They are far above the files of real runs.
const (
	MaxBytes  = 256 << 20 // of one file
	MaxRows   = 1_000_000 // requests of all files together
	MaxEvents = 8 << 20   // events of all files together
)

// Source is one file to import.
type Source struct {
	Name string // as errors and notes call it
	Data io.Reader
}

// Options say how to import. The zero value works.
type Options struct {
	Format  Format // "": found out from the first file
	Variant string // who was measured; "": "imported"
	Assay   string // version of the program, for the manifest
}

// Run is what files gave.
type Run struct {
	Format   Format
	Manifest record.Manifest // without an ID; its state is State
	Records  []record.Record // in order of their due instants
	Rows     int             // requests that the files list
	Skipped  int             // of them, those that made no sense; Manifest.Notes says why
}

// Import reads the files of one tool. They become one run: files and the
// benchmarks within them are workloads of it when they were asked for different
// loads, and blocks of one workload when they were asked for the same.
//
// An error is a config.Fault where it has a place in a file.
func Import(sources []Source, o Options) (*Run, error) {
	return within(limits{MaxBytes, MaxRows, MaxEvents}, sources, o)
}

// limits bound what is read.
type limits struct {
	bytes        int64
	rows, events int
}

func within(l limits, sources []Source, o Options) (*Run, error) {
	if o.Variant == "" {
		o.Variant = "imported"
	}
	if o.Format != "" && !slices.Contains(Formats(), o.Format) {
		return nil, fmt.Errorf("importing: format %q is not known\n  hint: use one of %s", clean(string(o.Format), 40), names())
	}
	p := parser{format: o.Format, limits: l, rows: l.rows, events: l.events, skipped: make(map[string]int)}
	for _, s := range sources {
		data, err := io.ReadAll(io.LimitReader(s.Data, l.bytes+1))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.Name, err)
		}
		if int64(len(data)) > l.bytes {
			return nil, fault(s.Name, fmt.Sprintf("the file is larger than %d bytes", l.bytes), "split it, or import its aggregates")
		}
		sum := sha256.Sum256(data)
		p.files = append(p.files, fmt.Sprintf("%s (%d bytes, SHA-256 %x)", clean(s.Name, 200), len(data), sum))
		if err := p.file(s.Name, data); err != nil {
			return nil, err
		}
	}
	if len(p.sources) == 0 {
		return nil, fmt.Errorf("importing: no file\n  hint: name the result files of one tool")
	}
	return p.run(o), nil
}

func fault(file, what, hint string) error {
	return config.Fault{File: file, Line: 1, Column: 1, What: what, Hint: hint}
}

// parser gathers what the files of one tool say.
type parser struct {
	format       Format
	limits       limits
	rows, events int // that may still be read
	read         int
	skipped      map[string]int // by reason
	reasons      []string       // in order of their first row
	files        []string
	sources      []*source
}

// source is one benchmark of one file: what a tool did in one go.
type source struct {
	file      string
	asked     string    // the load in few words; sources that were asked alike are blocks of one workload
	arrivals  string    // the same in more words
	scheduled bool      // its requests have a schedule of their own
	rate      float64   // asked requests per second; 0: not by rate
	poisson   bool      // asked for
	model     string    // who was asked
	version   string    // of the tool
	start     time.Time // wall clock at reference; zero: unknown
	elapsed   time.Duration
	requests  []request
	listed    int      // guidellm: requests that the file lists
	notes     []string // aggregates and everything else that the file says
}

// request is one row. Its record's instants count from the request's own start
// until the source is placed in the run.
type request struct {
	record  record.Record
	start   int64 // nanoseconds on the source's clock
	started bool
	wait    time.Duration // from the instant it was due to its start
	waited  bool
}

// file reads one file.
func (p *parser) file(name string, data []byte) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	literals(data)
	found, why := detect(data)
	if p.format == "" {
		if found == "" {
			return fault(name, why, "say which tool wrote it with --from: "+names())
		}
		p.format = found
	}
	if found != "" && found != p.format && !(p.format == VLLM && found == SGLang || p.format == SGLang && found == VLLM) {
		return fault(name, fmt.Sprintf("this is a file of %s, not of %s", found, p.format), "import the files of each tool on their own")
	}
	switch p.format {
	case VLLM, SGLang:
		return p.arrays(name, data)
	case GuideLLM:
		return p.guidellm(name, data)
	case AIPerf:
		return p.aiperf(name, data)
	default: // InferencePerf: within knows the format
		return p.aggregates(name, data)
	}
}

func names() string {
	var all []string
	for _, f := range Formats() {
		all = append(all, string(f))
	}
	return strings.Join(all, ", ")
}

// take accounts for one more row with so many events.
func (p *parser) take(d *document, path string, events int) error {
	p.read++
	p.rows--
	p.events -= events
	switch {
	case p.rows < 0:
		return d.fault(path, fmt.Sprintf("more than %d requests", p.limits.rows), "import fewer files at once")
	case p.events < 0:
		return d.fault(path, fmt.Sprintf("more than %d stream events", p.limits.events), "import fewer files at once")
	}
	return nil
}

// drop counts a row that made no sense.
func (p *parser) drop(reason string) {
	if p.skipped[reason] == 0 {
		p.reasons = append(p.reasons, reason)
	}
	p.skipped[reason]++
}

func (p *parser) add(s *source) { p.sources = append(p.sources, s) }

// mostKeys bounds how far into a file its format is looked for.
const mostKeys = 500

// detect tells a file's tool by the keys of its first JSON object.
func detect(data []byte) (f Format, why string) {
	keys := make(map[string]bool)
	d := newDocument("", data, 1)
	enough := fmt.Errorf("enough keys")
	err := d.object("", func(key, path string) error {
		keys[key] = true
		if len(keys) > mostKeys {
			return enough
		}
		return d.skip(path)
	})
	has := func(all ...string) bool {
		return !slices.ContainsFunc(all, func(k string) bool { return !keys[k] })
	}
	switch {
	case has("benchmarks"):
		return GuideLLM, ""
	case has("load_summary"), has("successes", "failures"):
		return InferencePerf, ""
	case has("metadata", "metrics"), has("aiperf_version"), has("input_config"), has("request_latency", "request_count"):
		return AIPerf, ""
	case has("total_output_tokens_retokenized"), has("random_range_ratio", "backend"), has("accept_length"), has("sharegpt_output_len"):
		return SGLang, ""
	case has("endpoint_type"), has("model_id", "num_prompts"), has("ttfts"), has("total_output_tokens", "request_throughput"):
		return VLLM, ""
	case err != nil && len(keys) == 0:
		return "", "this is not a JSON object"
	}
	return "", "no tool that is known writes a file with such keys"
}
