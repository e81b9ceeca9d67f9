package audit

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/pace"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
)

// vendor is a model server that can do the auditor's tasks, and cheats on
// request. It runs in virtual time; each sleep here is in a bubble.
type vendor struct {
	// How it is, honestly.
	noise       float64 // sigma of a lognormal factor of each wait
	tails       float64 // share of waits that take ten times as long
	batching    float64 // how much slower a token gets with each other request in flight
	unsteady    float64 // share of answers at temperature 0 that come out in other words
	mistakes    float64 // share of tasks that it gets wrong
	prefill     time.Duration
	chatty      bool // puts words around its answers
	helpless    bool // cannot do tasks
	prefixCache bool
	tellCached  bool
	refuse      float64 // share of requests that get 429
	noUsage     bool
	whole       bool // sends a stream's text in one event
	context     int  // tokens; more is refused

	// What it does wrong.
	cacheAnswers  bool // replays the answer to a prompt that it knows
	cacheGreedy   bool // … at temperature 0 only
	cacheSlowly   bool // … at the pace of the first time
	cacheAlike    bool // … also to a prompt that looks like it
	cutPrompt     int  // tokens kept of a prompt, the last ones
	cutUsage      bool // … and usage tells the kept ones
	cutMiddle     bool // keeps both ends instead
	cutOutput     int  // tokens of an answer at most
	cutFinish     string
	cutLies       bool    // … and usage says that the limit was reached
	padUsage      float64 // factor on completion tokens
	padBlank      int     // blanks behind each answer
	padWord       int     // times that the last word is repeated
	padBehind     bool    // text behind finish_reason
	fakeFirst     string  // sent at once
	fakeAbove     int     // … if more are in flight
	junkAbove     int     // more in flight get junk
	shortAbove    int     // more in flight get short answers
	otherAbove    int     // more in flight get another build
	otherModel    float64 // share of requests answered by another model
	takes         int     // stories in flight at once; more get 429
	spit          string  // behind each answer
	dies          int     // refuses all connections' requests after so many
	ignoreStop    bool
	ignoreN       bool
	ignoreSampler bool // always greedy

	mu       *sync.Mutex
	rng      *rand.Rand
	asked    int
	inFlight int
	answered map[string]string
	seen     map[string]bool
}

