package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
)

// The budgets: how many questions are asked. See Config.Plan.
const (
	Quick    = "quick"
	Standard = "standard" // the default
	Thorough = "thorough"
)

// sizes are the numbers of questions of the probes.
type sizes struct {
	cache  int // prompts at each of two temperatures; each is asked three times, and once with a word changed
	recall int // prompts for each of three places in each of two lengths
	short  int // short prompts of the same kind
	count  int // counts to a high number, and to a low one
	story  int // stories, idle
	echo   int // paragraphs that are sent back to be counted
	start  int // pairs of a short and a long prompt
	agree  int // prompts asked streamed and whole
	task   int // tasks asked idle and under load
	obey   int // questions with a stop word, and with n: 2
}

var budgets = map[string]sizes{
	Quick:    {cache: 12, recall: 8, short: 8, count: 8, story: 10, echo: 8, start: 12, agree: 8, task: 40, obey: 6},
	Standard: {cache: 20, recall: 10, short: 12, count: 10, story: 16, echo: 12, start: 20, agree: 12, task: 60, obey: 8},
	Thorough: {cache: 40, recall: 14, short: 20, count: 20, story: 32, echo: 20, start: 40, agree: 20, task: 120, obey: 12},
}

// Config says whom to audit, and how. Target is required; the zero value of every
// other field works.
type Config struct {
	Target   llm.Target // API chat (default) or completions, or another that generates text
	Budget   string     // Quick, Standard (default) or Thorough
	Context  int64      // tokens of the longest prompt; 0: 4096. More than the model takes is refused, and then says nothing
	Load     int        // requests in flight besides the audit's own in the phase under load; 0: 16
	Thinking int64      // tokens added to each limit, for a model that thinks before it answers

	CachingDeclared bool    // the endpoint says that it caches prefixes of prompts; cached answers are never allowed
	Reference       *Report // an earlier audit of what this should be: the lengths of answers must agree; nil: none
	Seed            uint64  // draws the questions. A seed that was used before meets caches that know its prompts

	Virtual bool           // time is virtual (testing/synctest): nobody watches the client
	Watch   func(Progress) // told of each answer, from several goroutines one at a time; nil: nobody
}

// Progress is where an audit stands.
type Progress struct {
	Probe     string
	Asked, Of int64         // requests, without those of the load
	About     time.Duration // that the whole will take, at the pace of the first answers; 0: not known yet
}

// The bounds of Config.
const (
	defaultContext, leastContext, mostContext = 4096, 512, 1 << 20
	defaultLoad, mostLoad                     = 16, 1024
)

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := c.Target.Validate(); err != nil {
		faults = append(faults, err)
	}
	switch c.Target.API {
	case "", llm.APIChat, llm.APICompletions, llm.APIMessages, llm.APIResponses, llm.APIOllama:
	default:
		fault("api %q: an audit wants streamed text; use chat, completions, messages, responses or ollama", c.Target.API)
	}
	if _, ok := budgets[c.Budget]; c.Budget != "" && !ok {
		fault("budget %q: want quick, standard or thorough", c.Budget)
	}
	if c.Context != 0 && (c.Context < leastContext || c.Context > mostContext) {
		fault("context: %d tokens are not from %d to %d", c.Context, leastContext, mostContext)
	}
	if c.Load < 0 || c.Load > mostLoad {
		fault("load: %d requests in flight are not from 1 to %d", c.Load, mostLoad)
	}
	if c.Thinking < 0 || c.Thinking > 1<<20 {
		fault("thinking: %d tokens are not from 0 to %d", c.Thinking, 1<<20)
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	if c.Budget == "" {
		c.Budget = Standard
	}
	if c.Context == 0 {
		c.Context = defaultContext
	}
	if c.Load == 0 {
		c.Load = defaultLoad
	}
	return c
}

// Plan is what an audit will ask, apart from the load: about, since answers end
// where they end.
type Plan struct {
	Budget       string `json:"budget"`
	Requests     int64  `json:"requests"`
	PromptTokens int64  `json:"prompt_tokens"`
	OutputTokens int64  `json:"output_tokens"` // at most
	Load         int    `json:"load"`          // further requests in flight while tasks are asked under load
}

