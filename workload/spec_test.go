package workload

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/assay-llm/assay/config"
)

func on(b bool) *bool { return &b }

func minutes(n int) config.Duration { return config.Duration(time.Duration(n) * time.Minute) }

func TestSpecDecodes(t *testing.T) {
	half := config.Duration(500 * time.Millisecond)
	zero := 0.0
	text := func(n config.Count) Prompts { return Prompts{Synthetic: Fixed(n)} }
	tests := []struct {
		in   string
		want Spec
	}{
		{
			"arrivals: {poisson: 8/s}\nfor: 5m\nprompts: {synthetic: 512}\n",
			Spec{Arrivals: Arrivals{Poisson: fixed(8)}, For: config.Duration(5 * time.Minute), Prompts: text(512)},
		},
		{
			"arrivals: {concurrency: 16, think: 2s, stagger: 500ms}\nrequests: 1k\nprompts: {synthetic: 512}\nsalt: false\nstream: true\n",
			Spec{Arrivals: Arrivals{Concurrency: 16, Think: Fixed(config.Duration(2 * time.Second)), Stagger: &half}, Requests: 1000, Prompts: text(512), Salt: on(false), Stream: on(true)},
		},
		{
			"arrivals: {constant: {ramp: {from: 1/s, to: 600/min}}}\nfor: 5m\nprompts: {file: a.jsonl, format: sharegpt, order: sequential}\n",
			Spec{Arrivals: Arrivals{Constant: &Rate{Ramp: &Ramp{1, 10}}}, For: config.Duration(5 * time.Minute), Prompts: Prompts{File: "a.jsonl", Format: "sharegpt", Order: "sequential"}},
		},
		{
			"arrivals: {stairs: {from: 1/s, step: 1/s, every: 30s, to: 10/s}, process: constant}\nfor: 5m\nprompts: {synthetic: 4k}\n",
			Spec{Arrivals: Arrivals{Stairs: &Stairs{1, 1, config.Duration(30 * time.Second), 10}, Process: "constant"}, For: config.Duration(5 * time.Minute), Prompts: text(4000)},
		},
		{
			"arrivals: {poisson: 8/s}\nfor: 5m\nprompts: {synthetic: {lognormal: {median: 400, sigma: 0.8, max: 4k}}}\noutput: {empirical: {values: [1, 2k], weights: [1, 0.5]}}\nprefix: {tokens: 512, groups: 4}\nwarmup: {requests: 10}\ntemperature: 0\ncap: 256\ndrain: 30s\nlabels: {tier: gold}\nignore_eos: true\n",
			Spec{
				Arrivals: Arrivals{Poisson: fixed(8)}, For: config.Duration(5 * time.Minute), Prompts: Prompts{Synthetic: Length{Kind: "lognormal", Value: 400, Sigma: 0.8, Max: 4000}},
				Output: Length{Kind: "empirical", Values: []config.Count{1, 2000}, Weights: []float64{1, 0.5}}, Prefix: Prefix{Tokens: 512, Groups: 4}, WarmUp: WarmUp{10}, Temperature: &zero, Cap: 256,
				Drain: config.Duration(30 * time.Second), Labels: map[string]string{"tier": "gold"}, IgnoreEOS: true,
			},
		},
		{
			"arrivals: {concurrency: 1, think: {uniform: {min: 0s, max: 3s}}}\nrequests: 9\nprompts: {synthetic: [1, 2]}\noutput: {normal: {mean: 100, stddev: 20, min: 10}}\n",
			Spec{
				Arrivals: Arrivals{Concurrency: 1, Think: Pause{Kind: "uniform", Max: config.Duration(3 * time.Second)}}, Requests: 9, Prompts: Prompts{Synthetic: Length{Kind: "empirical", Values: []config.Count{1, 2}}},
				Output: Length{Kind: "normal", Value: 100, Stddev: 20, Min: 10},
			},
		},
		{
			"arrivals: {concurrency: 1, think: {exponential: 3s}}\nrequests: 9\nprompts: {synthetic: {fixed: 3}}\noutput: {uniform: {min: 1, max: 3}}\n",
			Spec{Arrivals: Arrivals{Concurrency: 1, Think: Pause{Kind: "exponential", Value: config.Duration(3 * time.Second)}}, Requests: 9, Prompts: text(3), Output: Length{Kind: "uniform", Min: 1, Max: 3}},
		},
		{
			"arrivals: {gamma: {rate: 8/s, cv: 2}}\nfor: 5m\nprompts: {synthetic: 4}\n",
			Spec{Arrivals: Arrivals{Gamma: &Renewal{Rate: *fixed(8), CV: 2}}, For: minutes(5), Prompts: text(4)},
		},
		{
			"arrivals: {weibull: {rate: {ramp: {from: 1/s, to: 10/s}}, shape: 0.6}}\nfor: 5m\nprompts: {synthetic: 4}\n",
			Spec{Arrivals: Arrivals{Weibull: &Renewal{Rate: Rate{Ramp: &Ramp{1, 10}}, Shape: 0.6}}, For: minutes(5), Prompts: text(4)},
		},
		{
			"arrivals: {bursts: {rate: 50/s, base: 2/s, on: 1m, off: 2m}, process: constant}\nfor: 5m\nprompts: {synthetic: 4}\n",
			Spec{Arrivals: Arrivals{Bursts: &Bursts{50, 2, minutes(1), minutes(2)}, Process: "constant"}, For: minutes(5), Prompts: text(4)},
		},
		{
			"arrivals: {pulses: {requests: 20, every: 1m}}\nfor: 5m\nprompts: {synthetic: 4}\n",
			Spec{Arrivals: Arrivals{Pulses: &Pulses{Requests: 20, Every: minutes(1)}}, For: minutes(5), Prompts: text(4)},
		},
		{
			"arrivals: {poisson: {diurnal: {mean: 8/s, swing: 60%, peak: 14m, period: 24m, start: 8m}}}\nfor: 5m\nprompts: {synthetic: 4}\n",
			Spec{Arrivals: Arrivals{Poisson: &Rate{Diurnal: &Diurnal{Mean: 8, Swing: 0.6, Peak: minutes(14), Period: minutes(24), Start: minutes(8)}}}, For: minutes(5), Prompts: text(4)},
		},
		{
			"arrivals: {diurnal: {rates: [5/s, 3/s, 0/s]}}\nfor: 5m\nprompts: {synthetic: 4}\n",
			Spec{Arrivals: Arrivals{Diurnal: &Diurnal{Rates: []config.Rate{5, 3, 0}}}, For: minutes(5), Prompts: text(4)},
		},
		{
			"arrivals: {poisson: 8/s}\nrequests: 9\nmix: [{tenant: gold, share: 70%, prompts: {synthetic: 20}, labels: {tier: paid}}, {tenant: free, share: 30%, preset: chat}]\n",
			Spec{Arrivals: Arrivals{Poisson: fixed(8)}, Requests: 9, Mix: []Part{{Tenant: "gold", Share: 0.7, Prompts: text(20), Labels: map[string]string{"tier": "paid"}}, {Tenant: "free", Share: 0.3, Preset: "chat"}}},
		},
		{
			"arrivals: {poisson: 8/s}\nrequests: 9\nprompts: {synthetic: 4}\nsessions: {turns: {exponential: {mean: 4, max: 20}}, think: 2m, history: false, context: 32k}\n",
			Spec{
				Arrivals: Arrivals{Poisson: fixed(8)}, Requests: 9, Prompts: text(4),
				Sessions: &Sessions{Turns: Length{Kind: "exponential", Value: 4, Max: 20}, Think: Fixed(minutes(2)), History: on(false), Context: 32_000},
			},
		},
		{
			"arrivals: {poisson: 8/s}\nrequests: 9\nprompts: {file: a.jsonl}\nsessions: {}\n",
			Spec{Arrivals: Arrivals{Poisson: fixed(8)}, Requests: 9, Prompts: Prompts{File: "a.jsonl"}, Sessions: &Sessions{}},
		},
		{
			"arrivals: {poisson: 8/s}\nrequests: 9\nprompts: {synthetic: 4}\ncancel: {share: 5%, during: prefill}\n",
			Spec{Arrivals: Arrivals{Poisson: fixed(8)}, Requests: 9, Prompts: text(4), Cancel: Cancels{{Share: 0.05, During: "prefill"}}},
		},
		{
			"arrivals: {poisson: 8/s}\nrequests: 9\nprompts: {synthetic: 4}\ncancel: [{share: 5%, after: 1m}, {share: 7%, after_tokens: {uniform: {min: 1, max: 9}}}]\n",
			Spec{
				Arrivals: Arrivals{Poisson: fixed(8)}, Requests: 9, Prompts: text(4),
				Cancel: Cancels{{Share: 0.05, After: Fixed(minutes(1))}, {Share: 0.07, AfterTokens: Length{Kind: "uniform", Min: 1, Max: 9}}},
			},
		},
		{
			"arrivals: {poisson: 8/s}\nrequests: 9\nprompts: {synthetic: 4}\njitter: {pareto: {min: 1s, alpha: 1.5, max: 1m}}\npriority: -3\n",
			Spec{
				Arrivals: Arrivals{Poisson: fixed(8)}, Requests: 9, Prompts: text(4),
				Jitter: Pause{Kind: "pareto", Min: config.Duration(time.Second), Alpha: 1.5, Max: minutes(1)}, Priority: -3,
			},
		},
		{
			"arrivals: {poisson: 8/s}\nrequests: 9\nprompts: {synthetic: 400}\nprefix: {hit: 60%, groups: 2}\n",
			Spec{Arrivals: Arrivals{Poisson: fixed(8)}, Requests: 9, Prompts: text(400), Prefix: Prefix{Hit: 0.6, Groups: 2}},
		},
		{
			"preset: chat\nrequests: 9\n",
			Spec{Preset: "chat", Requests: 9},
		},
		{
			"preset: agent\nrequests: 9\narrivals: {poisson: 8/s}\nprompts: {synthetic: {quantiles: {percents: [0, 50, 100], values: [1, 20, 4k]}}}\noutput: 7\ncorrelation: -0.5\nprefix: {share: 40%, groups: 9, reuse: 8}\n",
			Spec{
				Preset: "agent", Requests: 9, Arrivals: Arrivals{Poisson: fixed(8)}, Prompts: Prompts{Synthetic: Length{Kind: "quantiles", Percents: []float64{0, 50, 100}, Values: []config.Count{1, 20, 4000}}},
				Output: Fixed[config.Count](7), Correlation: -0.5, Prefix: Prefix{Share: 0.4, Groups: 9, Reuse: 8},
			},
		},
		{
			"arrivals: {replay: {}}\nprompts: {file: conv.csv}\n",
			Spec{Arrivals: Arrivals{Replay: &Replay{}}, Prompts: Prompts{File: "conv.csv"}},
		},
		{
			"arrivals: {replay: {speed: 2.5, spread: 1m}}\nprompts: {file: conv.jsonl, format: mooncake}\nfor: 2m\n",
			Spec{Arrivals: Arrivals{Replay: &Replay{Speed: 2.5, Spread: minutes(1)}}, For: minutes(2), Prompts: Prompts{File: "conv.jsonl", Format: "mooncake"}},
		},
		{
			"arrivals: {mmpp: {states: [{rate: 2/s, dwell: 1m}, {rate: 40/s, dwell: 2m}]}}\nrequests: 100\nprompts: {synthetic: 4}\n",
			Spec{Arrivals: Arrivals{MMPP: &MMPP{[]State{{2, minutes(1)}, {40, minutes(2)}}}}, Requests: 100, Prompts: text(4)},
		},
	}
	schema := compiled(t)
	for _, tt := range tests {
		var got Spec
		if err := config.Decode("suite.yaml", []byte(tt.in), &got); err != nil {
			t.Errorf("%s%v", tt.in, err)
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%sdiffers (-want +got):\n%s", tt.in, d)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%sValidate: %v", tt.in, err)
		}
		if err := schema.Validate(map[string]any{"w": document(t, tt.in)}); err != nil {
			t.Errorf("%sthe schema refuses it: %v", tt.in, err)
		}
		roundTrip(t, got)
	}
}

