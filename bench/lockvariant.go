package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-llm/assay/ask"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	metrics "github.com/assay-llm/assay/engine"
	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/lock"
)

// variantFacts gathers what is known of one variant.
func (r *run) variantFacts(ctx context.Context, l *lock.Lock, v *variant, asking bool) error {
	facts, err := v.requestFacts()
	if err != nil {
		return err
	}
	for name, f := range facts {
		l.Set(v.name, name, f)
	}
	if v.spec.Sim != nil {
		return simFacts(l, v)
	}
	set := func(name string, f lock.Fact) { l.Set(v.name, name, f) }
	l.Volatile[v.name+" url"] = lock.Known(v.spec.URL)
	self := metrics.Ask(ctx, v.door())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	engineFacts(set, self)
	if err := r.fileFacts(set, v, self); err != nil {
		return err
	}
	if self.Tokenizer == "" || self.Template == "" {
		counts, fingerprint := lock.NotKnown(onlyAsked), lock.NotKnown(onlyAsked)
		if asking {
			if counts, fingerprint, err = countTokens(ctx, v); err != nil {
				return err
			}
		}
		set("tokenizer.counts", counts)
		if self.Engine == "" { // else its version says more
			set("engine.fingerprint", fingerprint)
		}
	}
	if !onThisMachine(v.spec.URL) {
		if v.spec.About.Hardware == "" {
			set("hardware", lock.NotKnown("it is another machine; write about: {hardware: …}"))
		}
		return nil
	}
	r.hardwareFacts(ctx, l, v)
	return nil
}

// simFacts are of a simulated engine: its configuration is all there is to know.
func simFacts(l *lock.Lock, v *variant) error {
	text, err := config.Encode(v.spec.Sim)
	if err != nil {
		return fmt.Errorf("writing the simulated engine of %s: %w", v.name, err)
	}
	l.Set(v.name, "engine", lock.Known("sim"))
	l.Set(v.name, "engine.flag.config", lock.Known(lock.Digest(text)))
	for _, name := range []string{"weights", "tokenizer", "template", "image", "hardware"} {
		l.Set(v.name, name, lock.Known("simulated"))
	}
	return nil
}

// engineFacts are what the engine says of itself.
func engineFacts(set func(string, lock.Fact), s metrics.Self) {
	if s.Engine == "" {
		set("engine", lock.NotKnown("it answers like none of llama.cpp, vLLM, SGLang, TGI and Ollama"))
		set("engine.version", lock.NotKnown("the engine is not known"))
		set("engine.flags", lock.NotKnown("the engine is not known"))
	} else {
		set("engine", lock.Known(s.Engine))
		set("engine.version", toldFact(s.Version, "%s does not tell it", s.Engine))
		if s.Flags == nil {
			set("engine.flags", lock.NotKnown("%s does not tell them", s.Engine))
		}
	}
	for name, value := range s.Flags {
		set("engine.flag."+name, lock.Known(value))
	}
	for name, value := range s.Model {
		set("weights.told."+name, lock.Known(value))
	}
}

// toldFact is a fact with a value, or the reason why there is none.
func toldFact(value, format string, a ...any) lock.Fact {
	if value == "" {
		return lock.NotKnown(format, a...)
	}
	return lock.Known(value)
}

// fileFacts are the digests of the files that the suite names; else what the engine says.
func (r *run) fileFacts(set func(string, lock.Fact), v *variant, s metrics.Self) error {
	about := v.spec.About
	engine := cmp.Or(s.Engine, "the engine")
	why := ""
	if len(s.Failures) > 0 {
		why = " (" + s.Failures[0] + ")"
	}
	for _, f := range []struct{ name, file, told, missing string }{
		{"weights", about.Weights, s.Weights, "write about: {weights: FILE}"},
		{"tokenizer", about.Tokenizer, s.Tokenizer, "write about: {tokenizer: FILE}" + why},
		{"template", about.Template, s.Template, "write about: {template: FILE}" + why},
	} {
		if f.file == "" {
			set(f.name, toldFact(f.told, "%s does not tell; %s", engine, f.missing))
			continue
		}
		sum, err := r.fileDigest(f.file)
		if err != nil {
			return &SetupError{fmt.Errorf("reading the %s of %s: %w\n  hint: mend about: {%s: …} in the suite, or remove it", f.name, v.name, err, f.name)}
		}
		set(f.name, lock.Known(sum))
		if f.told != "" { // the server's own word stays beside that of the file
			set(f.name+".told", lock.Known(f.told))
		}
	}
	set("image", toldFact(cmp.Or(about.Image, s.Image), "%s does not tell; write about: {image: DIGEST}", engine))
	return nil
}

