package workload

import (
	"archive/tar"
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/corpus"
)

// clients is a model of three clients: one bursty, one that comes after ten
// minutes, and one that is silent.
func clients(t testing.TB) *corpus.Set {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(name, text string) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("chunk-0-trace.csv", "0,2,3,Gamma,0.111,4.5\n600,1,1,,0,0\n")
	put("chunk-0-dataset.json", `{"0": {"input_tokens": "{10: 0.5, 20: 0.5}", "output_tokens": "{3: 0.25, 4: 0.75}"}}`)
	put("chunk-1-trace.csv", "0,0,0,,0,0\n600,5,0.5,Weibull,2.1,0.2\n")
	put("chunk-1-dataset.json", `{"0": {"input_tokens": "{}", "output_tokens": "{}"}, "600": {"input_tokens": "{100: 1}", "output_tokens": "{50: 1}"}}`)
	put("chunk-2-trace.csv", "0,9,1,,0,0\n600,9,1,,0,0\n")
	put("chunk-2-dataset.json", `{"0": {"input_tokens": "{}", "output_tokens": "{}"}}`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	set, err := corpus.Read("clients.tar", &b, "servegen")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestClientsAreSuperposed: each client asks at its own rates, as unevenly as its
// windows say, with lengths from its own tables.
func TestClientsAreSuperposed(t *testing.T) {
	counts := map[string][2]float64{} // by client, in each of two windows
	var gaps []float64                // of client 1
	const plans = 60
	for seed := range uint64(plans) {
		p := plan(t, "arrivals: {replay: {}}\nprompts: {file: clients.tar, format: servegen}\n", seed, "")
		before, last := time.Duration(0), time.Duration(-1)
		for i, a := range p.clients.all() {
			if a.due < before || a.due >= 20*time.Minute {
				t.Fatalf("request %d is due at %v after %v", i, a.due, before)
			}
			before = a.due
			name := p.clients.traffic.Clients[a.client].Name
			c := counts[name]
			c[int(a.due/(10*time.Minute))]++
			counts[name] = c
			if name == "client-1" {
				if last >= 0 {
					gaps = append(gaps, (a.due - last).Seconds())
				}
				last = a.due
			}
		}
	}
	for name, want := range map[string][2]float64{"client-0": {1200, 600}, "client-1": {0, 3000}, "client-2": {0, 0}} {
		for k, w := range want {
			// Of a renewal process, the variance of a count is CV² times its mean.
			cv := map[string]float64{"client-0": 3, "client-1": 0.5}[name]
			if got := counts[name][k] / plans; math.Abs(got-w) > 5*cv*math.Sqrt(w/plans) {
				t.Errorf("%s asks %.1f times in window %d, want %v", name, got, k, w)
			}
		}
	}
	mean, cv := momentsOf(gaps)
	if want := weibullCV(2.1); math.Abs(mean-0.2) > 0.002 || math.Abs(cv/want-1) > 0.02 {
		t.Errorf("gaps of client-1: mean %.4f s, CV %.4f, want 0.2, %.4f", mean, cv, want)
	}
}

func TestClientsAskWithTheirOwnLengths(t *testing.T) {
	p := plan(t, "arrivals: {replay: {}}\nprompts: {file: clients.tar, format: servegen}\nsalt: false\nwarmup: {requests: 4}\n", 1, "")
	seen := map[string]float64{}
	n := 0.0
	for s := range p.All() {
		if !strings.HasPrefix(s.Case, "request-") {
			t.Fatalf("shot %d is of case %s", s.Index, s.Case)
		}
		tokens := tokensOf(text(s))
		switch s.Tenant {
		case "client-0":
			n++
			seen[fmt.Sprint(tokens)]++
			seen[fmt.Sprint("out ", s.MaxTokens)]++
			if tokens == 20 && s.MaxTokens == 4 {
				seen["both"]++
			}
		case "client-1":
			if tokens != 100 || s.MaxTokens != 50 {
				t.Fatalf("client-1 asks with %d tokens for %d", tokens, s.MaxTokens)
			}
		default:
			t.Fatalf("tenant %q", s.Tenant)
		}
	}
	for what, want := range map[string]float64{"10": 0.5, "20": 0.5, "out 3": 0.25, "out 4": 0.75, "both": 0.375} {
		if got := seen[what] / n; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/n) {
			t.Errorf("%s: share %.3f of %v requests, want %v", what, got, n, want)
		}
	}
	for s := range p.WarmUp() {
		if s.MaxTokens < 3 || text(s) == "" || s.Tenant == "client-2" {
			t.Errorf("warm-up: %+v", s)
		}
	}
}

func TestReplayStartsLater(t *testing.T) {
	rows := sets(t)["conv.csv"].Trace.Rows
	all := take(plan(t, "arrivals: {replay: {start: 100s, speed: 2}}\nprompts: {file: conv.csv}\n", 1, "").All(), 300)
	if len(all) != 100 {
		t.Fatalf("%d shots, want 100", len(all))
	}
	for i, s := range all {
		r := rows[100+i]
		want := time.Duration(math.Round(float64(r.At-100e9) / 2))
		if s.Index != int64(i) || s.Due != want || s.MaxTokens != int64(r.Output) || s.Case != fmt.Sprint("row-", 101+i) {
			t.Fatalf("shot %d: index %d, due %v, want %v; %d tokens, want %d; case %s", i, s.Index, s.Due, want, s.MaxTokens, r.Output, s.Case)
		}
	}
	for file, start := range map[string]string{"conv.csv": "1h", "clients.tar": "20m"} {
		if _, err := New("w", decode(t, "arrivals: {replay: {start: "+start+"}}\nprompts: {file: "+file+"}\n"), sets(t), 1, ""); err == nil || !strings.Contains(err.Error(), "hint: start") {
			t.Errorf("%s from %s on: %v", file, start, err)
		}
	}
	p := plan(t, "arrivals: {replay: {start: 10m}}\nfor: 1m\nprompts: {file: clients.tar}\n", 1, "")
	if n := float64(p.Planned()); math.Abs(n-360) > 80 || p.For() != time.Minute {
		t.Errorf("%v requests in %v of the second window, want 360", n, p.For())
	}
	if got, want := p.String(), "replay of clients.tar from 10m for 1m, 3 clients (ServeGen, Alibaba, Apache-2.0)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := New("w", decode(t, "arrivals: {poisson: 5/s}\nfor: 5m\nprompts: {file: clients.tar}\n"), sets(t), 1, ""); err == nil || !strings.Contains(err.Error(), "is a model of clients") {
		t.Errorf("clients at a rate: %v", err)
	}
}

