package report

import (
	"encoding/xml"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

func estimate(v, lo, hi float64) stat.Estimate {
	return stat.Estimate{Value: v, Lo: lo, Hi: hi, Confidence: .95, N: 100, Effective: 100}
}

func TestFiguresPrint(t *testing.T) {
	inf := math.Inf(1)
	over := estimate(inf, 3e8, inf)
	over.Over, over.Warnings = 9, []stat.Warning{{Code: stat.CodeOver, Text: "x"}}
	fact := estimate(3, 3, 3)
	fact.Method = "exact, of this run only"
	for _, tt := range []struct {
		unit record.Unit
		est  stat.Estimate
		want string
	}{
		{record.Nanoseconds, estimate(412e6, 391e6, 440e6), "412 ms [391, 440]"},
		{record.Nanoseconds, estimate(14.2e6, 14e6, 14.51e6), "14.2 ms [14.0, 14.5]"},
		{record.Nanoseconds, estimate(999.6e6, 9e8, 1.1e9), "1.00 s [0.90, 1.10]"},
		{record.Nanoseconds, estimate(9.996e6, 9e6, 11e6), "10.0 ms [9.0, 11.0]"},
		{record.Nanoseconds, estimate(1234e9, 1200e9, 1300e9), "1,234 s [1,200, 1,300]"},
		{record.Nanoseconds, estimate(850, 800, 900), "850 ns [800, 900]"},
		{record.Nanoseconds, estimate(0, 0, 0), "0 ms [0, 0]"},
		{record.Nanoseconds, estimate(5e6, 1e3, 9e6), "5.00 ms [0.00100, 9.00]"},
		{record.Nanoseconds, estimate(5e6, 1e6, inf), "5.00 ms [1.00, –]"},
		{record.Nanoseconds, estimate(5e6, -inf, inf), "5.00 ms [–, –]"},
		{record.Nanoseconds, over, "∞ [300 ms, ∞]"},
		{record.Nanoseconds, estimate(inf, inf, inf), "∞ [∞, ∞]"},
		{record.Nanoseconds, estimate(math.NaN(), -inf, inf), "–"},
		{record.Proportion, estimate(.0012, .001, .0014), "0.120 % [0.100, 0.140]"},
		{record.Proportion, estimate(0, 0, .0125), "0 % [0, 1.25]"},
		{record.TokensPerSecond, estimate(18432, 18000, 19000), "18,432 tok/s [18,000, 19,000]"},
		{contract.RequestsPerSecond, estimate(7.991, 7, 9), "7.99 req/s [7.00, 9.00]"},
		{record.Points, estimate(-.5, -.6, -.4), "−0.500 [−0.600, −0.400]"},
		{record.Requests, fact, "3.00 req"},
	} {
		values := []float64{tt.est.Value}
		if math.IsInf(tt.est.Value, 0) {
			values = append(values, tt.est.Lo)
		}
		value, interval := scaleOf(tt.unit, values...).figure(tt.est)
		if got := strings.TrimSpace(value + " " + interval); got != tt.want {
			t.Errorf("figure(%v) = %q, want %q", tt.est, got, tt.want)
		}
	}
}

func TestChangesPrint(t *testing.T) {
	inf := math.Inf(1)
	for _, tt := range []struct {
		kind contract.ChangeKind
		unit record.Unit
		est  stat.Estimate
		want string
	}{
		{contract.ChangeRatio, record.Nanoseconds, estimate(1.12, 1.098, 1.141), "+12.0 % [+9.8, +14.1]"},
		{contract.ChangeRatio, record.Nanoseconds, estimate(.9, .8, 1.01), "−10.0 % [−20.0, +1.0]"},
		{contract.ChangeRatio, record.Nanoseconds, estimate(3.5, 3, 4.2), "+250 % [+200, +320]"},
		{contract.ChangeRatio, record.Nanoseconds, estimate(1, .999, 1.001), "0.00 % [−0.10, +0.10]"},
		{contract.ChangeRatio, record.Nanoseconds, estimate(1.12, -inf, inf), "+12.0 % [–, –]"},
		{contract.ChangeRatio, record.Nanoseconds, estimate(inf, 2, inf), "∞ [+100 %, –]"},
		{contract.ChangeDifference, record.Proportion, estimate(.0003, -.002, .003), "+0.03 pt [−0.20, +0.30]"},
		{contract.ChangeDifference, record.Proportion, estimate(-.013, -.031, .005), "−1.3 pt [−3.1, +0.5]"},
		{contract.ChangeDifference, record.Nanoseconds, estimate(5e6, 1e6, 9e6), "+5.00 ms [+1.00, +9.00]"},
	} {
		value, interval := changeText(tt.kind, tt.unit, tt.est)
		if got := strings.TrimSpace(value + " " + interval); got != tt.want {
			t.Errorf("changeText(%v) = %q, want %q", tt.est, got, tt.want)
		}
	}
}

func TestNeedsPrint(t *testing.T) {
	got := map[string]string{}
	m, records := usual().build()
	for _, need := range []string{"p99(ttft) <= 800ms", "p95(tpot) <= baseline * 1.05", "share(failed) <= baseline + 0.5 points", "mean(tpot) <= baseline + 2ms", "rate(output_tokens) >= baseline * 0.9", "rate(requests) > 7/s", "share(failed) < 1%"} {
		v := contract.Evaluate(agreed(t, need), contract.Evidence{Records: records, Windows: m.Windows, Baseline: "baseline", Candidate: "candidate"})
		got[need] = needText(v.Clauses[0])
	}
	want := map[string]string{
		"p99(ttft) <= 800ms":                     "≤ 800 ms",
		"p95(tpot) <= baseline * 1.05":           "≤ +5 %",
		"share(failed) <= baseline + 0.5 points": "≤ +0.5 pt",
		"mean(tpot) <= baseline + 2ms":           "≤ +2 ms",
		"rate(output_tokens) >= baseline * 0.9":  "≥ −10 %",
		"rate(requests) > 7/s":                   "> 7 req/s",
		"share(failed) < 1%":                     "< 1 %",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCurvesAreOrderStatistics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 3000).Draw(t, "values")
		over := rapid.IntRange(0, 50).Draw(t, "over")
		sorted := slices.Sorted(slices.Values(values))
		points := thin(slices.Clone(values), over)
		if len(points) > mostPoints {
			t.Fatalf("%d points", len(points))
		}
		n := float64(len(values) + over)
		for i, p := range points {
			rank := int(math.Round(p.Share * n))
			if rank < 1 || rank > len(sorted) || sorted[rank-1] != p.Value {
				t.Fatalf("point %d: %v at share %v is no order statistic", i, p.Value, p.Share)
			}
			if i > 0 && p.Share <= points[i-1].Share {
				t.Fatalf("shares do not rise at %d", i)
			}
		}
		if points[0].Value != sorted[0] || points[len(points)-1].Value != sorted[len(sorted)-1] {
			t.Fatal("the least or the greatest value is not drawn")
		}
	})
}

