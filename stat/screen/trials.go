package screen

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// A Trial is one try in a period, such as a question about a context of some
// length: whether it had the event, such as the right answer. Trials of one
// group, such as those on one haystack of text, differ from each other by
// their period only, if by anything.
type Trial struct {
	Period, Group int
	Event         bool
}

// Sag is the likeliest stretch of periods with a share of its own.
type Sag struct {
	From, To int     // periods From to To-1
	Ratio    float64 // twice the logarithm of the likelihood ratio to no such stretch
	P        float64 // of a Ratio so great anywhere if the share never changed
}

// TrialChange is [ShareChange] for trials in groups: the p-value comes from
// 1,999 seeded random orders of the outcomes within each group, so that groups
// may differ in their share. Periods are 0 to periods-1, and each has a trial.
//
// Measured with 16 periods and a fall from 0.95 to 0.75 in the middle, it has a p of
// at most 0.05 in 86 % of cases with 10 trials a period and in 99 % with 20, and
// is then off by 0.9 and 0.3 periods; without a change it has one in 5 %.
func TrialChange(trials []Trial, periods int, seed uint64) (Change, error) {
	d, err := deal(trials, periods, seed)
	if err != nil {
		return Change{}, fmt.Errorf("finding a change: %w", err)
	}
	c := Change{Profile: make([]float64, periods-1)}
	c.At, c.Ratio = d.scan(c.Profile)
	scratch := make([]float64, periods-1)
	c.P = d.p(c.Ratio, func() float64 {
		_, ratio := d.scan(scratch)
		return ratio
	})
	return c, nil
}

// TrialSag looks for one stretch of periods that differs from those before and
// after it alike (the epidemic alternative), as when the middle of a long text
// is overlooked. It starts after the first period and ends before the last. The
// p-value is as that of [TrialChange].
func TrialSag(trials []Trial, periods int, seed uint64) (Sag, error) {
	if periods < 3 {
		return Sag{}, fmt.Errorf("finding a sag: %d periods have no middle; give at least three", periods)
	}
	d, err := deal(trials, periods, seed)
	if err != nil {
		return Sag{}, fmt.Errorf("finding a sag: %w", err)
	}
	s := d.sag()
	s.P = d.p(s.Ratio, func() float64 { return d.sag().Ratio })
	return s, nil
}

// dealt has the outcomes of trials by period, and deals them anew.
type dealt struct {
	events, sizes []int
	k, n          int
	groups        [][]int   // the periods of the trials of a group
	hits          []int     // the events of a group
	logs          []float64 // x ln x
	rand          *rand.Rand
}

func deal(trials []Trial, periods int, seed uint64) (*dealt, error) {
	if periods < 2 {
		return nil, fmt.Errorf("%d periods have no change; give at least two", periods)
	}
	d := &dealt{events: make([]int, periods), sizes: make([]int, periods), n: len(trials), rand: rand.New(rand.NewPCG(seed, 0x7a1a1))}
	index := map[int]int{}
	for i, t := range trials {
		if t.Period < 0 || t.Period >= periods {
			return nil, fmt.Errorf("trial %d is of period %d; they are 0 to %d", i, t.Period, periods-1)
		}
		g, ok := index[t.Group]
		if !ok {
			g = len(d.groups)
			index[t.Group] = g
			d.groups, d.hits = append(d.groups, nil), append(d.hits, 0)
		}
		d.groups[g] = append(d.groups[g], t.Period)
		d.sizes[t.Period]++
		if t.Event {
			d.events[t.Period]++
			d.hits[g]++
			d.k++
		}
	}
	for i, n := range d.sizes {
		if n == 0 {
			return nil, fmt.Errorf("period %d has no trial; leave it out", i)
		}
	}
	d.logs = make([]float64, d.n+1)
	for i := range d.n {
		d.logs[i+1] = float64(i+1) * math.Log(float64(i+1))
	}
	return d, nil
}

// likelihood is the logarithm of it, of k events in n trials at the likeliest
// share.
func (d *dealt) likelihood(k, n int) float64 { return d.logs[k] + d.logs[n-k] - d.logs[n] }

// scan fills the profile of changes and gives its greatest point.
func (d *dealt) scan(profile []float64) (at int, ratio float64) {
	whole := d.likelihood(d.k, d.n)
	ratio = math.Inf(-1)
	k, n := 0, 0
	for i := range profile {
		k += d.events[i]
		n += d.sizes[i]
		if profile[i] = 2 * (d.likelihood(k, n) + d.likelihood(d.k-k, d.n-n) - whole); profile[i] > ratio {
			at, ratio = i+1, profile[i]
		}
	}
	return at, ratio
}

// p deals the events of each group to its trials again and again, and counts
// how often the ratio is as great. It uses up d.events.
func (d *dealt) p(observed float64, ratio func() float64) float64 {
	const orders = 1999
	extreme := 0
	for range orders {
		clear(d.events)
		for g, periods := range d.groups {
			left := d.hits[g]
			for i, period := range periods {
				if left == 0 {
					break
				}
				if d.rand.IntN(len(periods)-i) < left {
					d.events[period]++
					left--
				}
			}
		}
		if ratio() >= observed-1e-9 {
			extreme++
		}
	}
	return float64(extreme+1) / (orders + 1)
}

func (d *dealt) sag() Sag {
	best := Sag{Ratio: math.Inf(-1)}
	whole := d.likelihood(d.k, d.n)
	for from := 1; from < len(d.sizes)-1; from++ {
		k, n := 0, 0
		for to := from + 1; to < len(d.sizes); to++ {
			k += d.events[to-1]
			n += d.sizes[to-1]
			if r := 2 * (d.likelihood(k, n) + d.likelihood(d.k-k, d.n-n) - whole); r > best.Ratio {
				best = Sag{From: from, To: to, Ratio: r}
			}
		}
	}
	return best
}