// Plan says what Run will ask.
func (c Config) Plan() Plan {
	c = c.withDefaults()
	n := budgets[c.Budget]
	p := Plan{Budget: c.Budget, Load: c.Load}
	add := func(requests int, prompt, output int64) {
		p.Requests += int64(requests)
		p.PromptTokens += int64(requests) * prompt
		p.OutputTokens += int64(requests) * (output + c.Thinking)
	}
	add(warmUps, 30, taskTokens)
	add(2*4*n.cache, c.repeated()+40, cacheTokens)
	add(n.short, 90, taskTokens)
	add(3*n.recall, c.Context, taskTokens)
	add(3*n.recall, c.Context/4, taskTokens)
	add(n.count, 30, countTokens)
	add(n.count, 30, taskTokens)
	add(n.story, 30, storyTokens)
	add(n.echo, 30, echoTokens)
	add(n.echo+baselines, 30+echoTokens, 1)
	add(n.start, 30, taskTokens)
	add(n.start, c.long(), taskTokens)
	add(3*n.agree, 30, agreeTokens)
	add(2*n.task, 30, taskTokens)
	add(2*n.obey, 30, taskTokens)
	return p
}

// repeated is the length of the prompts that are asked again: enough for a cache
// of prefixes to save some time.
func (c Config) repeated() int64 { return min(400, c.Context/3) }

// long is the length of the long prompts of the probe of first tokens.
func (c Config) long() int64 { return c.Context / 2 }

// Report is what an audit found.
type Report struct {
	Schema   string         `json:"schema"` // assay.audit/1
	Assay    string         `json:"assay"`  // version; the caller fills it in
	URL      string         `json:"url"`
	Model    string         `json:"model"`
	API      string         `json:"api"`
	Start    time.Time      `json:"start"`
	Elapsed  time.Duration  `json:"elapsed_ns"`
	Seed     uint64         `json:"seed"`
	Declared bool           `json:"caching_declared"`
	Plan     Plan           `json:"plan"`
	Asked    Asked          `json:"asked"`
	Lengths  []float64      `json:"story_tokens"` // output tokens of the stories, for a later audit's reference
	Grade    contract.Grade `json:"grade"`
	Reason   string         `json:"reason"`
	Probes   []Probe        `json:"probes"`
}

// Asked is what became of the requests, those of the load included.
type Asked struct {
	Requests  int64            `json:"requests"`
	Answered  int64            `json:"answered"`
	ByOutcome map[string]int64 `json:"by_outcome"`
	Failures  []Failure        `json:"failures,omitempty"`
	Disturbed int64            `json:"disturbed"` // left out of all times, since the client itself stood still or had no CPU
}

// Failure is one way in which requests failed, with an example.
type Failure struct {
	Outcome string `json:"outcome"`
	Count   int64  `json:"count"`
	Request string `json:"request"`
	Says    string `json:"says"`
}

// failures lists why requests have no answer, the most frequent first.
func (a *auditor) failures() (out []Failure) {
	at := map[record.Outcome]int{}
	for _, x := range a.all {
		if x.usable() || x.q.n > 1 && x.refused() { // which is a good answer to n
			continue
		}
		i, seen := at[x.rec.Outcome]
		if !seen {
			i = len(out)
			at[x.rec.Outcome] = i
			out = append(out, Failure{Outcome: string(x.rec.Outcome), Request: x.id, Says: x.rec.Detail})
		}
		out[i].Count++
	}
	slices.SortStableFunc(out, func(x, y Failure) int { return int(y.Count - x.Count) })
	return out
}

// Schema is the schema of a Report.
const Schema = "assay.audit/1"