// largeFile is from where on hashing takes so long that the user should know.
const largeFile = 2 << 30

// mostFiles bounds the files of a folder of weights.
const mostFiles = 10_000

// fileDigest is that of a file, or of all files below a folder with their names; a name
// is relative to the suite's folder. Links to files are followed, as caches of models are made
// of them, and the name itself may be a link. A folder with a linked folder below it, or with
// no file at all, has no digest: what is not read would be taken for equal.
func (r *run) fileDigest(name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(r.suite.file), name)
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, reason(err))
	}
	if !info.IsDir() {
		return r.hash(name, info)
	}
	root, err := filepath.EvalSymlinks(name) // a walk does not enter a link
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, reason(err))
	}
	sum := sha256.New()
	n := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return err
		case info.IsDir() && !d.IsDir():
			return fmt.Errorf("%s is a link to a folder, which is not followed: name that folder, or copy it", path)
		case info.IsDir():
			return nil
		}
		if n++; n > mostFiles {
			return fmt.Errorf("it has more than %d files", mostFiles)
		}
		own, err := r.hash(path, info)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		fmt.Fprintf(sum, "%q %s\n", filepath.ToSlash(below), own)
		return err
	})
	if err == nil && n == 0 {
		err = errors.New("there is no file in it")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, reason(err))
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

