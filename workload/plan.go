package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// Plan is a workload as it will be sent: a pure function of (name, spec, sets,
// seed, salt). It is immutable and safe for concurrent use; each of its
// sequences can be walked any number of times, by any number of goroutines.
type Plan struct {
	name string
	spec Spec
	seed uint64

	arrivals *arrivals   // nil: closed loop or replay
	replay   *replayed   // nil: no replay of rows
	clients  *superposed // nil: no replay of a model of clients
	closed   closed
	measured *generator
	warm     *generator
	bare     *generator // measured without salt, for the digest

	counted func() counted // the size of an open loop, found out once
	digest  func() string
}

// counted is the size of a plan.
type counted struct {
	shots  int64         // −1: as many as fit
	length time.Duration // of the schedule; 0: open end
}

// closed is what a closed loop knows about its users.
type closed struct {
	users   int64
	stagger time.Duration
	think   func(u float64) config.Duration // nil: none
	limit   int64
}

// New makes the plan of a workload. Name is the workload's name in its suite and
// part of every random stream, so that two workloads of one suite differ. Sets
// holds the set of a spec's Prompts.File under that name. Salt is the text of
// this run that starts every prompt; it is ignored if the spec turns salts off,
// but the warm-up has a salt of its own in any case.
func New(name string, spec Spec, sets map[string]*corpus.Set, seed uint64, salt string) (*Plan, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("planning workload %s: %w", name, err)
	}
	spec = spec.resolved()
	var set *corpus.Set
	if f := spec.Prompts.File; f != "" {
		if set = sets[f]; set == nil || len(set.Cases) == 0 && set.Trace == nil && set.Traffic == nil {
			return nil, fmt.Errorf("planning workload %s: the set %s was not read, or has no cases", name, f)
		}
		if spec.Arrivals.Replay == nil && set.Traffic != nil {
			return nil, fmt.Errorf("planning workload %s: %s is a model of clients, each with times of its own\n  hint: write arrivals: {replay: {}}", name, f)
		}
		if spec.Arrivals.Replay != nil && set.Trace == nil && set.Traffic == nil {
			return nil, fmt.Errorf("planning workload %s: %s is a set of prompts without times, which cannot be replayed\n  hint: name a trace, or write such as arrivals: {poisson: 8/s}", name, f)
		}
	}
	if spec.Sessions != nil && set != nil && set.Trace != nil {
		return nil, fmt.Errorf("planning workload %s: %s is a trace, whose rows are no dialogues\n  hint: remove sessions, or ask synthetic prompts", name, spec.Prompts.File)
	}
	warmSalt := sha256.Sum256(fmt.Appendf(nil, "assay.warm-up/1 %d %q %q", seed, name, salt))
	if !isTrue(spec.Salt) {
		salt = ""
	}
	p := &Plan{name: name, spec: spec, seed: seed}
	p.counted = sync.OnceValue(p.count)
	p.digest = sync.OnceValue(p.sum)
	p.measured = newGenerator(name, &p.spec, set, seed, record.Measured, salt)
	p.bare = newGenerator(name, &p.spec, set, seed, record.Measured, "")
	p.warm = newGenerator(name, &p.spec, set, seed, record.WarmUp, hex.EncodeToString(warmSalt[:6]))
	if err := p.aim(); err != nil {
		return nil, fmt.Errorf("planning workload %s: %w", name, err)
	}
	limit := spec.limit()
	process, rate := spec.Arrivals.open()
	switch {
	case spec.Arrivals.Replay != nil && set.Traffic != nil:
		p.clients = &superposed{
			traffic: set.Traffic, speed: spec.Arrivals.Replay.speed(), start: float64(spec.Arrivals.Replay.Start),
			end: spec.end(), limit: limit, seed: seed, name: name,
		}
		if p.counted().shots == 0 {
			return nil, fmt.Errorf("planning workload %s: no client asks anything in that time\n  hint: start elsewhere: arrivals: {replay: {start: 8h}}", name)
		}
	case spec.Arrivals.Replay != nil:
		p.replay = newReplay(spec.Arrivals.Replay, set.Trace, spec.end(), limit, NewStream(seed, name, "spread"))
		if p.replay.limit == 0 {
			return nil, fmt.Errorf("planning workload %s: %s ends before %v\n  hint: start earlier", name, spec.Prompts.File, spec.Arrivals.Replay.Start)
		}
		p.measured.first, p.bare.first = p.replay.first, p.replay.first
	case rate != nil:
		p.arrivals = &arrivals{
			profile: newProfile(*rate, spec.end(), NewStream(seed, name, "states")),
			process: process,
			gaps:    NewStream(seed, name, "arrivals"),
			limit:   limit,
		}
	default:
		p.closed = closed{users: int64(spec.Arrivals.Concurrency), stagger: spec.stagger(), limit: limit}
		if spec.Arrivals.Think.Set() {
			p.closed.think = spec.Arrivals.Think.sampler()
		}
	}
	return p, nil
}