// roundTrip writes a Spec and reads it back.
func roundTrip(t testing.TB, s Spec) {
	t.Helper()
	out, err := config.Encode(s)
	if err != nil {
		t.Fatalf("encoding %+v: %v", s, err)
	}
	var again Spec
	if err := config.Decode("again.yaml", out, &again); err != nil {
		t.Fatalf("reading back:\n%s%v", out, err)
	}
	if d := cmp.Diff(s, again, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("round trip through\n%sdiffers (-want +got):\n%s", out, d)
	}
}

// document reads YAML as other tools do, for the schema.
func document(t testing.TB, text string) any {
	t.Helper()
	var x any
	if err := yaml.Unmarshal([]byte(text), &x); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	b, err := config.Schema(struct {
		W Spec `yaml:"w,required"`
	}{}, "https://example.org/workload", "workload")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("https://example.org/workload", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://example.org/workload")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaRefuses(t *testing.T) {
	schema := compiled(t)
	for _, text := range []string{
		"for: 5m\nprompts: {synthetic: 512}\n",
		"arrivals: {poisson: 8}\nfor: 5m\nprompts: {synthetic: 512}\n",
		"arrivals: {poisson: {ramp: {from: 1/s}}}\nfor: 5m\nprompts: {synthetic: 512}\n",
		"arrivals: {gamma: {cv: 2}}\nfor: 5m\nprompts: {synthetic: 512}\n",
		"arrivals: {poisson: {bursts: {rate: 5/s, on: 1s}}}\nfor: 5m\nprompts: {synthetic: 512}\n",
		"arrivals: {mmpp: {states: [{rate: 5/s}]}}\nfor: 5m\nprompts: {synthetic: 512}\n",
		"arrivals: {poisson: 8/s}\nfor: 5\nprompts: {synthetic: 512}\n",
		"arrivals: {poisson: 8/s}\nfor: 5m\nprompts: {synthetic: {zipf: 2}}\n",
		"arrivals: {poisson: 8/s}\nfor: 5m\nprompts: {synthetic: {uniform: {min: 1}}}\n",
		"arrivals: {poisson: 8/s}\nfor: 5m\nprompts: {synthetic: 512}\nsalt: yes please\n",
		"arrivals: {poisson: 8/s}\nfor: 5m\nprompts: {synthetic: 512}\nlables: {a: b}\n",
	} {
		if err := schema.Validate(map[string]any{"w": document(t, text)}); err == nil {
			t.Errorf("the schema accepts\n%s", text)
		}
	}
}

// fault is a broken workload and what is said of it.
type fault struct{ name, yaml, want string }

// faults reads testdata/faults.txtar: after a comment, files of the name
// NAME.yaml, each followed by NAME.want.
func faults(t testing.TB) (comment string, all []fault) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "faults.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split("\n"+strings.TrimSuffix(string(b), "\n"), "\n-- ")
	for _, part := range parts[1:] {
		name, text, _ := strings.Cut(part, " --\n")
		if text != "" {
			text += "\n"
		}
		if name, ok := strings.CutSuffix(name, ".yaml"); ok {
			all = append(all, fault{name: name, yaml: text})
			continue
		}
		if last := &all[len(all)-1]; name == last.name+".want" {
			last.want = text
			continue
		}
		t.Fatalf("%s does not belong to the file before it", name)
	}
	return strings.TrimPrefix(parts[0], "\n"), all
}

