package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// saturates is a client that is fit up to a rate, but for one trial in so many
// that something else disturbs; 0: none.
func saturates(at float64, disturbed int, tried *int) func(float64) (trial, error) {
	return func(rate float64) (trial, error) {
		*tried++
		t := trial{rate: rate, fit: rate <= at, events: rate * 10, streams: rate / 10, client: 0.4, server: 0.3, over: record.Overhead{Rate: rate, CPU: time.Millisecond}}
		if disturbed > 0 && *tried%disturbed == 0 {
			t.fit = false
		}
		if !t.fit {
			t.reason = "the client sent late"
		}
		return t, nil
	}
}

// TestClimbFindsTheCeiling finds a known ceiling from any start, within the
// steps of the search, in few trials.
func TestClimbFindsTheCeiling(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		at, first, tried := 2+random.Float64()*random.Float64()*20_000, 10+random.Float64()*400, 0
		disturbed := 0
		if random.IntN(2) == 0 {
			disturbed = 5
		}
		s := search{try: saturates(at, disturbed, &tried), first: first, most: topRate, scale: 2, say: func(string, ...any) {}}
		var found []climb
		for range 3 {
			one, err := s.climb(found)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, one)
		}
		c := s.sum(found)
		if got := c.Requests * 2; got > at || got < at/1.25 || c.Low > c.Requests || c.High < c.Requests || c.High*2 > at {
			t.Errorf("a ceiling of %.1f, sought from %.0f, is found at %.1f (%.1f to %.1f)", at, first, got, c.Low*2, c.High*2)
		}
		if c.AtLeast || c.EndedBy != "the client sent late" || c.Repeats != 3 || tried > 80 {
			t.Errorf("%d trials: %+v", tried, c)
		}
		if o := c.Overhead; o != nil && (o.Rate > c.Requests/2 || o.CPU != 2*time.Millisecond) {
			t.Errorf("overhead %+v of a ceiling of %.1f", o, c.Requests)
		}
	}
}

func TestClimbHasAnEnd(t *testing.T) {
	tried := 0
	s := search{try: saturates(1e9, 0, &tried), first: 100, most: topRate, scale: 1, say: func(string, ...any) {}}
	c, err := s.climb(nil)
	if sum := s.sum([]climb{c}); err != nil || !sum.AtLeast || sum.EndedBy != "" || sum.Requests > topRate {
		t.Errorf("a client without an end: %+v, %v", sum, err)
	}
	s.try = saturates(0.1, 0, &tried)
	_, err = s.climb(nil)
	if limit, ok := errors.AsType[*LimitError](err); !ok || !strings.Contains(limit.What, "unfit on this host at any rate: the client sent late") {
		t.Errorf("a client that is never fit: %v", err)
	}
	broken := errors.New("broken")
	s.try = func(float64) (trial, error) { return trial{}, broken }
	if _, err := s.climb(nil); !errors.Is(err, broken) {
		t.Errorf("a client that cannot be driven: %v", err)
	}
}

func TestProbeTriesOnlyWhatCanBe(t *testing.T) {
	for _, tt := range []struct {
		rate, ceiling float64
		atLeast       bool
		tried         int // at most
	}{{500, 2000, true, 1}, {1500, 2000, false, 20}, {1e6, 2000, false, 20}, {1e6, 1e9, true, 20}} {
		tried, highest := 0, 0.0
		client := saturates(tt.ceiling, 0, &tried)
		s := search{first: 100, most: 10_000, scale: 2, say: func(string, ...any) {}, try: func(rate float64) (trial, error) {
			highest = max(highest, rate)
			return client(rate)
		}}
		c, err := s.probe(tt.rate)
		if err != nil || c.AtLeast != tt.atLeast || tried > tt.tried || highest > s.most {
			t.Errorf("%v requests/s of a client that ends at %v: %+v, %v, in %d trials up to %v", tt.rate, tt.ceiling/2, c, err, tried, highest)
		}
	}
}