// stagger returns the time over which the users of a closed loop start.
//
// Users that all start at once send one burst, wait together for its slowest
// answer and stay in step for long: the first wave is then the worst of the run
// and says nothing about the load that was asked for. The service time is not
// known in advance; 50 ms a user is a start that most servers can follow.
func (s *Spec) stagger() time.Duration {
	if st := s.Arrivals.Stagger; st != nil {
		return time.Duration(*st)
	}
	d := time.Duration(s.Arrivals.Concurrency) * startGap
	if s.Arrivals.Think.Set() {
		d += time.Duration(s.Arrivals.Think.Mean())
	}
	if s.For > 0 {
		d = min(d, time.Duration(s.For)/shareOfRun)
	}
	return min(d, maxStagger)
}

// Open reports whether the plan is an open loop: its schedule does not wait for
// answers.
func (p *Plan) Open() bool { return p.arrivals != nil || p.replays() }

// replays reports whether the plan ends with what it replays.
func (p *Plan) replays() bool { return p.replay != nil || p.clients != nil }

// dues yields the due instants of an open loop.
func (p *Plan) dues() iter.Seq2[int64, time.Duration] {
	switch {
	case p.clients != nil:
		return func(yield func(int64, time.Duration) bool) {
			for i, a := range p.clients.all() {
				if !yield(i, a.due) {
					return
				}
			}
		}
	case p.replay != nil:
		return p.replay.all()
	}
	return p.arrivals.all()
}

// mostPieces bounds what a manifest holds of a rate.
const mostPieces = 4096

// Process returns the process of an open loop if its actual send times can be
// tested for it, else nil: there is nothing random about constant and replayed
// arrivals, pulses have no gaps within, of a rate with more than 4,096 pieces
// not all can be kept, and sessions by count go on when none arrives any more.
func (p *Plan) Process() *record.Process {
	if p.arrivals == nil || !p.arrivals.random() || p.spec.Sessions != nil && p.spec.Requests > 0 {
		return nil
	}
	a := record.Process{Kind: p.arrivals.process.kind, Shape: p.arrivals.process.shape}
	walk := p.arrivals.profile.walk()
	for more, end := true, float64(p.For()); more && walk.at.start < end; more = walk.advance() {
		if walk.at.pulse > 0 || len(a.Rate) == mostPieces {
			return nil
		}
		a.Rate = append(a.Rate, record.RatePiece{At: time.Duration(walk.at.start), Expected: walk.at.before, Rate: walk.at.rate, Slope: walk.at.slope})
	}
	return &a
}

// Users returns the number of virtual users of a closed loop, 0 for an open one.
func (p *Plan) Users() int { return int(p.closed.users) }

// Planned returns the number of measured shots, −1 if the plan has as many as
// fit into For. For random arrivals it counts them the first time it is asked,
// which takes 0.1 to 0.4 µs each. Turns of sessions are counted as planned: those
// of a session that ends early are not sent.
func (p *Plan) Planned() int64 { return p.counted().shots }