// TestSpecFaults: each broken workload has just this message. Run with -update
// to rewrite them.
func TestSpecFaults(t *testing.T) {
	comment, all := faults(t)
	if len(all) < 40 {
		t.Errorf("only %d cases", len(all))
	}
	out := comment + "\n"
	for _, f := range all {
		var s Spec
		err := config.Decode("suite.yaml", []byte(f.yaml), &s)
		if err == nil {
			t.Errorf("%s is accepted", f.name)
			continue
		}
		if _, ok := errors.AsType[config.Faults](err); !ok {
			t.Errorf("%s: the error is a %T", f.name, err)
		}
		got := err.Error() + "\n"
		if d := cmp.Diff(f.want, got); d != "" && !*update {
			t.Errorf("%s differs (-want +got):\n%s", f.name, d)
		}
		out += "-- " + f.name + ".yaml --\n" + f.yaml + "-- " + f.name + ".want --\n" + got
	}
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", "faults.txtar"), []byte(out), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzSpec: whatever decodes is valid, survives a round trip, and makes a plan
// whose stripes agree.
func FuzzSpec(f *testing.F) {
	for _, s := range specs {
		f.Add([]byte(s))
	}
	_, all := faults(f)
	for _, broken := range all {
		f.Add([]byte(broken.yaml))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var s Spec
		if err := config.Decode("suite.yaml", in, &s); err != nil {
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("accepted, but Validate says: %v", err)
		}
		roundTrip(t, s)
		all := sets(t)
		if file := s.Prompts.File; file != "" {
			kind := "chat.jsonl"
			if s.Arrivals.Replay != nil {
				kind = "moon.jsonl"
				s.Arrivals.Replay.Start = 0 // the trace is short
			}
			all[file] = sets(t)[kind]
		}
		p, err := New("chat", s, all, 42, "salt")
		if err != nil {
			t.Fatal(err)
		}
		// Lengths are cut for the fuzzer's sake; texts of megabytes are legal.
		if s.Prefix.Tokens > 1000 || s.Prompts.Synthetic.Set() && s.Prompts.Synthetic.Mean() > 10_000 {
			return
		}
		want := take(p.All(), 9)
		for w := range 3 {
			for _, got := range take(p.Stripe(w, 3), 3) {
				if got.Index < int64(len(want)) && !cmp.Equal(got, want[got.Index]) {
					t.Fatalf("shot %d of worker %d differs", got.Index, w)
				}
			}
		}
	})
}
