package check

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/assay-llm/assay/stat"
)

// Forecast is what checks are expected to cost, told before they run.
type Forecast struct {
	Checks []ForecastPart `json:"checks"` // of each check at each endpoint, in the order in which they run

	Requests     int64 `json:"requests"`      // different questions, those that were asked already included
	PromptTokens int64 `json:"prompt_tokens"` // by the tokens that a sample of the questions had
	OutputTokens int64 `json:"output_tokens"`
	Sampled      int64 `json:"sampled"` // questions that were asked to learn this; their answers are kept and not asked for again

	Time   time.Duration `json:"time_ns"`   // of the checks after the sample; 0: nothing was asked, and nothing is known
	Spread time.Duration `json:"spread_ns"` // twice the standard error of Time, from how the sample differs within itself
}

// ForecastPart is what one check is expected to ask of one endpoint.
type ForecastPart struct {
	Check        string `json:"check"`
	Endpoint     string `json:"endpoint"`
	Requests     int64  `json:"requests"`
	PromptTokens int64  `json:"prompt_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	OutputLimit  int64  `json:"output_limit"` // tokens, if every answer were as long as it may be
}

// Plan tells what checks would ask, without asking: they are run on made-up
// answers. Tokens of prompts are a quarter of their bytes, those of answers as many
// as allowed. What a check asks only because of an answer may be missing, or too
// much.
func Plan(ctx context.Context, c Config) (Forecast, error) {
	h, err := rehearse(ctx, c)
	if err != nil {
		return Forecast{}, err
	}
	var f Forecast
	for _, p := range h.parts {
		f.add(ForecastPart{
			Check: p.check, Endpoint: p.peer, Requests: int64(p.size()),
			PromptTokens: (p.bytes + 3) / 4, OutputTokens: p.limits, OutputLimit: p.limits,
		})
	}
	return f, nil
}

func (f *Forecast) add(p ForecastPart) {
	f.Checks = append(f.Checks, p)
	f.Requests += p.Requests
	f.PromptTokens += p.PromptTokens
	f.OutputTokens += p.OutputTokens
}

// timed is one question of the sample that was answered.
type timed struct {
	part   *rehearsed
	bytes  int64
	prompt float64
	output float64
	busy   float64 // seconds
}

// sampleOf is how many questions of a check are asked to learn what all of them
// cost: a tenth, but some of each and not many of any.
func sampleOf(questions int) int { return min(questions, max(4, min(questions/10, 24))) }

// Foresee tells what checks will cost: it rehearses them on made-up answers, asks
// a sample of their questions as the checks will, as many at a time, and reckons up.
// The answers are kept in c.Memory, so that nothing is asked twice. Endpoints that
// a configuration names are asked too.
func Foresee(ctx context.Context, c Config) (Forecast, error) {
	h, err := rehearse(ctx, c)
	if err != nil {
		return Forecast{}, err
	}
	c.Progress = nil
	r := newRunner(c)
	answered, err := r.pilot(ctx, h)
	if err != nil {
		return Forecast{}, err
	}
	return reckon(h, answered, r.workers(), r.c.PerEndpoint), nil
}

// pilot asks the sample of every part.
func (r *runner) pilot(ctx context.Context, h *rehearsal) (out []timed, err error) {
	type task struct {
		part *rehearsed
		q    Question
	}
	var tasks []task
	for _, p := range h.parts {
		for _, q := range p.sample[:min(len(p.sample), sampleOf(p.size()))] {
			tasks = append(tasks, task{p, q})
		}
	}
	// Interleaved, so that no check meets the endpoints all by itself.
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(h.rank(Key("", &a.q)), h.rank(Key("", &b.q))) })
	askers := make(map[string]*asker)
	for _, p := range h.parts {
		a, err := r.askerOf(p.peer)
		if err != nil {
			return nil, err
		}
		askers[p.peer] = a
	}
	var mu sync.Mutex
	p := &Pass{run: r}
	err = p.Each(ctx, len(tasks), func(ctx context.Context, i int) error {
		t := tasks[i]
		busy, a, err := askers[t.part.peer].timed(ctx, &t.q)
		if err != nil {
			return err
		}
		if a == nil || !a.Answered() {
			return nil // it tells nothing of those that are answered
		}
		s := Price{}.charge(&t.q, a)
		mu.Lock()
		out = append(out, timed{t.part, t.q.bytes(), float64(s.PromptTokens), float64(s.OutputTokens), busy.Seconds()})
		mu.Unlock()
		return nil
	})
	return out, err
}

// askerOf returns an asker of a variant, or of an endpoint that a configuration names.
func (r *runner) askerOf(peer string) (*asker, error) {
	none := &bill{by: make(map[string]*Spending)}
	for _, d := range r.c.Checks {
		for _, e := range Endpoints(d.Config) {
			if e.Name() == peer {
				p, err := r.peer(e)
				return &asker{run: r, peer: p, bill: none}, err
			}
		}
	}
	return &asker{run: r, peer: r.peers[peer], bill: none}, nil
}

// timed asks, and tells how long the endpoint had the question. An answer that was
// known is none of the sample: it took no time.
func (a *asker) timed(ctx context.Context, q *Question) (time.Duration, *Answer, error) {
	if known, err := a.run.recall(Key(a.peer.name, q), q.Private); err != nil || known != nil {
		return 0, nil, err
	}
	free, err := a.enter(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer free()
	start := time.Now()
	answer, err := a.try(ctx, q)
	took := time.Since(start)
	if err != nil {
		return 0, nil, err
	}
	key := Key(a.peer.name, q)
	if err := a.run.save(key, a.peer.name, answer, q.Private); err != nil {
		return 0, nil, err
	}
	a.pay(key, q, answer)
	return took, answer, nil
}

// reckon makes a forecast of what the sample cost. The time that an endpoint has a
// question is fitted by the tokens of its prompt and of its answer, and brought to
// the mean of the sample of each check; then the checks are played with such times,
// workers shots at a time and perEndpoint questions at each endpoint. A check whose
// questions wait for each other, in fewer chains than that, takes longer.
func reckon(h *rehearsal, answered []timed, workers, perEndpoint int) Forecast {
	f := Forecast{Sampled: int64(len(answered))}
	fits := make(map[string][]float64)
	var checks []string
	for _, p := range h.parts {
		if fits[p.peer] == nil {
			fits[p.peer] = fit(answered, p.peer)
		}
		if !slices.Contains(checks, p.check) {
			checks = append(checks, p.check)
		}
	}
	rng := rand.New(rand.NewPCG(h.seed, 1)) //nolint:gosec // it has to be repeatable
	var seconds, squared float64
	for _, name := range checks {
		var queues [][]float64 // of each endpoint, the times of what is left to ask
		for _, p := range h.parts {
			if p.check != name {
				continue
			}
			part, left, variance := p.reckon(answered, fits[p.peer], rng)
			f.add(part)
			queues = append(queues, left)
			squared += variance
		}
		seconds += makespan(queues, workers, perEndpoint, rng)
	}
	if len(answered) > 0 {
		f.Time = time.Duration(seconds * float64(time.Second))
		f.Spread = time.Duration(2 * math.Sqrt(squared) / float64(workers) * float64(time.Second))
	}
	return f
}

// reckon reckons one part: its tokens, the seconds that each question that is left
// may take, and the variance of their sum.
func (p *rehearsed) reckon(answered []timed, c []float64, rng *rand.Rand) (part ForecastPart, left []float64, variance float64) {
	part = ForecastPart{Check: p.check, Endpoint: p.peer, Requests: int64(p.size()), PromptTokens: (p.bytes + 3) / 4, OutputTokens: p.limits, OutputLimit: p.limits}
	own := of(answered, func(t timed) bool { return t.part == p })
	k := own
	if len(k) == 0 {
		k = of(answered, func(t timed) bool { return t.part.peer == p.peer })
	}
	if len(k) == 0 {
		return part, nil, 0
	}
	perByte := ratio(k, func(t timed) (float64, float64) { return t.prompt, float64(t.bytes) })
	output := mean(k, func(t timed) float64 { return t.output })
	part.PromptTokens = int64(math.Round(perByte * float64(p.bytes)))
	part.OutputTokens = min(int64(math.Round(output*float64(p.size()))), p.limits)
	each := predicted(c, float64(part.PromptTokens)/float64(p.size()), output)
	guess := mean(k, func(t timed) float64 { return predicted(c, t.prompt, t.output) })
	if known := mean(k, func(t timed) float64 { return t.busy }); guess > 0 {
		each *= min(3, max(1./3, known/guess))
	}
	n := p.size() - len(own)
	for range n {
		t := k[rng.IntN(len(k))]
		scale := 1.0
		if guess := predicted(c, t.prompt, t.output); guess > 0 {
			scale = t.busy / guess
		}
		left = append(left, each*scale)
	}
	if sum := total(left); sum > 0 { // the scatter of single answers must not move the mean of a few
		for i := range left {
			left[i] *= each * float64(n) / sum
		}
	}
	scatter := mean(k, func(t timed) float64 { e := t.busy - predicted(c, t.prompt, t.output); return e * e })
	return part, left, float64(n) * float64(n) * scatter / float64(len(k))
}

func total(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum
}

// makespan plays a check: shot i asks every endpoint its question i, one right after
// the other in any order, and some shots are under way at a time.
func makespan(queues [][]float64, workers, perEndpoint int, rng *rand.Rand) float64 {
	shots := 0
	for _, q := range queues {
		shots = max(shots, len(q))
	}
	type worker struct {
		shot, asked int
		order       []int
	}
	at := make([]float64, max(1, min(workers, shots))) // when each worker asks next
	under := make([]worker, len(at))
	slots := make([][]float64, len(queues))
	for e := range slots {
		slots[e] = make([]float64, perEndpoint)
	}
	next, end := 0, 0.0
	begin := func(w int) {
		under[w] = worker{shot: next, order: rng.Perm(len(queues))}
		next++
	}
	for w := range under {
		begin(w)
	}
	for { // questions reach the endpoints in the order of time
		w := least(at)
		if under[w].asked == len(queues) {
			begin(w)
		}
		u := &under[w]
		if u.shot >= shots {
			if at[w] = math.Inf(1); math.IsInf(at[least(at)], 1) {
				return end
			}
			continue
		}
		e := u.order[u.asked]
		u.asked++
		if u.shot < len(queues[e]) {
			s := least(slots[e])
			at[w] = max(at[w], slots[e][s]) + queues[e][u.shot]
			slots[e][s] = at[w]
			end = max(end, at[w])
		}
	}
}

// least is the index of the smallest number.
func least(xs []float64) (at int) {
	for i, x := range xs {
		if x < xs[at] {
			at = i
		}
	}
	return at
}

func of(answered []timed, keep func(timed) bool) (out []timed) {
	for _, t := range answered {
		if keep(t) {
			out = append(out, t)
		}
	}
	return out
}

func mean(k []timed, of func(timed) float64) float64 {
	return ratio(k, func(t timed) (float64, float64) { return of(t), 1 })
}

func ratio(k []timed, of func(timed) (x, y float64)) float64 {
	var a, b float64
	for _, t := range k {
		x, y := of(t)
		a, b = a+x, b+y
	}
	if b == 0 {
		return 0
	}
	return a / b
}

// fit finds what a request, a prompt token and an output token take, of one endpoint.
func fit(answered []timed, peer string) []float64 {
	var rows [][]float64
	var busy []float64
	for _, t := range of(answered, func(t timed) bool { return t.part.peer == peer }) {
		rows = append(rows, []float64{1, t.prompt, t.output})
		busy = append(busy, t.busy)
	}
	c, err := stat.Nonnegative(rows, busy)
	if err != nil {
		return make([]float64, 3) // nothing was answered
	}
	return c
}

func predicted(c []float64, prompt, output float64) float64 { return c[0] + c[1]*prompt + c[2]*output }

// String says it in one sentence.
func (f Forecast) String() string {
	s := fmt.Sprintf("%d requests, about %d prompt and %d output tokens", f.Requests, f.PromptTokens, f.OutputTokens)
	if f.Time > 0 {
		s += fmt.Sprintf(", about %s more (%d were asked to learn this, and are not asked again)", f.Time.Round(time.Second), f.Sampled)
	}
	return s
}