// For returns the length of the schedule: the spec's for, or the instant of the
// last arrival if requests or the end of a trace ends an open loop before that.
// 0 is a closed loop that only requests ends.
func (p *Plan) For() time.Duration {
	if p.spec.Requests == 0 && !p.replays() {
		return time.Duration(p.spec.For)
	}
	return p.counted().length
}

// Rate returns the mean number of arrivals per second over the schedule of an
// open loop: of requests, or of sessions if there are any; 0 for a closed one.
func (p *Plan) Rate() float64 {
	switch {
	case !p.Open():
		return 0
	case p.replays():
		if c := p.counted(); c.length > 0 {
			return float64(c.shots) / c.length.Seconds()
		}
		return 0
	case p.spec.Requests == 0:
		return p.arrivals.profile.total / time.Duration(p.spec.For).Seconds()
	}
	c := p.counted()
	if c.length == time.Duration(p.spec.For) {
		return p.arrivals.profile.total / c.length.Seconds()
	}
	return float64(c.shots) / p.turns() / c.length.Seconds()
}

// PeakRate returns the most requests that an open loop plans in any second of
// its schedule, which holds bursts; 0 for a closed loop, whose rate the answers
// decide. When the later turns of a session are due the answers decide, too: they
// are counted into the second in which it starts, which is right for a rate that
// is constant and too much for a burst. It walks the whole schedule each time it
// is asked: 0.1 to 0.4 µs a request.
func (p *Plan) PeakRate() float64 {
	if !p.Open() {
		return 0
	}
	type arrival struct {
		due   time.Duration
		turns int64
	}
	var second []arrival // those of the last one, in order; oldest from head
	head, now, most := 0, int64(0), int64(0)
	each := func(due time.Duration, turns int64) {
		for ; head < len(second) && due-second[head].due >= time.Second; head++ {
			now -= second[head].turns
		}
		if head > len(second)/2 {
			second = append(second[:0], second[head:]...)
			head = 0
		}
		second = append(second, arrival{due, turns})
		now += turns
		most = max(most, now)
	}
	if p.spec.Sessions != nil {
		for s, due := range p.starts() {
			each(due, s.turns)
		}
		return float64(most)
	}
	for _, due := range p.dues() {
		each(due, 1)
	}
	return float64(most)
}

// turns returns the mean number of planned turns of an arrival of an open loop.
func (p *Plan) turns() float64 {
	if p.spec.Sessions == nil {
		return 1
	}
	n := 0
	for range p.starts() {
		n++
	}
	return float64(p.Planned()) / float64(max(n, 1))
}

// WarmUps returns the number of warm-up shots.
func (p *Plan) WarmUps() int64 { return int64(p.spec.WarmUp.Requests) }

// Name returns the workload's name in its suite.
func (p *Plan) Name() string { return p.name }

// Spec returns the workload that the plan was made from.
func (p *Plan) Spec() Spec { return p.spec }

func (p *Plan) count() counted {
	switch {
	case p.clients != nil:
		return p.clients.count()
	case p.replay != nil:
		return p.replay.count()
	}
	c := counted{shots: -1, length: time.Duration(p.spec.For)}
	if !p.Open() {
		if p.spec.Requests > 0 {
			c.shots = int64(p.spec.Requests)
		}
		if c.length > 0 {
			c.shots = -1 // answers decide which of the two ends it
		}
		return c
	}
	if p.spec.Sessions != nil {
		return p.countSessions()
	}
	n, last, limited := p.arrivals.count()
	c.shots = n
	if limited {
		c.length = last + 1
	}
	return c
}

// All yields the measured shots: in due order for an open loop; in order of
// index for a closed one, where shot i belongs to user i mod Users and the
// sequence ends at requests, or goes on for longer than any run. The turns of a
// session follow each other.
func (p *Plan) All() iter.Seq[Shot] { return p.Stripe(0, 1) }