func TestJudgeTrialNamesWhatEndedIt(t *testing.T) {
	good := record.Record{
		Outcome: record.OK, Phase: record.Measured, Due: record.At(0), Admit: record.At(0), Send: record.At(0), Reused: true, EOF: record.At(10 * time.Millisecond),
		Events: []record.Event{{At: record.At(time.Millisecond), Kind: record.KindContent, Lag: 10}},
	}
	bad := good
	bad.Outcome, bad.Detail = record.ResetMid, "gone"
	fit := record.Certificate{Fit: true}
	for _, tt := range []struct {
		records []record.Record
		c       record.Certificate
		client  time.Duration
		want    string
	}{
		{[]record.Record{good}, fit, 0, ""},
		{[]record.Record{good}, record.Certificate{Reasons: []string{"late"}}, 0, "late"},
		{[]record.Record{good}, fit, time.Hour, "of its CPU"},
		{[]record.Record{good, bad}, fit, -1, "1 of 2 requests failed (reset_mid_stream: gone)"},
		{nil, fit, 0, "nothing was sent"},
	} {
		got := judgeTrial(tt.records, tt.c, time.Second, tt.client, 0)
		if got.fit != (tt.want == "") || !strings.Contains(got.reason, tt.want) {
			t.Errorf("fit %v: %q, want %q", got.fit, got.reason, tt.want)
		}
		if len(tt.records) > 0 && (!got.stamps || got.over.TTFTP50 != time.Millisecond || got.events != float64(len(tt.records))) {
			t.Errorf("%+v", got)
		}
	}
}