func TestArrivalsJoinBlocks(t *testing.T) {
	s := usual()
	m, records := s.build()
	d := Build(m, records, nil)
	for _, a := range d.Workloads[0].Arrivals {
		if a.AsPlanned == nil || !*a.AsPlanned || a.CV.Lo == nil || a.Stretches != 4 || a.N+a.Outside != s.requests || math.Abs(a.Seconds-75) > 1e-6 || math.Abs(a.Rate-8) > .1 {
			t.Errorf("four blocks of Poisson arrivals at 8/s: %+v", a)
		}
	}
	// A metronome is no Poisson process, and neither is one block without its sends.
	start := map[string]record.Instant{}
	for i := range records {
		r := &records[i]
		if start[r.Variant] == 0 {
			start[r.Variant] = m.Windows[0].Start
		}
		r.Due, r.Send = start[r.Variant], start[r.Variant]
		start[r.Variant] += record.Instant(25e6)
	}
	for _, a := range Build(m, records, nil).Workloads[0].Arrivals {
		if a.AsPlanned != nil && *a.AsPlanned || a.AsPlanned == nil && a.Why == "" {
			t.Errorf("a metronome is taken for a Poisson process: %+v", a)
		}
	}
	m.Workloads[0].Process = nil
	for _, a := range Build(m, records, nil).Workloads[0].Arrivals {
		if a.Why == "" && (a.AsPlanned != nil || a.CV == nil || a.CV.Planned == nil || a.CV.Lo != nil) {
			t.Errorf("a workload whose process is not known: %+v", a)
		}
	}
	m.Workloads[0].Open = false
	if a := Build(m, records, nil).Workloads[0].Arrivals; a != nil {
		t.Errorf("a closed loop has planned arrivals: %+v", a)
	}
}