// Stripe yields the share of one of several workers that send the plan
// together. In an open loop, shot i belongs to worker i mod of; in a closed one
// the users do, user u with all its shots to worker u mod of, since a user
// cannot wait for an answer that another worker gets. So do sessions, session i
// to worker i mod of in an open loop. The stripes of all
// workers are All, each shot once and equal byte for byte.
func (p *Plan) Stripe(worker, of int) iter.Seq[Shot] {
	if of < 1 || worker < 0 || worker >= of {
		panic(fmt.Sprintf("workload: stripe %d of %d", worker, of))
	}
	return p.stripe(p.measured, int64(worker), int64(of), true)
}

func (p *Plan) stripe(g *generator, worker, of int64, text bool) iter.Seq[Shot] {
	if p.spec.Sessions != nil {
		return p.stripeSessions(g, worker, of, text)
	}
	if p.clients != nil {
		return func(yield func(Shot) bool) {
			w := g.writer()
			for i, a := range p.clients.all() {
				if i%of == worker && !yield(w.byClient(i, a, text)) {
					return
				}
			}
		}
	}
	if p.Open() {
		return func(yield func(Shot) bool) {
			w := g.writer()
			for i, due := range p.dues() {
				if i%of != worker {
					continue
				}
				s := w.shot(alone(i), text)
				s.Due = due
				if !yield(s) {
					return
				}
			}
		}
	}
	return func(yield func(Shot) bool) {
		if worker >= p.closed.users {
			return // more workers than users
		}
		w := g.writer()
		for turn := int64(0); turn < p.closed.limit; turn += p.closed.users {
			for u := worker; u < p.closed.users && turn+u < p.closed.limit; u += of {
				s := w.shot(alone(turn+u), text)
				p.user(&s, g.think)
				if !yield(s) {
					return
				}
			}
		}
	}
}

// user fills in whose shot it is in a closed loop and how long that user waits.
func (p *Plan) user(s *Shot, think Stream) {
	c := &p.closed
	u := s.Index % c.users
	s.User = int(u)
	s.Turn = int(s.Index / c.users)
	s.Session = userName(u)
	switch {
	case s.Turn == 0:
		s.Think = c.start(u)
	case c.think != nil:
		s.Think = time.Duration(c.think(think.uniform(s.Index)))
	}
}

// start returns when user u makes its first request.
func (c *closed) start(u int64) time.Duration {
	return time.Duration(float64(c.stagger) * float64(u) / float64(c.users))
}

// WarmUp yields the warm-up shots. Their texts, lengths and order come from
// streams of their own and start with a salt of their own, so that no measured
// prompt finds its beginning in a cache that the warm-up filled. In an open
// loop they are due evenly at the mean rate of the plan, in a closed one the
// same users send them.
func (p *Plan) WarmUp() iter.Seq[Shot] {
	return func(yield func(Shot) bool) {
		w := p.warm.writer()
		rate := p.Rate()
		if rate == 0 {
			rate = 1 // a random rate that stays at 0 to the end
		}
		for i := range p.WarmUps() {
			s := w.shot(alone(i), true)
			if p.clients != nil {
				s = w.byClient(i, w.anyClient(i), true)
			}
			if p.Open() {
				s.Due = time.Duration(float64(i) * 1e9 / rate)
			} else {
				p.user(&s, p.warm.think)
			}
			if !yield(s) {
				return
			}
		}
	}
}

// The bounds of a digest.
const (
	digestShots = 100_000
	digestText  = 16 << 20 // bytes of encoding with the text of prompts; later shots without
)

// Digest returns the hex SHA-256 of what is planned: the workload's name, seed,
// kind, end and set, and the canonical encoding of its first 100,000 shots; from
// 16 MiB on the texts of prompts are left out of it. The salt is no part of it:
// two runs of one suite and seed have one digest.
func (p *Plan) Digest() string { return p.digest() }

