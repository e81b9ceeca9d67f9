package bench

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
)

// planned prepares a run of a workload against nobody, and does its preflight.
func planned(t *testing.T, workload string, o Options) (*run, []string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "suite.yaml")
	text := fmt.Sprintf("version: 1\nname: s\nvariants: {candidate: {url: \"http://127.0.0.1:1/v1\"}}\nworkloads: {chat: %s}\n", workload)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var notices []string
	o.Notice = func(format string, a ...any) { notices = append(notices, fmt.Sprintf(format, a...)) }
	r := &run{suite: s, opts: o}
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}
	err = r.preflight(t.Context())
	return r, notices, err
}

const hurried = "{arrivals: {constant: 600/s}, for: 5s, prompts: {synthetic: 4}, output: 8}"

// TestHalfOfTheCeilingIsTheLimit plants ceilings; no load is made.
func TestHalfOfTheCeilingIsTheLimit(t *testing.T) {
	for _, tt := range []struct {
		ceiling float64
		force   bool
		refused bool
	}{{1300, false, false}, {1200, false, false}, {1190, false, true}, {1190, true, false}, {100, false, true}} {
		c := &Calibrator{Cache: t.TempDir()} // it has no null server to measure with
		first, _, _ := planned(t, hurried, Options{})
		shape := ShapeOf(first.variants[0].plans["chat"])
		if err := c.Keep(kept(shape, tt.ceiling)); err != nil {
			t.Fatal(err)
		}
		r, _, err := planned(t, hurried, Options{Calibrator: c, Force: tt.force})
		info := r.manifest.Workloads[0]
		if info.Ceiling == nil || info.Ceiling.Requests != tt.ceiling || info.Peak != 600 {
			t.Errorf("ceiling %v: the manifest says %+v, peak %v", tt.ceiling, info.Ceiling, info.Peak)
		}
		limit, refused := errors.AsType[*LimitError](err)
		if refused != tt.refused || err != nil && !refused {
			t.Errorf("ceiling %v, force %v: %v", tt.ceiling, tt.force, err)
		}
		if refused && (!strings.Contains(limit.Error(), "chat plans up to 600 requests/s, above half of what this client carried here") || !strings.Contains(limit.Hint, "--force")) {
			t.Errorf("refused by %q", limit)
		}
		if forced := strings.Contains(info.Why, "forced"); forced != (tt.force && tt.ceiling < 1200) {
			t.Errorf("ceiling %v, force %v: %q", tt.ceiling, tt.force, info.Why)
		}
	}
}

// TestSlowPlansAreNotCalibrated pins which plans pay for a calibration: it fails
// when tried here, and the run goes on with that said.
func TestSlowPlansAreNotCalibrated(t *testing.T) {
	for text, want := range map[string]string{
		"{arrivals: {poisson: 5/s}, for: 20s, prompts: {synthetic: 4}, output: 64}":        "not measured: the planned peak takes an estimated",
		"{arrivals: {constant: 90/s}, for: 5s, prompts: {synthetic: 4}, output: 64}":       "not measured: the planned peak takes an estimated",
		"{arrivals: {concurrency: 50}, requests: 100, prompts: {synthetic: 4}, output: 8}": "a closed loop",
		hurried: "it could not be measured: ",
	} {
		c := &Calibrator{Null: nullServer, Cache: t.TempDir(), Dir: "/dev/null/nowhere"}
		r, _, err := planned(t, text, Options{Calibrator: c})
		if info := r.manifest.Workloads[0]; err != nil || info.Ceiling != nil || !strings.HasPrefix(info.Why, want) {
			t.Errorf("%s: %q, %v, want %q", text, info.Why, err, want)
		}
	}
}

func TestWhatNoDescriptorIsLeftForIsRefused(t *testing.T) {
	_, limit := host.Descriptors()
	if limit < 0 || limit > 1<<20 {
		t.Skipf("a limit of %d descriptors is too high to plan for, or unknown", limit)
	}
	users := fmt.Sprintf("{arrivals: {concurrency: %d}, for: 1s, prompts: {synthetic: 4}, output: 8}", limit)
	_, _, err := planned(t, users, Options{})
	refused, ok := errors.AsType[*LimitError](err)
	if !ok || !strings.Contains(refused.What, fmt.Sprintf("%d descriptors at most; %d requests in flight need %d", limit, limit, limit+host.Reserve)) || !strings.Contains(refused.Hint, "ulimit") {
		t.Errorf("%d users with %d descriptors: %v", limit, limit, err)
	}
	if _, notices, err := planned(t, users, Options{Force: true}); err != nil || !strings.Contains(strings.Join(notices, "\n"), "descriptors at most") {
		t.Errorf("forced: %v, and said is %q", err, notices)
	}
	asked := fmt.Sprintf("{arrivals: {constant: 10/s}, for: %ds, prompts: {synthetic: 4}, output: 8, cap: %d}", limit, limit)
	if _, _, err := planned(t, asked, Options{}); err == nil {
		t.Errorf("a cap of %d with %d descriptors is accepted", limit, limit)
	}
}

// TestNeed pins what a plan may have in flight.
func TestNeed(t *testing.T) {
	for text, want := range map[string]host.Need{
		"{arrivals: {concurrency: 50}, for: 10s, prompts: {synthetic: 4}, output: 8}":               {Streams: 50, Sure: true, Records: -1},
		"{arrivals: {concurrency: 50}, requests: 20, prompts: {synthetic: 4}, output: 8}":           {Streams: 20, Sure: true, Records: 20 * recordBytes(record.Shape{Stream: true, Events: 8})},
		"{arrivals: {constant: 10/s}, for: 10s, prompts: {synthetic: 4}, output: 8}":                {Streams: 100, Rate: 10, Records: 100 * recordBytes(record.Shape{Stream: true, Events: 8})},
		"{arrivals: {constant: 10/s}, for: 10000s, prompts: {synthetic: 4}, output: 8}":             {Streams: load.DefaultCap, Rate: 10, Records: 100_000 * recordBytes(record.Shape{Stream: true, Events: 8})},
		"{arrivals: {constant: 10/s}, for: 10s, prompts: {synthetic: 4}, output: 8, cap: 7}":        {Streams: 7, Sure: true, Rate: 10, Records: 100 * recordBytes(record.Shape{Stream: true, Events: 8})},
		"{arrivals: {constant: 10/s}, for: 10s, prompts: {synthetic: 4}, output: 8, stream: false}": {Streams: 100, Rate: 10, Records: 100 << 10},
	} {
		r, _, err := planned(t, text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := r.variants[0].plans["chat"]
		if got := need(p, p.Spec(), false); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if got := cost(record.Shape{Stream: true, Events: 64}, 100); math.Abs(got-0.37) > 1e-9 {
		t.Errorf("100 requests/s of 64 events cost %v of a CPU", got)
	}
}