// TestArrivalsOfBurstyProcesses sends bursts on a rate that triples, on time but for
// the client's lateness: they are told from a Poisson process, and from bursts of
// another CV.
func TestArrivalsOfBurstyProcesses(t *testing.T) {
	rising := []record.RatePiece{{Rate: 20}, {At: 50 * time.Second, Expected: 1000, Rate: 60}}
	rng := rand.New(rand.NewPCG(3, 1))
	m := &record.Manifest{
		Variants: []record.VariantInfo{{Name: "v"}},
		Windows:  []record.Window{{Variant: "v", Workload: "w", Start: record.At(0), End: record.At(100 * time.Second)}},
	}
	var records []record.Record
	for y := 0.0; ; {
		y += math.Pow(rng.ExpFloat64(), 1/0.5) / 2 // Weibull, shape 0.5: CV √5
		due := time.Duration(y / 20 * 1e9)
		if y > 1000 {
			due = 50*time.Second + time.Duration((y-1000)/60*1e9)
		}
		if due >= 99*time.Second {
			break
		}
		send := due + time.Duration(50e3+rng.Float64()*250e3)
		records = append(records, record.Record{Variant: "v", Workload: "w", Phase: record.Measured, Due: record.At(due), Send: record.At(send), Outcome: record.OK})
	}
	for _, c := range []struct {
		p    record.Process
		want bool
	}{
		{record.Process{Kind: "weibull", Shape: 0.5, Rate: rising}, true},
		{record.Process{Kind: "gamma", Shape: 0.2, Rate: rising}, false},
		{record.Process{Kind: "weibull", Shape: 0.7, Rate: rising}, false},
		{record.Process{Kind: "weibull", Shape: 0.5, Rate: []record.RatePiece{{Rate: 40}}}, false},
		{record.Process{Kind: "poisson", Rate: rising}, false},
	} {
		m.Workloads = []record.WorkloadInfo{{Name: "w", Open: true, Process: &c.p}}
		a := Build(m, records, nil).Workloads[0].Arrivals[0]
		if a.AsPlanned == nil || *a.AsPlanned != c.want {
			t.Errorf("Weibull bursts held against %+v: %s", c.p, arrivalsText(a))
		}
		t.Log(arrivalsText(a))
	}
}

func TestSeriesCountRequests(t *testing.T) {
	s := func(ms int64) record.Instant { return record.At(time.Duration(ms) * time.Millisecond) }
	rec := func(send, eof int64, o record.Outcome) record.Record {
		return record.Record{Variant: "v", Send: s(send), EOF: s(eof), Outcome: o}
	}
	records := []record.Record{rec(100, 2500, record.OK), rec(200, 900, record.HTTP5xx), rec(1900, 4100, record.OK), {Variant: "v", Outcome: record.ClientOverload}, {Variant: "w", Send: s(1)}}
	got := series([]record.VariantInfo{{Name: "v"}}, records)
	want := []Series{{Variant: "v", Bin: 1, Sent: []int{2, 1, 0, 0, 0}, Completed: []int{0, 0, 1, 0, 1}, Failed: []int{1, 0, 0, 0, 0}, InFlight: []int{2, 2, 2, 1, 1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// cases is what a CI server reads.
type cases struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Suite    struct {
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

func TestOnlyAPassIsGreen(t *testing.T) {
	read := func(d *Document) (c cases) {
		t.Helper()
		if err := xml.Unmarshal(render(t, JUnit, d), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	d := usual().document(t)
	c := read(d)
	for i, k := range c.Suite.Cases {
		g := d.Verdict.Clauses[i].Grade
		if (k.Failure != nil) != (g == contract.Fail) || (k.Error != nil) != (g == contract.Inconclusive) {
			t.Errorf("%s is %v, but failure %v, error %v", k.Name, g, k.Failure != nil, k.Error != nil)
		}
	}
	if c.Tests != 5 || c.Failures != 1 || c.Errors != 3 {
		t.Errorf("tests %d, failures %d, errors %d; want 5, 1, 3", c.Tests, c.Failures, c.Errors)
	}
	m, records := usual().build()
	if c := read(Build(m, records, &contract.Verdict{Reason: "nothing was demanded"})); c.Errors != 1 {
		t.Error("a contract without clauses looks green")
	}
	if c := read(Build(m, records, nil)); c.Tests != 0 {
		t.Error("without a contract there is nothing to be green or red")
	}
	m.Client = record.Certificate{Reasons: []string{"late"}}
	if c := read(Build(m, records, nil)); c.Errors != 1 {
		t.Error("an unfit client looks green")
	}
}

func TestCompareWords(t *testing.T) {
	m, records := usual().build()
	c := Compare(Side{"a", m, records, "baseline"}, Side{"b", m, records, "candidate"})
	got := map[string]string{}
	for _, r := range c.Workloads[0].Rows {
		got[r.Name] = r.Word
		if r.Detectable != nil && *r.Detectable <= 0 {
			t.Errorf("%s: a change of %v could be detected", r.Name, *r.Detectable)
		}
		if (r.Detectable == nil) != (r.Least.Value == missing) {
			t.Errorf("%s: detectable %v is printed as %q", r.Name, r.Detectable, r.Least.Value)
		}
	}
	for name, want := range map[string]string{"TPOT p95": wordHigher, "TPOT mean": wordHigher, "TTFT p50": wordNone, "failed": wordNone} {
		if got[name] != want {
			t.Errorf("%s of a candidate slower per token is %q, want %q", name, got[name], want)
		}
	}
	if len(c.Warnings) != 0 {
		t.Errorf("two variants of one sound run have warnings: %q", c.Warnings)
	}
	back := Compare(Side{"b", m, records, "candidate"}, Side{"a", m, records, "baseline"})
	for _, r := range back.Workloads[0].Rows {
		if r.Name == "TPOT p95" && r.Word != wordLower {
			t.Errorf("the other way round TPOT p95 is %q", r.Word)
		}
	}
}

func TestCompareWarns(t *testing.T) {
	m, records := usual().build()
	n, others := usual().build()
	n.ID, n.Seed, n.State, n.Assay, n.Host["cpu"], n.Workloads[0].Plan = "other", 43, "interrupted", "v0.2.0", "Xeon", "dcba"
	n.Client = record.Certificate{Reasons: []string{"the client sent late"}}
	n.Workloads = append(n.Workloads, record.WorkloadInfo{Name: "code"})
	c := Compare(Side{"a", m, records, "baseline"}, Side{"b", n, others, "baseline"})
	all := strings.Join(c.Warnings, "\n")
	for _, want := range []string{"the client of b was unfit: the client sent late", "the run of b is not done: interrupted", "the seeds differ: 42 and 43", "the versions of assay differ", "the plans differ", "the hosts differ in cpu: EPYC 7B13 and Xeon", "workload code was measured for b only", "not interleaved"} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning %q in\n%s", want, all)
		}
	}
}

func TestWrapKeepsEveryWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("ab 漢é.,%1 "))).Draw(t, "s")
		width := rapid.IntRange(8, 60).Draw(t, "width")
		lines := wrap(s, width)
		for _, l := range lines {
			if columns(l) > width {
				t.Fatalf("%q is wider than %d", l, width)
			}
		}
		got, want := strings.Join(lines, ""), strings.Join(strings.Fields(s), "")
		if strings.ReplaceAll(got, " ", "") != want {
			t.Fatalf("wrap(%q, %d) = %q", s, width, lines)
		}
	})
}

