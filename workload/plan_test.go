package workload

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

var update = flag.Bool("update", false, "rewrite testdata")

func decode(t testing.TB, text string) Spec {
	t.Helper()
	var s Spec
	if err := config.Decode("suite.yaml", []byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func plan(t testing.TB, text string, seed uint64, salt string) *Plan {
	t.Helper()
	p, err := New("chat", decode(t, text), sets(t), seed, salt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sets are small sets of each kind of case.
func sets(t testing.TB) map[string]*corpus.Set {
	t.Helper()
	var chat, bare strings.Builder
	for i := range 10 {
		fmt.Fprintf(&chat, `{"id": "c%d", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is %d + %d?"}], "max_tokens": %d, "labels": {"kind": "sum", "tier": "case"}}`+"\n", i, i, i, 10+i)
		fmt.Fprintf(&bare, `{"prompt": "Count to %d"}`+"\n", i)
	}
	conv, moon := "TIMESTAMP,ContextTokens,GeneratedTokens\n", ""
	for i := range 200 {
		conv += fmt.Sprintf("2023-11-16 18:%02d:%02d.%07d,%d,%d\n", i/60, i%60, i*i*7, 10+i, 1+i%9)
		moon += fmt.Sprintf(`{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d, %d, %d]}`+"\n", i/10*3000, 1030+i%400, 5+i, i%3, 10+i%12, 100+i)
	}
	talk := `{"id": "t0", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "One?"}, {"role": "assistant", "content": "Recorded."}, {"role": "user", "content": "Two?"}, {"role": "assistant", "content": "Recorded."}, {"role": "system", "content": "Hurry."}, {"role": "user", "content": "Three?"}]}` + "\n" +
		`{"id": "t1", "messages": [{"role": "user", "content": "Alone?"}]}` + "\n" + `{"id": "t2", "prompt": "Bare"}` + "\n"
	all := map[string]*corpus.Set{}
	for name, text := range map[string]string{"talk.jsonl": talk, "chat.jsonl": chat.String(), "bare.jsonl": bare.String(), "conv.csv": conv, "moon.jsonl": moon} {
		set, err := corpus.Read(name, strings.NewReader(text), "")
		if err != nil {
			t.Fatal(err)
		}
		all[name] = set
	}
	all["clients.tar"] = clients(t)
	return all
}

// take returns the first n shots.
func take(seq func(func(Shot) bool), n int) []Shot {
	var all []Shot
	for s := range seq {
		if len(all) == n {
			break
		}
		all = append(all, s)
	}
	return all
}

func encode(t testing.TB, shots []Shot) []byte {
	t.Helper()
	var b []byte
	for _, s := range shots {
		var err error
		if b, err = s.AppendBinary(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// specs are workloads of all kinds, used by several tests.
var specs = map[string]string{
	"poisson":     "arrivals: {poisson: 50/s}\nfor: 20s\nprompts: {synthetic: {lognormal: {median: 40, sigma: 0.8, max: 4k}}}\noutput: {uniform: {min: 8, max: 64}}\nprefix: {tokens: 24, groups: 4}\nwarmup: {requests: 20}\ntemperature: 0\nlabels: {tier: gold}\n",
	"constant":    "arrivals: {constant: 100/s}\nrequests: 500\nprompts: {synthetic: 16}\noutput: 32\nignore_eos: true\nstream: false\n",
	"ramp":        "arrivals: {ramp: {from: 1/s, to: 40/s}}\nfor: 30s\nprompts: {file: chat.jsonl}\nwarmup: {requests: 25}\nlabels: {tier: suite}\n",
	"stairs":      "arrivals: {stairs: {from: 10/s, step: 10/s, every: 5s, to: 50/s}, process: constant}\nfor: 25s\nprompts: {file: bare.jsonl, order: sequential}\nprefix: {tokens: 5}\n",
	"gamma":       "arrivals: {gamma: {rate: 50/s, cv: 2.5}}\nfor: 20s\nprompts: {synthetic: 8}\nwarmup: {requests: 3}\n",
	"weibull":     "arrivals: {weibull: {rate: {ramp: {from: 10/s, to: 90/s}}, shape: 0.6}}\nfor: 20s\nrequests: 900\nprompts: {synthetic: 8}\n",
	"bursts":      "arrivals: {bursts: {rate: 100/s, base: 2/s, on: 2s, off: 8s}}\nfor: 40s\nprompts: {synthetic: 8}\n",
	"pulses":      "arrivals: {pulses: {requests: 20, every: 5s, base: 10/s}}\nfor: 30s\nprompts: {synthetic: 8}\n",
	"diurnal":     "arrivals: {constant: {diurnal: {mean: 20/s, swing: 80%, period: 24s, peak: 14s, start: 8s}}}\nfor: 40s\nprompts: {synthetic: 8}\n",
	"hours":       "arrivals: {gamma: {rate: {diurnal: {rates: [5/s, 1/s, 40/s], period: 30s}}, cv: 0.5}}\nrequests: 800\nprompts: {synthetic: 8}\n",
	"mmpp":        "arrivals: {mmpp: {states: [{rate: 5/s, dwell: 3s}, {rate: 100/s, dwell: 1s}, {rate: 0/s, dwell: 500ms}]}}\nfor: 60s\nprompts: {synthetic: 8}\n",
	"replay":      "arrivals: {replay: {speed: 4}}\nfor: 40s\nprompts: {file: conv.csv}\nwarmup: {requests: 5}\n",
	"spread":      "arrivals: {replay: {spread: 3s}}\nrequests: 150\nprompts: {file: moon.jsonl, format: mooncake}\nignore_eos: true\n",
	"lengths":     "arrivals: {poisson: 10/s}\nrequests: 450\nprompts: {file: moon.jsonl}\noutput: 7\nwarmup: {requests: 5}\n",
	"preset":      "preset: chat\nrequests: 120\n",
	"shared":      "arrivals: {poisson: 10/s}\nrequests: 120\nprompts: {synthetic: {quantiles: {percents: [0, 50, 100], values: [1, 40, 90]}}}\noutput: {lognormal: {median: 100, sigma: 0.9}}\ncorrelation: 0.6\nprefix: {share: 50%, groups: 3, reuse: 6}\nwarmup: {requests: 5}\n",
	"clients":     "arrivals: {replay: {speed: 2, start: 9m}}\nfor: 3m\nprompts: {file: clients.tar, format: servegen}\nwarmup: {requests: 5}\n",
	"later":       "arrivals: {replay: {start: 100s}}\nprompts: {file: conv.csv}\n",
	"mix":         "arrivals: {gamma: {rate: 10/s, cv: 2}}\nfor: 20s\nmix:\n  - {tenant: gold, share: 70%, prompts: {synthetic: 20}, output: 9, labels: {tier: paid}}\n  - {tenant: free, share: 30%, preset: chat, output: 30, prompts: {synthetic: [3, 4]}, prefix: {tokens: 3}}\nwarmup: {requests: 5}\nlabels: {site: eu}\n",
	"closed mix":  "arrivals: {concurrency: 5}\nrequests: 100\nmix:\n  - {tenant: a, share: 50%, prompts: {synthetic: 20}}\n  - {tenant: b, share: 50%, prompts: {synthetic: 10}, temperature: 1, ignore_eos: true, output: 3}\ntemperature: 0\n",
	"closed":      "arrivals: {concurrency: 7, think: {exponential: {mean: 2s, max: 20s}}}\nfor: 60s\nrequests: 300\nprompts: {synthetic: [8, 16, 32]}\noutput: {normal: {mean: 64, stddev: 16}}\nwarmup: {requests: 14}\n",
	"sessions":    "arrivals: {poisson: 10/s}\nfor: 20s\nprompts: {synthetic: [5, 20]}\noutput: 8\nprefix: {tokens: 7, groups: 3}\nsessions: {turns: {uniform: {min: 1, max: 6}}, think: {exponential: 2s}}\nwarmup: {requests: 5}\n",
	"cancelled":   "arrivals: {poisson: 10/s}\nrequests: 200\nprompts: {synthetic: 8}\noutput: 20\ncancel: [{share: 10%, during: prefill}, {share: 10%, after_tokens: {uniform: {min: 1, max: 20}}}, {share: 10%, after: {exponential: 2s}}]\nwarmup: {requests: 5}\n",
	"ways":        "arrivals: {poisson: 10/s}\nrequests: 200\nprompts: {synthetic: 8}\njitter: {pareto: {min: 5ms, alpha: 1.5, max: 2s}}\npriority: 4\nlabels: {tier: free}\nwarmup: {requests: 5}\n",
	"hit":         "arrivals: {poisson: 10/s}\nrequests: 120\nprompts: {synthetic: {uniform: {min: 100, max: 300}}}\nprefix: {hit: 50%, groups: 3}\nwarmup: {requests: 5}\n",
	"dialogues":   "arrivals: {gamma: {rate: 5/s, cv: 2}}\nrequests: 100\nprompts: {file: talk.jsonl}\nsessions: {}\n",
	"no history":  "arrivals: {poisson: 10/s}\nrequests: 100\nprompts: {file: talk.jsonl}\nsessions: {turns: 2, history: false}\n",
	"closed talk": "arrivals: {concurrency: 5, think: 1s}\nrequests: 200\nprompts: {synthetic: 9}\nsessions: {turns: [1, 2, 7], think: 300ms}\n",
	"mixed talk":  "arrivals: {poisson: 10/s}\nrequests: 150\nsessions: {turns: 3}\nmix:\n  - {tenant: gold, share: 70%, prompts: {synthetic: 20}, prefix: {share: 50%, groups: 2}}\n  - {tenant: free, share: 30%, prompts: {synthetic: [3, 4]}}\n",
	"closed file": "arrivals: {concurrency: 16}\nrequests: 100\nprompts: {file: chat.jsonl, order: shuffled}\nsalt: false\nwarmup: {requests: 16}\n",
}

// TestPlanIsTheSameForAnyNumberOfWorkers merges the stripes of 1, 3 and 16
// workers that run at once, with one and two processors, and wants the bytes of
// All.
func TestPlanIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	for name, text := range specs {
		p := plan(t, text, 42, "salt-1")
		want := encode(t, take(p.All(), 1000))
		for _, procs := range []int{1, 2} {
			for _, workers := range []int{1, 3, 16} {
				before := runtime.GOMAXPROCS(procs)
				stripes := make([][]Shot, workers)
				var wg sync.WaitGroup
				for w := range workers {
					wg.Go(func() { stripes[w] = take(p.Stripe(w, workers), 1000) })
				}
				wg.Wait()
				runtime.GOMAXPROCS(before)
				var all []Shot
				for w, stripe := range stripes {
					for _, s := range stripe {
						owner := s.Index
						if _, err := fmt.Sscanf(s.Session, "session-%d", &owner); err != nil && s.Turns > 0 {
							t.Fatal(err)
						}
						if !p.Open() {
							owner = int64(s.User)
						}
						if owner%int64(workers) != int64(w) {
							t.Fatalf("%s: worker %d of %d got shot %d", name, w, workers, s.Index)
						}
					}
					all = append(all, stripe...)
				}
				slices.SortFunc(all, func(a, b Shot) int { return int(a.Index - b.Index) })
				if len(all) > 1000 {
					all = all[:1000]
				}
				if !bytes.Equal(encode(t, all), want) {
					t.Errorf("%s: %d workers on %d processors send another plan", name, workers, procs)
				}
			}
		}
	}
}

// TestDigestsAreGolden pins whole plans, so across processes, machines and
// versions. A change here breaks the comparison of runs: say so in the
// changelog.
func TestDigestsAreGolden(t *testing.T) {
	var got strings.Builder
	names := make([]string, 0, len(specs))
	for name := range specs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, seed := range []uint64{1, math.MaxUint64} {
			p := plan(t, specs[name], seed, "some salt")
			fmt.Fprintf(&got, "%s seed %d: %d planned, %v\n  %s\n", name, seed, p.Planned(), p, p.Digest())
		}
	}
	// Only the first shots of a plan count, and only the first of them with text.
	p := plan(t, "arrivals: {constant: 1000/s}\nrequests: 1000M\nprompts: {synthetic: 2k}\n", 1, "")
	fmt.Fprintf(&got, "largest plan: %d planned, %v\n  %s\n", p.Planned(), p, p.Digest())
	file := filepath.Join("testdata", "digests.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("digests differ (-want +got):\n%s", d)
	}
}

func TestDigestCoversThePlanButNotTheSalt(t *testing.T) {
	base := specs["poisson"]
	want := plan(t, base, 1, "a").Digest()
	if got := plan(t, base, 1, "another").Digest(); got != want {
		t.Error("the salt changes the digest")
	}
	for what, text := range map[string]string{
		"output":   strings.Replace(base, "max: 64", "max: 65", 1),
		"prefix":   strings.Replace(base, "groups: 4", "groups: 5", 1),
		"warm-up":  strings.Replace(base, "requests: 20", "requests: 21", 1),
		"label":    strings.Replace(base, "gold", "gol", 1),
		"sampling": strings.Replace(base, "temperature: 0", "temperature: 0.1", 1),
		"length":   strings.Replace(base, "for: 20s", "for: 21s", 1),
		"salt off": base + "salt: false\n",
	} {
		if got := plan(t, text, 1, "a").Digest(); got == want {
			t.Errorf("%s does not change the digest", what)
		}
	}
	if plan(t, base, 2, "a").Digest() == want {
		t.Error("the seed does not change the digest")
	}
	other, err := New("rag", decode(t, base), nil, 1, "a")
	if err != nil || other.Digest() == want {
		t.Errorf("another workload of the same spec has the same plan (%v)", err)
	}
	// Beyond 16 MiB of text, shots still count.
	long := "arrivals: {constant: 10/s}\nrequests: 3000\nprompts: {synthetic: 2k}\noutput: "
	if plan(t, long+"{uniform: {min: 1, max: 9}}", 1, "").Digest() == plan(t, long+"{empirical: [1, 9]}", 1, "").Digest() {
		t.Error("outputs do not change the digest of a long plan")
	}
}

// TestStreamsAreIndependent: what is not changed stays as it is.
func TestStreamsAreIndependent(t *testing.T) {
	base := specs["poisson"]
	was := take(plan(t, base, 42, "s").All(), 500)
	compare := func(what, text string, same func(a, b Shot) bool) {
		t.Helper()
		now := take(plan(t, text, 42, "s").All(), 500)
		for i := range now {
			if !same(was[i], now[i]) {
				t.Fatalf("%s: shot %d changed more than it should", what, i)
			}
		}
	}
	content := func(s Shot) string { return s.Messages[0].Content }
	compare("output", strings.Replace(base, "max: 64", "max: 640", 1), func(a, b Shot) bool {
		return a.Due == b.Due && content(a) == content(b) && a.Seed == b.Seed
	})
	compare("rate", strings.Replace(base, "50/s", "100/s", 1), func(a, b Shot) bool {
		return math.Abs(float64(a.Due)/2-float64(b.Due)) <= 1 && content(a) == content(b) && a.MaxTokens == b.MaxTokens
	})
	compare("prompt length", strings.Replace(base, "median: 40", "median: 60", 1), func(a, b Shot) bool {
		return a.Due == b.Due && a.MaxTokens == b.MaxTokens && strings.Fields(content(a))[20] == strings.Fields(content(b))[20]
	})
	compare("warm-up", strings.Replace(base, "requests: 20", "requests: 500", 1), func(a, b Shot) bool { return cmp.Equal(a, b) })
	compare("longer", strings.Replace(base, "for: 20s", "for: 200s", 1), func(a, b Shot) bool { return cmp.Equal(a, b) })
}

// common returns the number of bytes that two texts share at their start.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// text is the start of what the server sees of a shot.
func text(s Shot) string {
	if s.Messages == nil {
		return s.Prompt
	}
	return s.Messages[0].Content
}

// TestWarmUpSharesNothingWithTheRun: no warm-up prompt begins as a measured one
// does, with or without salt, so no measured prompt finds itself warm.
func TestWarmUpSharesNothingWithTheRun(t *testing.T) {
	for name, spec := range specs {
		if !strings.Contains(spec, "warmup") {
			continue
		}
		for _, salt := range []string{"", "7c1f0a93"} {
			p := plan(t, spec, 42, salt)
			warm := take(p.WarmUp(), 1000)
			if int64(len(warm)) != p.WarmUps() || len(warm) == 0 {
				t.Fatalf("%s: %d warm-up shots, want %d", name, len(warm), p.WarmUps())
			}
			for i, w := range warm {
				if w.Phase != record.WarmUp || w.Index != int64(i) {
					t.Fatalf("%s: warm-up shot %d has phase %v and index %d", name, i, w.Phase, w.Index)
				}
				for s := range p.All() {
					if n := common(text(w), text(s)); n > 5 {
						t.Fatalf("%s: warm-up %d and shot %d share %d bytes: %.40q, %.40q", name, i, s.Index, n, text(w), text(s))
					}
				}
			}
		}
	}
}

func TestSaltComesFirstAndOncePerRun(t *testing.T) {
	for name, spec := range specs {
		a, b := take(plan(t, spec, 42, "aaaa").All(), 200), take(plan(t, spec, 42, "bbbb").All(), 200)
		salted := !strings.Contains(spec, "salt: false")
		for i := range a {
			salted := salted && !a[i].History // which begins as its session does
			if got := strings.HasPrefix(text(a[i]), "[aaaa] "); got != salted {
				t.Fatalf("%s: shot %d begins with %.20q", name, i, text(a[i]))
			}
			if salted && common(text(a[i]), text(b[i])) > 1 {
				t.Fatalf("%s: shot %d shares a prefix between two runs", name, i)
			}
			if want := strings.Replace(text(a[i]), "[aaaa]", "[bbbb]", 1); text(b[i]) != want {
				t.Fatalf("%s: the salt changes more than itself", name)
			}
		}
	}
}

func TestPrefixesAreSharedWithinGroups(t *testing.T) {
	p := plan(t, specs["poisson"], 42, "s")
	groups := map[string]int{}
	shots := take(p.All(), 800)
	for _, s := range shots {
		words := strings.Fields(strings.ReplaceAll(text(s), ".", " ."))
		groups[strings.Join(words[1:25], " ")]++
	}
	if len(groups) != 4 {
		t.Fatalf("%d different prefixes of 24 tokens, want 4", len(groups))
	}
	for g, n := range groups {
		if math.Abs(float64(n)-200) > 4*math.Sqrt(800*0.25*0.75) {
			t.Errorf("group %.20q has %d of 800 shots, want about 200", g, n)
		}
	}
	again := take(plan(t, strings.Replace(specs["poisson"], "median: 40", "median: 50", 1), 42, "s").All(), 800)
	if n := common(text(shots[0]), text(again[0])); n < 50 {
		t.Errorf("the prefix changes with the length of prompts: only %d bytes are shared", n)
	}
}

func TestSetsAreAskedInRounds(t *testing.T) {
	all := sets(t)
	before := all["chat.jsonl"].Digest
	p := plan(t, "arrivals: {constant: 10/s}\nrequests: 40\nprompts: {file: chat.jsonl}\n", 42, "s")
	var orders []string
	seen := map[string]bool{}
	for i, s := range take(p.All(), 40) {
		if i%10 == 0 {
			clear(seen)
			orders = append(orders, "")
		}
		if seen[s.Case] {
			t.Fatalf("case %s is asked twice in round %d", s.Case, i/10)
		}
		seen[s.Case] = true
		orders[i/10] += s.Case
		var n int64
		fmt.Sscanf(s.Case, "c%d", &n)
		want := "[s] Be brief."
		if i >= 10 {
			want = fmt.Sprintf("[s] [round %d] Be brief.", i/10+1)
		}
		if s.Messages[0].Content != want || s.Messages[1].Content != fmt.Sprintf("What is %d + %d?", n, n) || s.MaxTokens != 10+n {
			t.Errorf("shot %d: %+v", i, s)
		}
	}
	slices.Sort(orders)
	if len(slices.Compact(orders)) != 4 {
		t.Errorf("rounds repeat an order: %v", orders)
	}
	p = plan(t, "arrivals: {constant: 10/s}\nrequests: 12\nprompts: {file: bare.jsonl, order: sequential}\noutput: 5\nsalt: false\n", 42, "s")
	for i, s := range take(p.All(), 12) {
		if want := fmt.Sprintf("Count to %d", i%10); s.Prompt != want || s.Messages != nil || s.MaxTokens != 5 || s.Case != fmt.Sprintf("row-%d", i%10+1) {
			t.Errorf("sequential shot %d: %+v, want prompt %q", i, s, want)
		}
	}
	for _, spec := range specs {
		for range take(plan(t, spec, 1, "s").All(), 300) {
		}
	}
	if again := sets(t); again["chat.jsonl"].Digest != before {
		t.Error("planning changed the set")
	}
}

func TestLabelsOfTheSuiteWin(t *testing.T) {
	s := take(plan(t, specs["ramp"], 42, "s").All(), 1)[0]
	if d := cmp.Diff(map[string]string{"kind": "sum", "tier": "suite"}, s.Labels); d != "" {
		t.Errorf("labels differ (-want +got):\n%s", d)
	}
	s = take(plan(t, specs["closed file"], 42, "s").All(), 1)[0]
	if d := cmp.Diff(map[string]string{"kind": "sum", "tier": "case"}, s.Labels); d != "" {
		t.Errorf("labels differ (-want +got):\n%s", d)
	}
}

func TestShotsCarryTheSpec(t *testing.T) {
	p := plan(t, specs["constant"], 42, "s")
	s := take(p.All(), 2)[1]
	want := Shot{
		Index: 1, Workload: "chat", Due: 15 * time.Millisecond, Case: "synthetic-1",
		Messages: s.Messages, MaxTokens: 32, IgnoreEOS: true, Seed: s.Seed,
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("shot differs (-want +got):\n%s", d)
	}
	if s.Seed < 0 || s.Seed > math.MaxInt32 || s.Seed == take(p.All(), 1)[0].Seed {
		t.Errorf("seed %d", s.Seed)
	}
	zero := 0.0
	p = plan(t, specs["poisson"], 42, "s")
	s = take(p.All(), 1)[0]
	if !s.Stream || s.IgnoreEOS || !cmp.Equal(s.Temperature, &zero) {
		t.Errorf("shot %+v", s)
	}
}

func TestClosedLoop(t *testing.T) {
	p := plan(t, "arrivals: {concurrency: 8, think: {uniform: {min: 1s, max: 3s}}}\nfor: 100s\nprompts: {synthetic: 4}\n", 42, "s")
	if p.Open() || p.Users() != 8 || p.Planned() != -1 || p.Rate() != 0 {
		t.Errorf("Open %t, Users %d, Planned %d, Rate %v", p.Open(), p.Users(), p.Planned(), p.Rate())
	}
	shots := take(p.All(), 8000)
	sum := time.Duration(0)
	for i, s := range shots {
		if s.Index != int64(i) || s.User != i%8 || s.Turn != i/8 || s.Session != fmt.Sprintf("user-%d", i%8) || s.Due != 0 {
			t.Fatalf("shot %d: %+v", i, s)
		}
		if i < 8 {
			// Two seconds of mean think time and 50 ms a user, evenly.
			if want := time.Duration(i) * 2400 * time.Millisecond / 8; s.Think != want {
				t.Errorf("user %d starts after %v, want %v", i, s.Think, want)
			}
			continue
		}
		if s.Think < time.Second || s.Think > 3*time.Second {
			t.Fatalf("shot %d thinks %v", i, s.Think)
		}
		sum += s.Think
	}
	if mean := sum / (8000 - 8); mean < 1970*time.Millisecond || mean > 2030*time.Millisecond {
		t.Errorf("mean think time %v, want 2s", mean)
	}
	if idle := take(p.Stripe(8, 9), 1); len(idle) != 0 {
		t.Errorf("a ninth worker of eight users got %+v", idle)
	}
	for _, tt := range []struct {
		text string
		want time.Duration
	}{
		{"arrivals: {concurrency: 10}\nrequests: 9\n", 500 * time.Millisecond},
		{"arrivals: {concurrency: 10}\nfor: 2s\n", 200 * time.Millisecond},
		{"arrivals: {concurrency: 10k}\nrequests: 9\n", 30 * time.Second},
		{"arrivals: {concurrency: 10, stagger: 0s}\nfor: 2s\n", 0},
		{"arrivals: {concurrency: 10, stagger: 1m}\nfor: 2s\n", time.Minute},
	} {
		if got := plan(t, tt.text+"prompts: {synthetic: 4}\n", 1, "").closed.stagger; got != tt.want {
			t.Errorf("%q staggers over %v, want %v", tt.text, got, tt.want)
		}
	}
}

func TestWarmUpKeepsThePace(t *testing.T) {
	for i, s := range take(plan(t, specs["poisson"], 42, "s").WarmUp(), 99) {
		if want := time.Duration(i) * 20 * time.Millisecond; s.Due != want {
			t.Errorf("warm-up shot %d is due %v, want %v", i, s.Due, want)
		}
	}
	for i, s := range take(plan(t, specs["closed"], 42, "s").WarmUp(), 99) {
		if s.User != i%7 || s.Due != 0 || i >= 7 && s.Think == 0 {
			t.Errorf("warm-up shot %d: %+v", i, s)
		}
	}
}

func TestPlanDescribesItself(t *testing.T) {
	for text, want := range map[string]string{
		"arrivals: {poisson: 8/s}\nfor: 5m":                                                            "Poisson 8/s for 5m",
		"arrivals: {constant: 30/min}\nrequests: 1000":                                                 "constant 0.5/s 1000 requests",
		"arrivals: {constant: 5/s}\nfor: 90s\nrequests: 1k":                                            "constant 5/s for 1m30s, at most 1000 requests",
		"arrivals: {ramp: {from: 1/s, to: 10/s}}\nfor: 5m":                                             "Poisson ramp 1/s to 10/s for 5m",
		"arrivals: {constant: {stairs: {from: 1/s, step: 2/s, every: 30s, to: 9/s}}}\nfor: 5m":         "constant stairs 1/s to 9/s by 2/s every 30s for 5m",
		"arrivals: {concurrency: 16, think: 2s}\nfor: 5m":                                              "16 users, think 2s, for 5m",
		"arrivals: {concurrency: 1}\nrequests: 9":                                                      "1 user, 9 requests",
		"arrivals: {concurrency: 2, think: {exponential: {mean: 2s, max: 1m}}}\nfor: 5m\nrequests: 12": "2 users, think exponential, mean 2s, at most 1m, for 5m, at most 12 requests",
	} {
		p := plan(t, text+"\nprompts: {synthetic: 4}\n", 1, "")
		if got := p.String(); got != want {
			t.Errorf("%q describes itself as %q, want %q", text, got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	ok := decode(t, specs["ramp"])
	if _, err := New("chat", ok, nil, 1, ""); err == nil || err.Error() != "planning workload chat: the set chat.jsonl was not read, or has no cases" {
		t.Errorf("a set that was not read: %v", err)
	}
	_, err := New("chat", Spec{}, nil, 1, "")
	want := "planning workload chat: arrivals: says nothing about when requests are sent\n  hint: write such as {poisson: 8/s}, {constant: 5/s} or {concurrency: 16}\n" +
		"prompts: says nothing about what is asked\n  hint: write such as {synthetic: 512} or {file: sets/support.jsonl}"
	if err == nil || err.Error() != want {
		t.Errorf("the zero Spec: %v, want %s", err, want)
	}
}

// TestValidateSpecsMadeInCode: values that no document can hold are refused too.
func TestValidateSpecsMadeInCode(t *testing.T) {
	nan, cold, ages := math.NaN(), -1.0, config.Duration(-1)
	for want, change := range map[string]func(*Spec){
		"arrivals.process: wants constant or poisson":                func(s *Spec) { s.Arrivals = Arrivals{Ramp: &Ramp{1, 2}, Process: "gamma"} },
		"arrivals.poisson: has more than one shape: ramp and stairs": func(s *Spec) { s.Arrivals.Poisson = &Rate{Ramp: &Ramp{1, 2}, Stairs: &Stairs{1, 1, 1, 2}} },
		"arrivals.poisson: must be at most":                          func(s *Spec) { s.Arrivals.Poisson.Fixed = config.Rate(nan) },
		"arrivals.stagger: must be at most":                          func(s *Spec) { s.Arrivals = Arrivals{Concurrency: 1, Stagger: &ages} },
		"arrivals.concurrency: must be between":                      func(s *Spec) { s.Arrivals = Arrivals{Concurrency: -1} },
		"arrivals.think: must be between 0s and 24h":                 func(s *Spec) { s.Arrivals = Arrivals{Concurrency: 1, Think: Fixed(ages)} },
		"for: must be at most":                                       func(s *Spec) { s.For = -1 },
		"requests: must be at most":                                  func(s *Spec) { s.Requests = -1 },
		"prompts.format: wants":                                      func(s *Spec) { s.Prompts = Prompts{File: "a", Format: "b"} },
		"prompts.order: wants":                                       func(s *Spec) { s.Prompts = Prompts{File: "a", Order: "b"} },
		"prompts.synthetic: unknown distribution":                    func(s *Spec) { s.Prompts.Synthetic.Kind = "zipf" },
		"output: min and max must lie between 1 and 2M":              func(s *Spec) { s.Output = Length{Kind: "normal", Value: 1, Stddev: 1, Min: -1} },
		"output: wants a mean of at least 0":                         func(s *Spec) { s.Output = Length{Kind: "normal", Value: -1, Stddev: 1} },
		"output: wants a median":                                     func(s *Spec) { s.Output = Length{Kind: "lognormal", Value: 1, Sigma: nan} },
		"output: weights must be 0 or more": func(s *Spec) {
			s.Output = Length{Kind: "empirical", Values: []config.Count{1}, Weights: []float64{nan}}
		},
		"output: has no values":                        func(s *Spec) { s.Output = Length{Kind: "empirical"} },
		"prefix.tokens: must be at most":               func(s *Spec) { s.Prefix.Tokens = -1 },
		"prefix.groups: must be at most":               func(s *Spec) { s.Prefix = Prefix{Tokens: 1, Groups: -1} },
		"cap: ":                                        func(s *Spec) { s.Cap = -1 },
		"drain: must be at most":                       func(s *Spec) { s.Drain = -1 },
		"warmup.requests: must be at most":             func(s *Spec) { s.WarmUp.Requests = -1 },
		"temperature: must be between 0 and 2":         func(s *Spec) { s.Temperature = &cold },
		"labels: has 17 labels":                        func(s *Spec) { s.Labels = manyLabels(17) },
		"labels: the label \"\" or its value is empty": func(s *Spec) { s.Labels = map[string]string{"": "x"} },
	} {
		s := Spec{Arrivals: Arrivals{Poisson: fixed(8)}, For: config.Duration(time.Minute), Prompts: Prompts{Synthetic: Fixed[config.Count](4)}}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		err := s.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
		if _, err := New("w", s, nil, 1, ""); err == nil {
			t.Errorf("New makes a plan of: %s…", want)
		}
	}
}

func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprint(i)] = "x"
	}
	return labels
}

func TestRateOfAPlan(t *testing.T) {
	for text, want := range map[string]float64{
		"arrivals: {poisson: 8/s}\nfor: 5m":                              8,
		"arrivals: {constant: 8/s}\nrequests: 100":                       100 / 12.4375,
		"arrivals: {constant: 8/s}\nfor: 10s\nrequests: 1k":              8,
		"arrivals: {ramp: {from: 0/s, to: 8/s}}\nfor: 10s":               4,
		"arrivals: {ramp: {from: 0/s, to: 8/s}}\nfor: 10s\nrequests: 1k": 4,
	} {
		if got := plan(t, text+"\nprompts: {synthetic: 4}\n", 1, "").Rate(); math.Abs(got-want) > 1e-6 {
			t.Errorf("%q has the rate %v, want %v", text, got, want)
		}
	}
}

func TestStripeRefusesNonsense(t *testing.T) {
	p := plan(t, specs["constant"], 1, "")
	for _, w := range [][2]int{{0, 0}, {-1, 2}, {2, 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Stripe(%d, %d) does not panic", w[0], w[1])
				}
			}()
			p.Stripe(w[0], w[1])
		}()
	}
}

func TestAppendBinaryTellsShotsApart(t *testing.T) {
	one := 1.0
	zero := 0.0
	shots := []Shot{
		{},
		{Index: 1},
		{Workload: "a"},
		{Phase: record.WarmUp},
		{Due: 1},
		{User: 1},
		{Think: 1},
		{Session: "a"},
		{Turn: 1},
		{Tenant: "a"},
		{Case: "a"},
		{Messages: []corpus.Message{{Role: "a"}}},
		{Messages: []corpus.Message{{Content: "a"}}},
		{Messages: []corpus.Message{{}, {}}},
		{Prompt: "a"},
		{MaxTokens: 1},
		{IgnoreEOS: true},
		{Stream: true},
		{Temperature: &zero},
		{Temperature: &one},
		{Seed: 1},
		{Labels: map[string]string{"a": ""}},
		{Labels: map[string]string{"": "a"}},
		{Labels: map[string]string{"a": "", "b": ""}},
	}
	seen := map[string]int{}
	for i, s := range shots {
		b := string(encode(t, []Shot{s}))
		if j, twice := seen[b]; twice {
			t.Errorf("shots %d and %d have one encoding", i, j)
		}
		seen[b] = i
	}
}

func TestShotsAreCheapToMake(t *testing.T) {
	p := plan(t, specs["poisson"], 42, "salt")
	w := p.measured.writer()
	w.shot(alone(0), true)
	i := int64(0)
	// The text, the list of messages, the id of the case, and their growth.
	if got := testing.AllocsPerRun(500, func() { i++; w.shot(alone(i), true) }); got > 4 {
		t.Errorf("%v allocations a shot, want at most 4", got)
	}
}

func benchmarkShots(b *testing.B, text string) {
	p := plan(b, text, 42, "salt")
	b.ReportAllocs()
	n, size := 0, 0
	next := p.measured.writer()
	for b.Loop() {
		s := next.shot(alone(int64(n)), true)
		n++
		size += len(s.Messages[0].Content)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "shots/s")
	b.ReportMetric(float64(size)/float64(n), "B/prompt")
}

func BenchmarkSyntheticShots(b *testing.B) {
	benchmarkShots(b, "arrivals: {poisson: 50/s}\nrequests: 1000\nprompts: {synthetic: {lognormal: {median: 400, sigma: 0.8, max: 4k}}}\noutput: 128\nprefix: {tokens: 512, groups: 4}\n")
}

func BenchmarkShortShots(b *testing.B) {
	benchmarkShots(b, "arrivals: {poisson: 50/s}\nrequests: 1000\nprompts: {synthetic: 32}\noutput: 128\n")
}

func BenchmarkSetShots(b *testing.B) {
	benchmarkShots(b, "arrivals: {poisson: 50/s}\nrequests: 1000\nprompts: {file: chat.jsonl}\noutput: 128\n")
}

// BenchmarkOneUser walks the first 100 shots of one user of ten thousand.
func BenchmarkOneUser(b *testing.B) {
	p := plan(b, "arrivals: {concurrency: 10k}\nfor: 1h\nprompts: {synthetic: 32}\n", 42, "salt")
	for b.Loop() {
		take(p.Stripe(77, 10_000), 100)
	}
	b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "shots/s")
}

func BenchmarkDigest(b *testing.B) {
	p := plan(b, "arrivals: {poisson: 50/s}\nrequests: 100k\nprompts: {synthetic: 512}\noutput: 128\n", 42, "")
	for b.Loop() {
		p.sum()
	}
}

func TestPeakRateIsThatOfTheBusiestSecond(t *testing.T) {
	for text, want := range map[string]float64{
		"{arrivals: {constant: 50/s}, for: 10s, prompts: {synthetic: 4}, output: 2}":                                              50,
		"{arrivals: {stairs: {from: 5/s, step: 5/s, every: 5s, to: 30/s}, process: constant}, for: 30s, prompts: {synthetic: 4}}": -1,
		"{arrivals: {poisson: 40/s}, for: 60s, prompts: {synthetic: 4}, output: 2}":                                               -1,
		"{arrivals: {pulses: {requests: 30, every: 5s}}, for: 20s, prompts: {synthetic: 4}, output: 2}":                           30,
		"{arrivals: {constant: 20/s}, for: 10s, sessions: {turns: 5}, prompts: {synthetic: 4}, output: 2}":                        100,
		"{arrivals: {concurrency: 7}, requests: 50, prompts: {synthetic: 4}, output: 2}":                                          0,
	} {
		p := plan(t, text, 3, "")
		if want < 0 { // by the book
			var dues []time.Duration
			for s := range p.All() {
				dues = append(dues, s.Due)
			}
			for i, due := range dues {
				n := 0
				for _, later := range dues[i:] {
					if later-due < time.Second {
						n++
					}
				}
				want = max(want, float64(n))
			}
		}
		if got := p.PeakRate(); got != want {
			t.Errorf("%s: %v requests in the busiest second, want %v", text, got, want)
		}
	}
}