func (p *Plan) sum() string {
	h := sha256.New()
	set := ""
	if p.bare.set != nil {
		set = p.bare.set.Digest
	}
	fmt.Fprintf(h, "assay.plan/1 %q seed %d open %t users %d for %d requests %d warm-up %d salted %t set %q\n", p.name, p.seed,
		p.Open(), p.closed.users, p.spec.For, p.spec.Requests, p.spec.WarmUp.Requests, isTrue(p.spec.Salt), set)
	var buf []byte
	written, n := 0, 0
	for _, text := range []bool{true, false} {
		skip := n
		i := 0
		for s := range p.stripe(p.bare, 0, 1, text) {
			if i++; i <= skip {
				continue
			}
			if n == digestShots || text && written >= digestText {
				break
			}
			buf, _ = s.AppendBinary(buf[:0])
			h.Write(buf)
			written += len(buf)
			n++
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// String describes the plan: "Poisson 8/s for 5m", "16 users, think 2s, 1000 requests".
func (p *Plan) String() string {
	var b strings.Builder
	process, rate := p.spec.Arrivals.open()
	switch {
	case p.replays():
		b.WriteString("replay of " + p.spec.Prompts.File)
		r := p.spec.Arrivals.Replay
		if r.Start > 0 {
			fmt.Fprintf(&b, " from %v", r.Start)
		}
		if r.speed() != 1 {
			fmt.Fprintf(&b, " at %v times its speed", r.speed())
		}
	case rate == nil:
		fmt.Fprintf(&b, "%d users", p.closed.users)
		if p.closed.users == 1 {
			b.Reset()
			b.WriteString("1 user")
		}
		if t := p.spec.Arrivals.Think; t.Set() {
			fmt.Fprintf(&b, ", think %v", t)
		}
		b.WriteString(",")
	default:
		b.WriteString(process.String() + " " + rate.String())
	}
	if p.spec.For > 0 {
		fmt.Fprintf(&b, " for %v", p.spec.For)
	}
	if p.spec.Requests > 0 {
		if p.spec.For > 0 {
			b.WriteString(", at most")
		}
		fmt.Fprintf(&b, " %d requests", int64(p.spec.Requests))
	}
	p.sessions(&b)
	if p.spec.Jitter.Set() {
		fmt.Fprintf(&b, "; jitter %v", p.spec.Jitter)
	}
	if len(p.spec.Cancel) > 0 {
		b.WriteString("; " + p.spec.Cancel.String())
	}
	for i, part := range p.spec.Mix {
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		fmt.Fprintf(&b, "%s%v %s", sep, part.Share, part.Tenant)
	}
	p.credit(&b)
	return b.String()
}

// sessions says how dialogues go on.
func (p *Plan) sessions(b *strings.Builder) {
	s := p.spec.Sessions
	if s == nil {
		return
	}
	turns := "the set's"
	if s.Turns.Set() {
		turns = s.Turns.String()
	}
	b.WriteString("; sessions (turns: " + turns)
	if s.Think.Set() {
		fmt.Fprintf(b, "; think: %v", s.Think)
	}
	if !isTrue(s.History) {
		b.WriteString("; no history")
	}
	b.WriteString(")")
}

// credit says whose trace it is, so that the licence's attribution is in every
// report, and what its clock hides.
func (p *Plan) credit(b *strings.Builder) {
	names := []string{p.spec.Preset}
	for _, part := range p.spec.Mix {
		names = append(names, part.Preset)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name == "" {
			continue
		}
		b.WriteString("; preset " + name)
		if _, source, _ := preset(name); source != "" {
			b.WriteString(" (after the " + source + ")")
		}
	}
	if p.clients != nil {
		fmt.Fprintf(b, ", %d clients (%s)", len(p.clients.traffic.Clients), p.clients.traffic.Source)
	}
	if p.bare.set == nil || p.bare.set.Trace == nil {
		return
	}
	t := p.bare.set.Trace
	if p.replay == nil {
		fmt.Fprintf(b, "; lengths of %s", p.spec.Prompts.File)
	}
	fmt.Fprintf(b, " (%s)", t.Source)
	if r := p.spec.Arrivals.Replay; r != nil {
		switch {
		case r.Spread > 0:
			fmt.Fprintf(b, ", spread over %v", r.Spread)
		case 2*t.Together > len(t.Rows):
			fmt.Fprintf(b, ", whose clock is coarse: %d of %d rows have the instant of the row before", t.Together, len(t.Rows))
		}
	}
}
