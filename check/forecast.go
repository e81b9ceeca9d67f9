package check

import (
	"cmp"
	"context"
	"fmt"
	"math"
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
	if known, err := a.run.recall(Key(a.peer.name, q)); err != nil || known != nil {
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
	if err := a.run.save(key, a.peer.name, answer); err != nil {
		return 0, nil, err
	}
	a.pay(key, q, answer)
	return took, answer, nil
}

// reckon makes a forecast of what the sample cost. The time that an endpoint has a
// question is fitted by the tokens of its prompt and of its answer, and then
// brought to the mean of the sample of each check; workers questions are under way
// at a time, perEndpoint at each endpoint. A check whose questions wait for each
// other, in fewer chains than that, takes longer than is reckoned here.
func reckon(h *rehearsal, answered []timed, workers, perEndpoint int) Forecast {
	var (
		f                Forecast
		seconds, squared float64
		byPeer           = make(map[string]float64) // seconds
	)
	f.Sampled = int64(len(answered))
	fits := make(map[string][]float64)
	for _, p := range h.parts {
		if fits[p.peer] == nil {
			fits[p.peer] = fit(answered, p.peer)
		}
	}
	for _, p := range h.parts {
		k := of(answered, func(t timed) bool { return t.part == p })
		if len(k) == 0 {
			k = of(answered, func(t timed) bool { return t.part.peer == p.peer })
		}
		part := ForecastPart{Check: p.check, Endpoint: p.peer, Requests: int64(p.size()), PromptTokens: (p.bytes + 3) / 4, OutputTokens: p.limits, OutputLimit: p.limits}
		if len(k) > 0 {
			perByte, output := ratio(k, func(t timed) (float64, float64) { return t.prompt, float64(t.bytes) }), mean(k, func(t timed) float64 { return t.output })
			part.PromptTokens = int64(math.Round(perByte * float64(p.bytes)))
			part.OutputTokens = min(int64(math.Round(output*float64(p.size()))), p.limits)
			c := fits[p.peer]
			left := float64(p.size() - len(of(answered, func(t timed) bool { return t.part == p })))
			each := predicted(c, float64(part.PromptTokens)/float64(p.size()), output)
			known, guess := mean(k, func(t timed) float64 { return t.busy }), mean(k, func(t timed) float64 { return predicted(c, t.prompt, t.output) })
			if guess > 0 {
				each *= min(3, max(1./3, known/guess))
			}
			seconds += left * each
			byPeer[p.peer] += left * each
			scatter := mean(k, func(t timed) float64 { e := t.busy - predicted(c, t.prompt, t.output); return e * e })
			squared += left * left * scatter / float64(len(k))
		}
		f.add(part)
	}
	if len(answered) > 0 {
		// All places are taken, or the slowest endpoint has all that it may have.
		seconds /= float64(workers)
		for _, s := range byPeer {
			seconds = max(seconds, s/float64(perEndpoint))
		}
		f.Time = time.Duration(seconds * float64(time.Second))
		f.Spread = time.Duration(2 * math.Sqrt(squared) / float64(workers) * float64(time.Second))
	}
	return f
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