func (r *run) hash(name string, info fs.FileInfo) (string, error) {
	if !info.Mode().IsRegular() {
		return "", errors.New("it is no plain file")
	}
	state := fileState{name, info.Size(), info.ModTime()}
	if sum, ok := r.suite.sums.Load(state); ok {
		return sum.(string), nil
	}
	if info.Size() > largeFile {
		r.opts.Notice("reading %s for its digest: %d GiB", name, info.Size()>>30)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	text := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	r.suite.sums.Store(state, text)
	return text, nil
}

// fileState is what tells that a file was not written since it was read by this process.
type fileState struct {
	name     string
	size     int64
	modified time.Time
}

// door is how the engine is reached for questions about itself: as the API is.
func (v *variant) door() metrics.Door {
	t := v.target
	transport := &http.Transport{DisableKeepAlives: true, DialContext: t.Dial, MaxResponseHeaderBytes: 64 << 10}
	if u, err := url.Parse(t.Proxy); err == nil && t.Proxy != "" {
		transport.Proxy = http.ProxyURL(u)
	}
	if len(t.CA) > 0 {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(t.CA) // checked with the target
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	header := make(http.Header)
	for name, value := range t.Headers {
		header.Set(name, value)
	}
	if t.Key != "" {
		header.Set("Authorization", "Bearer "+t.Key)
	}
	return metrics.Door{URL: t.URL, Model: t.Model, Header: header, Client: &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// probes are asked for the number of their tokens: it tells tokenizers and templates
// apart, though not for certain.
var probes = []string{
	"hello", "The quick Brown fox can't jump 12345.678 times.", "if (x != y) { return  \"naïve\"; }\n\n\t// end", "语言模型的分词与模板 🙂",
}

// onlyAsked says why a run without a lock does not know what questions would tell.
const onlyAsked = "only assay lock and assay run --locked ask for it"

// countTokens asks the probes, each for one token of answer, and returns how many tokens
// the server counted in them, and what it calls itself.
func countTokens(ctx context.Context, v *variant) (counts, fingerprint lock.Fact, err error) {
	counts, fingerprint = lock.NotKnown("it counts no tokens of prompts"), lock.Known("none")
	if !slices.Contains([]string{"", llm.APIChat, llm.APICompletions, llm.APIMessages, llm.APIResponses, llm.APIOllama}, v.spec.API) {
		return counts, fingerprint, nil
	}
	a, err := ask.New(v.name, v.target)
	if err != nil {
		return counts, fingerprint, &TargetError{v.name, err}
	}
	defer a.Close()
	var each []string
	zero := 0.0
	for _, text := range probes {
		answer, err := a.Ask(ctx, &check.Question{Messages: []corpus.Message{{Role: "user", Content: text}}, MaxTokens: 1, Temperature: &zero})
		if err != nil {
			return counts, fingerprint, err
		}
		if !answer.Answered() {
			why := lock.NotKnown("a short question has no answer: %s", answer.Detail)
			return why, why, nil
		}
		if answer.Fingerprint != "" {
			fingerprint = lock.Known(answer.Fingerprint)
		}
		n, ok := answer.Prompt.N()
		if !ok {
			return counts, fingerprint, nil
		}
		each = append(each, strconv.FormatInt(n, 10))
	}
	return lock.Known(strings.Join(each, " ")), fingerprint, nil
}

// onThisMachine reports whether an address is of the loopback.
func onThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// smiTimeout bounds nvidia-smi, which hangs on a sick driver.
const smiTimeout = 10 * time.Second

// hardwareFacts are of this machine, on which the variant is served, too.
func (r *run) hardwareFacts(ctx context.Context, l *lock.Lock, v *variant) {
	set := func(name string, f lock.Fact) { l.Set(v.name, name, f) }
	set("hardware.cpu", toldFact(strings.TrimSpace(r.manifest.Host["cpu"]+" x"+r.manifest.Host["cores"]), "this system does not tell"))
	if _, err := exec.LookPath("nvidia-smi"); err != nil {
		set("gpu.model", lock.Known("none seen: there is no nvidia-smi"))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, smiTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, "nvidia-smi", "-q", "-x").Output()
	var gpus []host.GPU
	if err == nil {
		gpus, err = host.ParseGPUs(text)
	}
	if err != nil {
		set("gpu.model", lock.NotKnown("nvidia-smi: %v", err))
		return
	}
	gpuFacts(set, func(name string, f lock.Fact) { l.Volatile[v.name+" "+name] = f }, gpus)
}

// gpuFacts are those of all GPUs of the machine.
func gpuFacts(set, volatile func(string, lock.Fact), gpus []host.GPU) {
	all := func(of func(host.GPU) string) lock.Fact {
		var each []string
		for _, g := range gpus {
			each = append(each, cmp.Or(of(g), "?"))
		}
		if slices.Contains(each, "?") {
			return lock.NotKnown("nvidia-smi does not tell")
		}
		if len(slices.Compact(slices.Clone(each))) == 1 {
			return lock.Known(fmt.Sprintf("%d x %s", len(each), each[0]))
		}
		return lock.Known(strings.Join(each, ", "))
	}
	set("gpu.model", all(func(g host.GPU) string { return g.Model }))
	set("gpu.memory", all(func(g host.GPU) string { return g.Memory }))
	set("gpu.mig", all(func(g host.GPU) string { return cmp.Or(g.MIG, "none") }))
	set("gpu.ecc", all(func(g host.GPU) string { return cmp.Or(g.ECC, "none") }))
	set("gpu.driver", all(func(g host.GPU) string { return g.Driver }))
	set("gpu.power_limit", all(func(g host.GPU) string { return g.PowerLimit }))
	set("gpu.clock_limit", all(func(g host.GPU) string { return g.ClockLimit }))
	volatile("gpu serials", all(func(g host.GPU) string { return cmp.Or(g.Serial, g.UUID) }))
	volatile("gpu vbios", all(func(g host.GPU) string { return g.VBIOS }))
}