func TestTextFitsItsWidth(t *testing.T) {
	d := usual().document(t)
	for width := 40; width <= 200; width += 7 {
		for _, l := range strings.Split(string(render(t, renderersAt(width), d)), "\n") {
			if n := columns(l); n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, l)
			}
		}
	}
}

func BenchmarkBuild100k(b *testing.B) {
	s := usual()
	s.requests, s.rate = 50_000, 200
	m, records := s.build()
	for b.Loop() {
		Build(m, records, nil)
	}
	b.ReportMetric(float64(len(records))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkHTML(b *testing.B) {
	d := usual().document(b)
	for b.Loop() {
		render(b, HTML, d)
	}
}

func TestHeldStreamsAreMarked(t *testing.T) {
	var records []record.Record
	for i := range 20 {
		due := time.Duration(i) * time.Second
		records = append(records, record.Record{
			Shot: int64(i), Variant: "candidate", Workload: "chat", Stream: true, Outcome: record.OK, Output: record.Tokens(2),
			Due: record.At(due), Admit: record.At(due), Send: record.At(due), EOF: record.At(due + time.Second),
			Events: []record.Event{
				{At: record.At(due + time.Second - 1000), Kind: record.KindContent, Bytes: 4, Lag: -1},
				{At: record.At(due + time.Second), Kind: record.KindContent, Bytes: 4, Lag: -1},
			},
		})
	}
	marked := func(records []record.Record) bool {
		d := Build(&record.Manifest{}, records, nil)
		return len(d.Workloads[0].Marks) > 0 && strings.Contains(strings.Join(d.Footnotes, "\n"), "the streams of candidate arrive in pieces, as behind a buffering proxy")
	}
	if !marked(records) {
		t.Error("no footnote tells of streams that came in one piece")
	}
	for i := range records {
		records[i].Events[0].At -= record.Instant(900 * time.Millisecond)
	}
	if marked(records) {
		t.Error("honest streams are said to be held back")
	}
}

// TestJitterIsNoArrival: a request that the plan held up arrived when it was due.
func TestJitterIsNoArrival(t *testing.T) {
	w := record.Window{Variant: "v", Workload: "w", Start: record.At(0), End: record.At(10 * time.Second)}
	axis := joined([]record.Window{w}, "w", "v")
	due := 4 * time.Second
	r := &record.Record{Due: record.At(due), Send: record.At(due + 7*time.Second), Jitter: 6900 * time.Millisecond}
	if x, ok := axis.place(r); !ok || x.due != due || x.send != due+100*time.Millisecond {
		t.Errorf("placed at %v, due %v (%v)", x.send, x.due, ok)
	}
}