// TestPublicClients: over 10⁵ requests of ServeGen's reasoning workload, the rate
// and the lengths are those of the model.
func TestPublicClients(t *testing.T) {
	const file = "servegen_reason_deepseek-r1.tar.gz"
	f, err := os.Open("../../shared/data/traces/" + file)
	if err != nil {
		t.Skipf("public traces are not here: %v", err)
	}
	defer f.Close()
	set, err := corpus.Read(file, f, "servegen")
	if err != nil {
		t.Fatal(err)
	}
	// Four hours from noon; what the model expects there, window by window.
	const from, to = 12 * 3600, 16 * 3600
	requests, input, output := 0.0, 0.0, 0.0
	var variance float64
	for _, c := range set.Traffic.Clients {
		at := 0.0
		for _, w := range c.Windows {
			length := float64(w.Length) / 1e9
			if at >= from && at < to && w.Rate > 0 {
				n := w.Rate * length
				l := c.Lengths[w.Lengths]
				requests, input, output = requests+n, input+n*tableMean(l.Input), output+n*tableMean(l.Output)
				variance += n * processOf(w).cv * processOf(w).cv
			}
			at += length
		}
	}
	p, err := New("w", decode(t, "arrivals: {replay: {start: 12h}}\nfor: 4h\nprompts: {file: "+file+", format: servegen}\n"), map[string]*corpus.Set{file: set}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	n, in, out := 0.0, 0.0, 0.0
	w := p.measured.writer()
	var ins, outs []float64
	for i, a := range p.clients.all() {
		s := w.byClient(i, a, false)
		tokens := float64(set.Traffic.Clients[a.client].Lengths[a.lengths].Input.At(w.inputs.uniform(i)))
		n, in, out = n+1, in+tokens, out+float64(s.MaxTokens)
		ins, outs = append(ins, tokens), append(outs, float64(s.MaxTokens))
	}
	if n < 1e5 || math.Abs(n-requests) > 5*math.Sqrt(variance) {
		t.Errorf("%v requests, want %.0f ± %.0f", n, requests, math.Sqrt(variance))
	}
	if math.Abs(in/n/(input/requests)-1) > 0.05 || math.Abs(out/n/(output/requests)-1) > 0.05 {
		t.Errorf("mean lengths %.1f and %.1f, want %.1f and %.1f", in/n, out/n, input/requests, output/requests)
	}
	// Weak, not perfect as with one random number for both lengths.
	if rho := rankCorrelation(ins, outs); math.Abs(rho) > 0.5 {
		t.Errorf("rank correlation of lengths %.2f", rho)
	}
	if !slices.IsSorted(replayDues(p)) {
		t.Error("not in order")
	}
}

func tableMean(t corpus.Table) (mean float64) {
	before := 0.0
	for i, v := range t.Values {
		mean += float64(v) * (t.Cumulative[i] - before)
		before = t.Cumulative[i]
	}
	return mean
}