// tokensOf cuts ASCII text into its tokens: up to 8 letters or 3 digits with the
// blank before them, or one other character.
func tokensOf(text string) (out []string) {
	class := func(c byte) int {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			return 8
		case '0' <= c && c <= '9':
			return 3
		}
		return 1
	}
	for len(text) > 0 {
		n := 1
		if text[0] == ' ' && len(text) > 1 && class(text[1]) > 1 {
			n = 2
		}
		most := class(text[n-1])
		for start := n - 1; n < len(text) && n-start < most && class(text[n]) == most; {
			n++
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func (v *vendor) draw(f func(*rand.Rand)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f(v.rng)
}

func (v *vendor) chance(p float64) (hit bool) {
	v.draw(func(r *rand.Rand) { hit = r.Float64() < p })
	return hit
}

// wait sleeps for about d; an answer whose client has left gets no more time.
func (v *vendor) wait(ctx context.Context, d time.Duration, others int) {
	factor := 1.0
	v.draw(func(r *rand.Rand) {
		factor = math.Exp(v.noise * r.NormFloat64())
		if r.Float64() < v.tails {
			factor *= 10
		}
	})
	sleep(ctx, time.Duration(float64(d)*factor*(1+v.batching*float64(others))))
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		_, _ = w.Write(llm.AppendModels(nil, 0, "m"))
		return
	}
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.asked++
	dead := v.dies > 0 && v.asked > v.dies
	v.mu.Unlock()
	if dead {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	q, err := llm.ParseRequest(body)
	if err != nil || v.chance(v.refuse) {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	prompt := q.Prompt
	for _, m := range q.Messages {
		prompt += m.Content
	}
	tokens := tokensOf(prompt)
	if v.context > 0 && len(tokens) > v.context || q.N > 1 && !v.ignoreN {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(llm.AppendError(nil, 400, "invalid_request_error", "not possible"))
		return
	}
	v.mu.Lock()
	v.inFlight++
	others := v.inFlight - 1
	v.mu.Unlock()
	defer func() { v.mu.Lock(); v.inFlight--; v.mu.Unlock() }()
	if v.takes > 0 && others >= v.takes && strings.Contains(prompt, "Write a story") {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	v.answer(r.Context(), w, q, prompt, tokens, others)
}

func (v *vendor) answer(ctx context.Context, w http.ResponseWriter, q *llm.ChatRequest, prompt string, tokens []string, others int) {
	usage := &llm.Usage{Prompt: int64(len(tokens) + 9)}
	read := prompt
	if n := v.cutPrompt; n > 0 && len(tokens) > n {
		read = strings.Join(tokens[len(tokens)-n:], "")
		if v.cutMiddle {
			read = strings.Join(tokens[:n/2], "") + strings.Join(tokens[len(tokens)-n/2:], "")
		}
		if v.cutUsage {
			usage.Prompt = int64(n + 9)
		}
	}
	text, known := v.generate(q, prompt, read, others)
	fresh := v.fresh(prompt, len(tokens), usage)
	out, finish := v.limit(q, text, others)
	usage.Output = int64(len(out)) + 1
	if finish == "length" {
		usage.Output--
	}
	if v.cutLies && len(out) == v.cutOutput {
		usage.Output = q.MaxTokens // the lie
	}
	if v.padUsage > 0 {
		usage.Output = min(int64(float64(usage.Output)*v.padUsage), max(q.MaxTokens, usage.Output))
	}
	prefill := 5*time.Millisecond + time.Duration(fresh)*v.prefill
	pace := 8 * time.Millisecond
	if known && !v.cacheSlowly {
		prefill, pace = time.Millisecond, 20*time.Microsecond
	}
	if v.noUsage {
		usage = nil
	}
	s := &stream{v: v, w: w, q: q, others: others, chunk: llm.Chunk{API: q.API, ID: "x", Model: "m"}}
	if v.chance(v.otherModel) {
		s.chunk.Model = "m-mini"
	}
	s.build = "fp_1"
	if v.otherAbove > 0 && others >= v.otherAbove {
		s.build = "fp_2"
	}
	s.send(ctx, out, finish, usage, prefill, pace)
}

// fresh is how many tokens must be prefilled.
func (v *vendor) fresh(prompt string, n int, usage *llm.Usage) int {
	if v.cutPrompt > 0 {
		n = min(n, v.cutPrompt)
	}
	if !v.prefixCache {
		return n
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	head := prompt[:len(prompt)*3/4]
	hit := v.seen[head]
	v.seen[head] = true
	if v.tellCached {
		usage.Cached = record.Tokens(0)
	}
	if !hit {
		return n
	}
	if v.tellCached {
		usage.Cached = record.Tokens(int64(n * 3 / 4))
	}
	return n / 4
}

// limit cuts the text into the tokens that are sent.
func (v *vendor) limit(q *llm.ChatRequest, text string, others int) (out []string, finish string) {
	if !v.ignoreStop {
		for _, stop := range q.Stop {
			text, _, _ = strings.Cut(text, stop)
		}
	}
	out, finish = tokensOf(text), "stop"
	if v.shortAbove > 0 && others >= v.shortAbove {
		out = out[:(len(out)+1)/2]
	}
	if q.MaxTokens > 0 && int64(len(out)) > q.MaxTokens {
		out, finish = out[:q.MaxTokens], "length"
	}
	if v.cutOutput > 0 && len(out) > v.cutOutput {
		out, finish = out[:v.cutOutput], v.cutFinish
	}
	for range v.padBlank {
		out = append(out, " ")
	}
	for range v.padWord {
		out = append(out, " indeed")
	}
	return out, finish
}

// generate gives the text of an answer; known says that it was remembered.
func (v *vendor) generate(q *llm.ChatRequest, prompt, read string, others int) (text string, known bool) {
	key := prompt
	if v.cacheAlike {
		key = regexp.MustCompile(`[a-z]+-[0-9]{4}`).ReplaceAllString(key, "#")
	}
	greedy := q.Temperature != nil && *q.Temperature == 0
	v.mu.Lock()
	defer v.mu.Unlock()
	remember := v.cacheAnswers && (!v.cacheGreedy || greedy)
	if old, ok := v.answered[key]; remember && ok {
		return old, true
	}
	h := fnv.New64a()
	h.Write([]byte(read))
	source := rand.New(rand.NewPCG(h.Sum64(), 1))
	if !greedy && !v.ignoreSampler || v.rng.Float64() < v.unsteady {
		source = v.rng
	}
	text = v.write(read, source) + v.spit
	if v.junkAbove > 0 && others >= v.junkAbove {
		text = corpus.Words(v.rng, int64(len(tokensOf(text))))
	}
	if remember {
		v.answered[key] = text
	}
	return text, false
}

var (
	askRepeat = regexp.MustCompile(`Repeat this code and write nothing else: (\S+)`)
	askCode   = regexp.MustCompile(`The code is (\S+)\. Write the code`)
	askLabel  = regexp.MustCompile(`What is the code of ([A-Z]+)\?`)
	askSum    = regexp.MustCompile(`What is ([0-9]+) \+ ([0-9]+)\?`)
	askCount  = regexp.MustCompile(`Count from 1 to ([0-9]+)\.`)
)

// write is the model.
func (v *vendor) write(prompt string, rng *rand.Rand) string {
	if v.helpless {
		return corpus.Words(rng, 12+rng.Int64N(300))
	}
	wrong := v.rng.Float64() < v.mistakes
	say := func(s string) string {
		if wrong {
			s = "unknown"
		}
		if v.chatty {
			return "Sure! The answer is " + s + ". Let me know if you need more."
		}
		return s
	}
	switch {
	case askRepeat.MatchString(prompt):
		return say(askRepeat.FindStringSubmatch(prompt)[1])
	case askCode.MatchString(prompt):
		return say(askCode.FindStringSubmatch(prompt)[1]) + " " + corpus.Words(rng, 20)
	case askLabel.MatchString(prompt):
		m := regexp.MustCompile(`The code of ` + askLabel.FindStringSubmatch(prompt)[1] + ` is (\S+)\.`).FindStringSubmatch(prompt)
		if m == nil {
			return say("nowhere")
		}
		return say(m[1])
	case askSum.MatchString(prompt):
		m := askSum.FindStringSubmatch(prompt)
		x, _ := strconv.Atoi(m[1])
		y, _ := strconv.Atoi(m[2])
		return say(strconv.Itoa(x + y))
	case askCount.MatchString(prompt):
		n, _ := strconv.Atoi(askCount.FindStringSubmatch(prompt)[1])
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d ", i+1)
		}
		return strings.TrimSpace(b.String())
	case strings.Contains(prompt, "Write a story"):
		return corpus.Words(rng, 100+rng.Int64N(500)) + "."
	case strings.Contains(prompt, "Write one paragraph"):
		return corpus.Words(rng, 50+rng.Int64N(50)) + "."
	case strings.Contains(prompt, "Write a sentence"):
		return corpus.Words(rng, 8+rng.Int64N(10)) + "."
	}
	return "OK."
}

// stream writes one answer.
type stream struct {
	v      *vendor
	w      http.ResponseWriter
	q      *llm.ChatRequest
	others int
	chunk  llm.Chunk
	build  string
}

func (s *stream) json(b []byte) []byte { // with the build, which llm.Chunk does not know
	return append(b[:len(b)-1], (`,"system_fingerprint":"` + s.build + `"}`)...)
}

func (s *stream) event(change func(*llm.Chunk)) {
	c := s.chunk
	change(&c)
	_, _ = s.w.Write(llm.AppendEvent(nil, 0, s.json(llm.AppendChunk(nil, &c)))) // the client may be gone
	_ = http.NewResponseController(s.w).Flush()
}

func (s *stream) send(ctx context.Context, out []string, finish string, usage *llm.Usage, prefill, pace time.Duration) {
	v := s.v
	if !s.q.Stream {
		v.wait(ctx, prefill+time.Duration(len(out))*pace, s.others)
		c := s.chunk
		c.Role, c.Content, c.Finish, c.Usage = "assistant", strings.Join(out, ""), finish, usage
		s.w.Header().Set("Content-Type", "application/json")
		_, _ = s.w.Write(s.json(llm.AppendAnswer(nil, &c))) // the client may be gone
		return
	}
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.event(func(c *llm.Chunk) { c.Role = "assistant" })
	if v.fakeFirst != "" && s.others >= v.fakeAbove {
		v.wait(ctx, 2*time.Millisecond, 0)
		s.event(func(c *llm.Chunk) { c.Content = v.fakeFirst })
	}
	v.wait(ctx, prefill, s.others)
	if v.whole {
		v.wait(ctx, time.Duration(len(out))*pace, s.others)
		out = []string{strings.Join(out, "")}
	}
	for i, piece := range out {
		if i > 0 {
			v.wait(ctx, pace, s.others)
		}
		s.event(func(c *llm.Chunk) { c.Content = piece })
	}
	s.event(func(c *llm.Chunk) { c.Finish = finish })
	if v.padBehind {
		s.event(func(c *llm.Chunk) { c.Content = " and more" })
	}
	if usage != nil {
		s.event(func(c *llm.Chunk) { c.UsageOnly, c.Usage = true, usage })
	}
	_, _ = s.w.Write(llm.AppendDone(nil))
}

// audited runs an audit of a vendor in virtual time.
func audited(t *testing.T, v *vendor, seed uint64, cfg Config) (*Report, error) {
	t.Helper()
	return auditedIn(t.Context(), t, v, seed, cfg)
}

func auditedIn(outer context.Context, t *testing.T, v *vendor, seed uint64, cfg Config) (r *Report, err error) {
	t.Helper()
	v.mu, v.rng, v.answered, v.seen = new(sync.Mutex), rand.New(rand.NewPCG(seed, 77)), map[string]string{}, map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		if watch := cfg.Watch; watch != nil {
			cfg.Watch = func(p Progress) {
				if watch(p); outer.Err() != nil { // contexts of other bubbles do not wake this one
					cancel(context.Cause(outer))
				}
			}
		}
		r, err = auditHandler(ctx, t, v, seed, cfg)
	})
	return r, err
}

// auditHandler audits a handler over a network in memory, in a bubble.
func auditHandler(ctx context.Context, t *testing.T, h http.Handler, seed uint64, cfg Config) (*Report, error) {
	t.Helper()
	n := sim.NewNetwork()
	n.Latency = time.Millisecond
	l, err := n.Listen("vendor:80")
	if err != nil {
		t.Fatal(err)
	}
	hs := &http.Server{Handler: h}
	var wg sync.WaitGroup
	wg.Go(func() { _ = hs.Serve(l) }) // ends with the audit
	cfg.Target.URL, cfg.Target.Model, cfg.Target.Dial, cfg.Target.Timeout = "http://vendor:80/v1", "m", n.DialContext, time.Hour
	cfg.Seed, cfg.Virtual = seed, true
	r, err := Run(ctx, cfg)
	time.Sleep(time.Hour) // what was abandoned ends
	hs.Close()
	wg.Wait()
	return r, err
}

// simulated audits the simulated engine.
func simulated(t *testing.T, text string, seed uint64) *Report {
	t.Helper()
	c := sim.Config{Seed: seed}
	if err := config.Decode("sim", []byte(text), &c); err != nil {
		t.Fatal(err)
	}
	s, err := sim.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Waiter = pace.Plain()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) }) // ends with the audit
	r, err := auditHandler(ctx, t, s, seed, Config{Budget: Quick})
	cancel()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// show is a report on a few lines.
func show(r *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %v\n", r.Grade, r.Reason, r.Asked)
	for _, p := range r.Probes {
		fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Grade)
		for _, c := range p.Checks {
			if c.Grade != contract.Pass {
				fmt.Fprintf(&b, "  %s: %s: %s %.300v\n", c.Name, c.Grade, c.Reason, c.Evidence)
			}
		}
	}
	return b.String()
}