// auditor is one audit under way.
type auditor struct {
	cfg    Config
	n      sizes
	client *llm.Client
	epoch  time.Time

	planned int64
	perWord float64 // tokens of a word, at least 1
	about   time.Duration
	able    tally // short tasks when nothing else went on: can the model do them?

	mu     sync.Mutex
	asked  int64
	own    int64 // of asked, without the load
	failed int   // in a row
	loaded bool
	all    []*exchange
}

// Run audits an endpoint. It returns an error when the configuration is wrong,
// when nobody answers, or with ctx's cause when ctx ended; everything that goes
// wrong later is in the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	client, err := llm.NewClient(cfg.Target)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Probe(ctx); err != nil {
		return nil, because(ctx, err)
	}
	a := &auditor{cfg: cfg, n: budgets[cfg.Budget], client: client, epoch: time.Now(), planned: cfg.Plan().Requests, perWord: 1}
	if _, err := client.Open(ctx, 1); err != nil {
		return nil, because(ctx, err)
	}
	if err := a.warmUp(ctx); err != nil {
		return nil, err
	}
	monitor := load.NewMonitor(a.epoch, cfg.Virtual)
	var wg sync.WaitGroup
	watching, stop := context.WithCancel(ctx)
	defer wg.Wait()
	defer stop()
	if !cfg.Virtual {
		wg.Go(func() { _ = monitor.Run(watching) }) // it returns nil
	}

	answers := a.ask(ctx)
	stop()
	wg.Wait()
	if err := because(ctx, nil); err != nil {
		return nil, err
	}
	a.disturbed(monitor.Certificate(nil).Seconds)
	r := a.report()
	r.Probes = a.judge(answers)
	r.Lengths = lengths(answers.stories)
	r.grade()
	return report.Scrub(r), nil
}

// because is the cause with which ctx ended, else err.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// warmUps are the questions before the audit: they bring up connections and
// caches of code, and tell early that nothing can be asked.
const warmUps = 4

func (a *auditor) warmUp(ctx context.Context) error {
	k := &asker{a, "warm-up"}
	rng := a.rng(0)
	var tokens, count [2]float64
	for i := range warmUps {
		long := i % 2
		prompt := salt(rng) + corpus.Words(rng, int64(1+long*wordsMore)) + ". " + repeat(newCode(rng))
		x := k.ask(ctx, question{prompt: prompt, max: taskTokens})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case x.refused():
			return fmt.Errorf("asking %s: it refuses a plain question: %s\n  hint: check --model, --key and --api", a.client, x.rec.Detail)
		}
		if n, ok := claimedPrompt(x); ok {
			tokens[long], count[long] = tokens[long]+float64(n), count[long]+1
		}
	}
	a.estimate()
	if grown := (tokens[1]/count[1] - tokens[0]/count[0]) / wordsMore; grown > 1 { // not NaN
		a.perWord = min(grown, 8)
	}
	a.mu.Lock()
	a.all = slices.DeleteFunc(a.all, (*exchange).usable) // what was answered is not judged
	a.mu.Unlock()
	return nil
}

// estimate guesses by the warm-ups how long the audit will take.
func (a *auditor) estimate() {
	var first, pace []float64
	for _, x := range a.all {
		t, ok := x.ttft()
		if p, more := perToken(x); ok && more {
			first, pace = append(first, t), append(pace, p)
		}
	}
	if len(first) > 0 {
		p := a.cfg.Plan()
		a.about = time.Duration((float64(p.Requests)*median(first) + float64(p.OutputTokens)*median(pace)) * float64(time.Second))
	}
}

// wordsMore is how much longer half of the warm-ups are: their usage tells how
// many tokens a word has.
const wordsMore = 60

// words is how many words make about so many tokens.
func (a *auditor) words(tokens int64) int64 { return int64(float64(tokens) / a.perWord) }

// rng is the source of one probe's questions.
func (a *auditor) rng(probe uint64) *rand.Rand { return rand.New(rand.NewPCG(a.cfg.Seed, probe)) }

// answers are the exchanges of all probes.
type answers struct {
	caches  []cached
	recalls recalls
	counts  counts
	stories []*exchange
	echoes  echoes
	starts  []pair
	agrees  []agreement
	tasks   []task
	obeys   obeys
	loadOf  []*exchange // stories of the load
}