func TestShapeOf(t *testing.T) {
	for text, want := range map[string]record.Shape{
		"{arrivals: {constant: 5/s}, for: 1s, prompts: {synthetic: 100}, output: 48}":               {Stream: true, Events: 64, EventBytes: 4, Gap: wholeAnswer / 64, PromptBytes: 1024},
		"{arrivals: {constant: 5/s}, for: 1s, prompts: {synthetic: 10}, output: 1, stream: false}":  {Events: 1, EventBytes: 4, PromptBytes: 64},
		"{arrivals: {concurrency: 3}, requests: 9, prompts: {synthetic: 10}}":                       {Stream: true, Events: 256, EventBytes: 4, Gap: leastGap, PromptBytes: 64},
		"{arrivals: {constant: 5/s}, for: 1s, prompts: {synthetic: 10}, output: 3000, salt: false}": {Stream: true, Events: 4096, EventBytes: 4, Gap: leastGap, PromptBytes: 64},
	} {
		var spec workload.Spec
		if err := config.Decode("w.yaml", []byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		p, err := workload.New("w", spec, nil, 7, "salt")
		if err != nil {
			t.Fatal(err)
		}
		got := ShapeOf(p)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		sent, scale := measurable(got)
		if float64(sent.Events)*scale != float64(got.Events) || sent.Stream && (sent.Events > mostEvents || sent.Gap < leastGap || sent.Gap > mostGap) {
			t.Errorf("%+v is measured as %+v times %v", got, sent, scale)
		}
	}
}

// kept is a ceiling of this shape, as if just measured.
func kept(shape record.Shape, requests float64) *record.Ceiling {
	return &record.Ceiling{
		Shape: shape, Requests: requests, Low: requests * 0.9, High: requests * 1.1, Events: requests * float64(shape.Events), Streams: 10,
		EndedBy: "the client sent late", Repeats: 3, At: time.Now().UTC().Truncate(time.Second), Took: time.Second, Cores: 2, Client: 0.5, Server: 0.3,
		Overhead: &record.Overhead{Rate: requests / 2, TTFTP50: time.Millisecond, TTFTP99: time.Millisecond},
	}
}

func TestCeilingsAreKeptForAWeek(t *testing.T) {
	c := &Calibrator{Cache: filepath.Join(t.TempDir(), "assay")}
	shape, other := DefaultShape(), paced(record.Shape{Events: 1, PromptBytes: 8})
	if got := c.Known(shape); got != nil {
		t.Errorf("an empty cache knows %+v", got)
	}
	want := kept(shape, 1000)
	if err := c.Keep(want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, c.Known(shape)); diff != "" {
		t.Errorf("Known (-want +got):\n%s", diff)
	}
	if got := c.Known(other); got != nil {
		t.Errorf("another shape has %+v", got)
	}
	for _, age := range []time.Duration{8 * 24 * time.Hour, -time.Hour} {
		old := kept(shape, 1000)
		old.At = old.At.Add(-age)
		if err := c.Keep(old); err != nil {
			t.Fatal(err)
		}
		if got := c.Known(shape); got != nil {
			t.Errorf("a ceiling of %v ago is believed", age)
		}
	}
	var k keptCeiling
	data, err := os.ReadFile(c.path(shape))
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*keptCeiling){
		"as it is":          func(*keptCeiling) {},
		"another program":   func(k *keptCeiling) { k.Program = "0123" },
		"another host":      func(k *keptCeiling) { k.Host["cpu"] = "abacus" },
		"another shape":     func(k *keptCeiling) { k.Ceiling.Shape = other },
		"another schema":    func(k *keptCeiling) { k.Schema = "assay.ceiling/2" },
		"on a busy machine": func(k *keptCeiling) { k.Ceiling.Client, k.Ceiling.Server = 0.1, 0.1 },
		"an hour ago":       func(k *keptCeiling) { k.Ceiling.At = k.Ceiling.At.Add(-time.Hour) },
		"no rate":           func(k *keptCeiling) { k.Ceiling.Requests = 0 },
		"nothing":           func(k *keptCeiling) { k.Ceiling = nil },
	} {
		mine := k
		ceiling := *kept(shape, 1000)
		mine.Ceiling, mine.Host = &ceiling, hostFacts()
		change(&mine)
		data, err := json.Marshal(mine)
		if err == nil {
			err = os.WriteFile(c.path(shape), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Known(shape); (got != nil) != slices.Contains([]string{"as it is", "an hour ago"}, name) {
			t.Errorf("%s: known %v", name, got)
		}
	}
	if left, err := filepath.Glob(filepath.Join(c.Cache, ".*")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func FuzzParseCeiling(f *testing.F) {
	good, err := json.Marshal(keptCeiling{CeilingSchema, "ab", map[string]string{"os": "linux"}, kept(DefaultShape(), 100)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema":"assay.ceiling/1","ceiling":{"requests_per_s":1e400}}`))
	f.Add([]byte(`{"schema":"assay.ceiling/1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := parseCeiling(data)
		if err != nil {
			return
		}
		if c := k.Ceiling; !(c.Requests > 0 && c.Low > 0 && c.Low <= c.Requests && c.Requests <= c.High) || c.Repeats < 1 {
			t.Errorf("%q is taken for a ceiling: %+v", data, c)
		}
		again, err := json.Marshal(k)
		if err != nil {
			t.Fatalf("%q cannot be written again: %v", data, err)
		}
		if _, err := parseCeiling(again); err != nil {
			t.Errorf("%q is refused when written again: %v", data, err)
		}
	})
}

// nullServer is this test binary as a null server.
func nullServer(ctx context.Context, shape record.Shape) *exec.Cmd {
	text, err := json.Marshal(shape)
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0], string(text))
	cmd.Env = append(os.Environ(), role+"=null")
	return cmd
}

// TestCalibrationOfThisMachine measures real ceilings. How high they are is the
// machine's affair; that events and streams agree with them is not.
func TestCalibrationOfThisMachine(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("half a minute of load: set ASSAY_SLOW=1, or run make test-slow")
	}
	dir := t.TempDir()
	c := &Calibrator{Null: nullServer, Cache: filepath.Join(dir, "cache"), Dir: filepath.Join(dir, "runs"), Say: t.Logf, Quick: 8 * time.Second}
	got, err := c.Measure(t.Context(), DefaultShape())
	if limit, ok := errors.AsType[*LimitError](err); ok {
		t.Skipf("this machine is too busy to measure anything: %v", limit)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, overhead %+v", got, got.Overhead)
	if perRequest := got.Events / got.Requests; got.Requests > 200 && (perRequest < 40 || perRequest > 90) { // 64, of arrivals at random
		t.Errorf("%.1f events a request, want about 64", perRequest)
	}
	if got.Low > got.Requests || got.Requests > got.High || !got.AtLeast && got.EndedBy == "" || got.Streams <= 0 || got.Cores < 1 || got.Took <= 0 {
		t.Errorf("%+v", got)
	}
	want := got
	if disturbed(got) {
		want = nil
	}
	if diff := cmp.Diff(want, c.Known(DefaultShape())); diff != "" {
		t.Errorf("what is kept differs:\n%s", diff)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".assay-doctor-*"))
	if len(left) > 0 || err != nil {
		t.Errorf("journals left behind: %v, %v", left, err)
	}
	short := paced(record.Shape{Events: 1, EventBytes: 4, PromptBytes: 64})
	probed, err := c.Probe(t.Context(), short, 20)
	if limit, ok := errors.AsType[*LimitError](err); ok {
		t.Skipf("this machine is too busy to probe: %v", limit)
	}
	if err != nil || probed.AtLeast && probed.Requests != 20 {
		t.Errorf("probed %+v, %v", probed, err)
	}
}

func TestNullServerThatCannotStart(t *testing.T) {
	for name, cmd := range map[string]func(context.Context) *exec.Cmd{
		"no such program": func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "/nowhere/assay") },
		"says nonsense":   func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "echo", "http://evil:80") },
		"says nothing":    func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "true") },
	} {
		c := &Calibrator{Dir: t.TempDir(), Null: func(ctx context.Context, _ record.Shape) *exec.Cmd { return cmd(ctx) }}
		if _, err := c.Measure(t.Context(), DefaultShape()); err == nil || !strings.Contains(fmt.Sprint(err), "null server") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
