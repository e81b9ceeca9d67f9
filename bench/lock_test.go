package bench

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/lock"
)

// write writes a file into a folder of the test.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// refusedBy are the fields by which a run is refused; nil: it is not.
func refusedBy(t *testing.T, file string, l *lock.Lock) (paths []string) {
	t.Helper()
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	runs := t.TempDir()
	r, err := Run(t.Context(), s, Options{Runs: runs, Lock: &Held{"test.lock", l}})
	var refused *LockError
	switch {
	case errors.As(err, &refused):
		if left, _ := os.ReadDir(runs); len(left) > 0 {
			t.Error("a run that is refused leaves a directory")
		}
		for _, f := range refused.Refused {
			if text := err.Error(); !strings.Contains(text, f.Path+": expected "+f.A.String()+", found "+f.B.String()) || !strings.Contains(text, "hint: ") {
				t.Errorf("the message says %q", text)
			}
			paths = append(paths, f.Path)
		}
	case err != nil:
		t.Fatal(err)
	case r.Manifest.Lock == nil || r.Manifest.Lock.Held != "test.lock":
		t.Errorf("the manifest says %+v", r.Manifest.Lock)
	}
	return paths
}

func lockOf(t *testing.T, file string) *lock.Lock {
	t.Helper()
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Lock(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// fakeEngine answers as an engine that tells nothing of itself, or as llama.cpp.
type fakeEngine struct {
	mu            sync.Mutex // a request may outlive the run that sent it
	props, tokens string
	count         int // tokens of every prompt
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := map[string]string{"/props": f.props, "/tokenize": f.tokens, "/v1/models": `{"object":"list","data":[{"id":"m"}]}`}[r.URL.Path]
	if strings.HasSuffix(r.URL.Path, "/chat/completions") {
		answer = fmt.Sprintf(`{"model":"m","system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"length"}],"usage":{"prompt_tokens":%d,"completion_tokens":1,"total_tokens":9}}`, f.count)
	}
	if answer == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, answer)
}

const lockSuite = `version: 1
name: locked # with a comment
seed: 1
variants:
  candidate: {url: "%s/v1", model: m%s}
workloads:
  chat: {arrivals: {concurrency: 1}, requests: 2, stream: false, prompts: {file: prompts.jsonl}}
`

// TestLockRefusesWhatHasChanged changes one thing at a time, and the run names it.
func TestLockRefusesWhatHasChanged(t *testing.T) {
	const prompts, props = `{"prompt": "one"}` + "\n" + `{"prompt": "two"}` + "\n", `{"default_generation_settings":{"n_ctx":512,"params":{"top_k":40}},"total_slots":4,"chat_template":"A","build_info":"b1"}`
	e := &fakeEngine{props: props, tokens: `{"tokens":[1,2]}`, count: 3}
	server := httptest.NewServer(e)
	defer server.Close()
	dir := t.TempDir()
	about := ", about: {weights: model.gguf, image: 'sha256:1', hardware: h100 x1}"
	weights := write(t, dir, "model.gguf", "weights")
	data := write(t, dir, "prompts.jsonl", prompts)
	file := write(t, dir, "suite.yaml", fmt.Sprintf(lockSuite, server.URL, about))
	l := lockOf(t, file)
	if unknown := l.Unknown(); len(unknown) > 0 {
		t.Errorf("not known: %v", unknown)
	}
	for _, c := range []struct {
		name string
		do   func()
		want []string
	}{
		{"nothing", func() {}, nil},
		{"comments and order", func() {
			write(t, dir, "suite.yaml", "# new\n"+strings.Replace(fmt.Sprintf(lockSuite, server.URL, about), "name: locked # with a comment\nseed: 1\n", "seed: 1\nname: locked\n", 1))
		}, nil},
		{"weights", func() { write(t, dir, "model.gguf", "Weights") }, []string{"variants.candidate.weights"}},
		{"data", func() { write(t, dir, "prompts.jsonl", strings.Replace(prompts, "two", "three", 1)) }, []string{"data.prompts.jsonl", "seeds.plan chat"}},
		{"a flag", func() { e.props = strings.Replace(props, `"n_ctx":512`, `"n_ctx":1024`, 1) }, []string{"variants.candidate.engine.flag.n_ctx"}},
		{"a default of sampling", func() { e.props = strings.Replace(props, `"top_k":40`, `"top_k":1`, 1) }, []string{"variants.candidate.engine.flag.sampling.top_k"}},
		{"template", func() { e.props = strings.Replace(props, `"A"`, `"B"`, 1) }, []string{"variants.candidate.template"}},
		{"version", func() { e.props = strings.Replace(props, `"b1"`, `"b2"`, 1) }, []string{"variants.candidate.engine.version"}},
		{"tokenizer", func() { e.tokens = `{"tokens":[1,3]}` }, []string{"variants.candidate.tokenizer"}},
		{"tokenizer not told any more", func() { e.tokens = "" }, []string{"variants.candidate.tokenizer", "variants.candidate.tokenizer.counts"}},
		{"workload", func() {
			write(t, dir, "suite.yaml", strings.Replace(fmt.Sprintf(lockSuite, server.URL, about), "stream: false", "stream: false, temperature: 1", 1))
		}, []string{"seeds.plan chat", "test.workload chat"}},
		{"image", func() {
			write(t, dir, "suite.yaml", strings.Replace(fmt.Sprintf(lockSuite, server.URL, about), "sha256:1", "sha256:2", 1))
		}, []string{"variants.candidate.image"}},
		{"seed", func() {
			write(t, dir, "suite.yaml", strings.Replace(fmt.Sprintf(lockSuite, server.URL, about), "seed: 1", "seed: 2", 1))
		}, []string{"seeds.plan chat", "seeds.run"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.mu.Lock()
			e.props, e.tokens = props, `{"tokens":[1,2]}`
			write(t, dir, filepath.Base(weights), "weights")
			write(t, dir, filepath.Base(data), prompts)
			write(t, dir, "suite.yaml", fmt.Sprintf(lockSuite, server.URL, about))
			c.do()
			e.mu.Unlock()
			if got := refusedBy(t, file, l); !sameSet(got, c.want) {
				t.Errorf("refused by %v, want %v", got, c.want)
			}
		})
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// TestLockOfASilentServer says what it could not learn, and holds the server by how many
// tokens it counts.
func TestLockOfASilentServer(t *testing.T) {
	e := &fakeEngine{count: 3}
	server := httptest.NewServer(e)
	defer server.Close()
	dir := t.TempDir()
	write(t, dir, "prompts.jsonl", `{"prompt": "one"}`+"\n")
	file := write(t, dir, "suite.yaml", fmt.Sprintf(lockSuite, server.URL, ""))
	l := lockOf(t, file)
	for name, want := range map[string]string{"tokenizer.counts": "3 3 3 3", "engine.fingerprint": "fp", "weights.told.id": "m"} {
		if got := l.Variants["candidate"][name]; got.Value != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
	for _, name := range []string{"engine", "engine.version", "engine.flags", "weights", "tokenizer", "template", "image"} {
		if got := l.Variants["candidate"][name]; got.Value != "" || got.Unknown == "" {
			t.Errorf("%s is %v, want unknown with a reason", name, got)
		}
	}
	if got := refusedBy(t, file, l); got != nil {
		t.Errorf("refused by %v", got)
	}
	e.mu.Lock()
	e.count = 4 // another tokenizer, or another template
	e.mu.Unlock()
	if got := refusedBy(t, file, l); !sameSet(got, []string{"variants.candidate.tokenizer.counts"}) {
		t.Errorf("refused by %v, want the counts of tokens", got)
	}
}

// TestRunFollowsTheSeedOfItsLock where neither suite nor options name one.
func TestRunFollowsTheSeedOfItsLock(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "suite.yaml", "version: 1\nname: s\nvariants: {candidate: {sim: {}}}\nworkloads: {w: {arrivals: {concurrency: 1}, requests: 2, prompts: {synthetic: 5}, output: 1}}\n")
	l := lockOf(t, file)
	if got := refusedBy(t, file, l); got != nil {
		t.Errorf("refused by %v", got)
	}
	if unknown := l.Unknown(); len(unknown) > 0 {
		t.Errorf("of a simulated engine it is not known: %v", unknown)
	}
}

// TestRunsWriteDownWhatTheyDependOn: two runs of one suite are identical, and the digest
// is in manifest and report.
func TestRunsWriteDownWhatTheyDependOn(t *testing.T) {
	dir := t.TempDir()
	s, err := Load(write(t, dir, "suite.yaml", "version: 1\nname: s\nseed: 5\nvariants: {candidate: {sim: {}}}\nworkloads: {w: {arrivals: {concurrency: 1}, requests: 2, prompts: {synthetic: 5}, output: 1}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var locks []*lock.Lock
	for range 2 {
		r, err := Run(t.Context(), s, Options{Runs: filepath.Join(dir, "runs")})
		if err != nil {
			t.Fatal(err)
		}
		l, err := Depends(r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Report.Run.Lock; d == nil || d.Digest != l.Digest() || r.Manifest.Lock.Digest != l.Digest() {
			t.Errorf("the report has %+v, want the digest %s", d, l.Digest())
		}
		locks = append(locks, l)
	}
	if d := lock.Compare(locks[0], locks[1]); d.Class != lock.Identical || !d.Proven() {
		t.Errorf("two runs of one suite are %v: %s", d.Class, d.Reason)
	}
}

// TestFolderDigest follows names, contents and links of files, not their order.
func TestFolderDigest(t *testing.T) {
	dir := t.TempDir()
	s, err := Load(write(t, dir, "suite.yaml", "version: 1\nname: s\nvariants: {candidate: {sim: {}}}\nworkloads: {w: {arrivals: {concurrency: 1}, requests: 2, prompts: {synthetic: 5}, output: 1}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(s, Options{})
	sum := func() string {
		t.Helper()
		d, err := r.fileDigest("model")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	write(t, dir, "model/a.safetensors", "1")
	write(t, dir, "model/sub/b.json", "2")
	first := sum()
	if sum() != first {
		t.Error("the digest of one folder differs")
	}
	write(t, dir, "model/sub/b.json", "3")
	second := sum()
	blob := write(t, dir, "blobs/b", "3")
	if err := os.Remove(filepath.Join(dir, "model/sub/b.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(blob, filepath.Join(dir, "model/sub/b.json")); err != nil {
		t.Fatal(err)
	}
	if third := sum(); second == first || third != second {
		t.Errorf("digests %s, %s and of the link %s", first, second, third)
	}
	if err := os.Symlink(filepath.Join(dir, "model"), filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	if d, err := r.fileDigest("current"); err != nil || d != second {
		t.Errorf("a link to the folder has digest %s, %v; want that of the folder, %s", d, err, second)
	}
	write(t, dir, "outer/config.json", "1")
	if err := os.Symlink(filepath.Join(dir, "model"), filepath.Join(dir, "outer/weights")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"outer": "is a link to a folder", "empty": "there is no file in it"} {
		if d, err := r.fileDigest(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("what is not read of %s is in the digest %s, %v; want an error that %s", name, d, err, want)
		}
	}
	if _, err := r.fileDigest("nothing"); err == nil || !strings.Contains(err.Error(), "there is no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestGPUFacts keeps what is not told unknown, and serial numbers volatile.
func TestGPUFacts(t *testing.T) {
	facts, loose := lock.Part{}, lock.Part{}
	put := func(into lock.Part) func(string, lock.Fact) { return func(n string, f lock.Fact) { into[n] = f } }
	h100 := host.GPU{Model: "H100", Memory: "81559 MiB", Driver: "590", PowerLimit: "700 W", ClockLimit: "1980 MHz", UUID: "GPU-1", Serial: "1", VBIOS: "96"}
	other := h100
	other.PowerLimit, other.ClockLimit, other.Serial, other.UUID = "500 W", "", "", "GPU-2"
	gpuFacts(put(facts), put(loose), []host.GPU{h100, other})
	for name, want := range map[string]string{"gpu.model": "2 x H100", "gpu.power_limit": "700 W, 500 W", "gpu.mig": "2 x none", "gpu.driver": "2 x 590"} {
		if facts[name].Value != want {
			t.Errorf("%s is %v, want %s", name, facts[name], want)
		}
	}
	if f := facts["gpu.clock_limit"]; f.Value != "" || f.Unknown == "" {
		t.Errorf("a clock that one GPU does not tell is %v", f)
	}
	if loose["gpu serials"].Value != "1, GPU-2" {
		t.Errorf("serials %v", loose["gpu serials"])
	}
}

// TestEngineIsHeldToItsLock holds llama.cpp: a changed model file, flag, template and data
// set are refused by name.
func TestEngineIsHeldToItsLock(t *testing.T) {
	e := startEngine(t) // for its weights
	if !e.trained {
		t.Skip("the trained model is not there")
	}
	model, err := filepath.Abs(stories)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plain := write(t, dir, "plain.jinja", "{% for m in messages %}{{ m.content }} {% endfor %}")
	other := write(t, dir, "other.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}")
	copied := write(t, dir, "stories.gguf", string(weights))
	write(t, dir, "prompts.jsonl", `{"prompt": "Once upon a time"}`+"\n")
	suite := func(url string) string {
		return write(t, dir, "suite.yaml", strings.Replace(fmt.Sprintf(lockSuite, url, ", about: {weights: stories.gguf, image: none}"), "prompts.jsonl}", "prompts.jsonl}, output: 4", 1))
	}
	url := runEngine(t, model, 512, plain)
	l := lockOf(t, suite(url))
	if unknown := l.Unknown(); len(unknown) > 0 {
		t.Errorf("of llama.cpp it is not known: %v", unknown)
	}
	if got := refusedBy(t, suite(url), l); got != nil {
		t.Errorf("nothing has changed, and it is refused by %v", got)
	}
	if got := refusedBy(t, suite(runEngine(t, model, 256, plain)), l); !sameSet(got, []string{"variants.candidate.engine.flag.n_ctx"}) {
		t.Errorf("another context is refused by %v", got)
	}
	if got := refusedBy(t, suite(runEngine(t, model, 512, other)), l); !sameSet(got, []string{"variants.candidate.template"}) {
		t.Errorf("another template is refused by %v", got)
	}
	write(t, dir, filepath.Base(copied), string(weights)+"x")
	if got := refusedBy(t, suite(url), l); !sameSet(got, []string{"variants.candidate.weights"}) {
		t.Errorf("another model file is refused by %v", got)
	}
	write(t, dir, filepath.Base(copied), string(weights))
	write(t, dir, "prompts.jsonl", `{"prompt": "Once upon a day"}`+"\n")
	if got := refusedBy(t, suite(url), l); !sameSet(got, []string{"data.prompts.jsonl", "seeds.plan chat"}) {
		t.Errorf("another set is refused by %v", got)
	}
}