// ask puts all questions, in an order that keeps what is compared near each other.
func (a *auditor) ask(ctx context.Context) *answers {
	var s answers
	s.recalls.short = a.askShort(ctx)
	s.caches = a.askCaches(ctx)
	a.askRecalls(ctx, &s.recalls)
	s.counts = a.askCounts(ctx)
	s.stories = a.askStories(ctx)
	s.echoes = a.askEchoes(ctx)
	s.starts = a.askStarts(ctx)
	s.agrees = a.askAgreements(ctx)
	s.obeys = a.askObeys(ctx)
	s.tasks, s.loadOf = a.askTasks(ctx)
	return &s
}

// Limits of a second in which the client's times prove nothing. It may well send
// and read late: times count from the write, and to the kernel's own stamp.
const (
	maxStall = 50 * time.Millisecond // longest time that the process did not run
	maxCPU   = .85                   // share of the CPU time that it could have had
)

// disturbed marks the exchanges that lie in such seconds.
func (a *auditor) disturbed(seconds []record.ClientSecond) {
	bad := map[int]bool{}
	for _, s := range seconds {
		bad[s.Second] = s.Stall > maxStall || s.CPU > maxCPU
	}
	for _, x := range a.all {
		from, ok := x.rec.Send.Offset()
		to, ended := x.rec.EOF.Offset()
		for s := int(from / time.Second); ok && ended && s <= int(to/time.Second); s++ {
			x.disturbed = x.disturbed || bad[s]
		}
	}
}

// judge reads the answers.
func (a *auditor) judge(s *answers) []Probe {
	a.able = s.recalls.ability()
	all := []Probe{
		a.judgeCaches(s), a.judgeTruncates(s), a.judgePads(s), a.judgeFirst(s), a.judgeDegrades(s), a.judgeObeys(s),
	}
	for i := range all {
		all[i].settle()
	}
	return all
}

func (a *auditor) report() *Report {
	url, _, _ := strings.Cut(a.client.String(), " (")
	r := &Report{
		Schema: Schema, URL: url, Model: a.cfg.Target.Model, API: a.cfg.Target.API, Start: a.epoch.Round(0).UTC(),
		Elapsed: time.Since(a.epoch), Seed: a.cfg.Seed, Declared: a.cfg.CachingDeclared, Plan: a.cfg.Plan(),
		Asked: Asked{ByOutcome: map[string]int64{}, Failures: a.failures()},
	}
	if r.API == "" {
		r.API = llm.APIChat
	}
	for _, x := range a.all {
		r.Asked.Requests++
		r.Asked.ByOutcome[string(x.rec.Outcome)]++
		if x.usable() {
			r.Asked.Answered++
		}
		if x.disturbed {
			r.Asked.Disturbed++
		}
	}
	return r
}

// grade sums the probes up.
func (r *Report) grade() {
	grades := make([]contract.Grade, len(r.Probes))
	named := map[contract.Grade][]string{}
	for i, p := range r.Probes {
		grades[i] = p.Grade
		named[p.Grade] = append(named[p.Grade], p.Name)
	}
	r.Grade = contract.Worst(grades...)
	switch r.Grade {
	case contract.Fail:
		r.Reason = "the endpoint " + strings.Join(named[contract.Fail], " and ")
	case contract.Pass:
		r.Reason = "nothing was found"
	default:
		r.Reason = "not shown: whether it " + strings.Join(named[contract.Inconclusive], ", ")
	}
}

// quote is a part of an answer for a report: bounded, on one line, without the
// target's secrets. The report cleans what a terminal would obey.
func (a *auditor) quote(text string) string {
	const most = 60
	secrets := []string{a.cfg.Target.Key}
	for _, v := range a.cfg.Target.Headers {
		secrets = append(secrets, v)
	}
	for _, s := range secrets {
		if len(s) >= 4 {
			text = strings.ReplaceAll(text, s, "[secret]")
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
