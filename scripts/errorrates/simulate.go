package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

const (
	nominal  = 0.05 // of each decision, one-sided
	fullRuns = 1000
)

// settings of a simulation.
type settings struct {
	runs     int
	seed     uint64
	sizes    []int // sessions of each variant, ascending
	progress io.Writer
}

// upTo leaves out sizes that are too great; 0 leaves all.
func (s settings) upTo(most int) settings {
	if most > 0 {
		s.sizes = slices.DeleteFunc(slices.Clone(s.sizes), func(n int) bool { return n > most })
	}
	return s
}

// truth is how the candidate relates to the baseline.
type truth int

const (
	equal    truth = iota // no difference
	atMargin              // exactly at the margin: whatever is decided is wrong
	beyond                // clearly worse than the margin
	truths
)

// setting is a kind of data.
type setting struct {
	heavy    bool // heavy tails, or rare events
	sessions bool // several turns a session, which resemble each other
}

var allSettings = []setting{{false, false}, {true, false}, {false, true}, {true, true}}

// verdicts of a method at each size. Of a test that is looked at all the time,
// a verdict at a size is one at that size or before.
type verdicts struct{ fail, pass []bool }

func newVerdicts(n int) verdicts { return verdicts{make([]bool, n), make([]bool, n)} }

// method is a test or a rule.
type method struct {
	name   string
	naive  bool
	peeks  bool // looked at all the time
	margin bool // has a margin; without one, a difference from equality is the alarm
	every  int  // of the runs one in so many is enough for what is slow; 0 means 1
	most   int  // the greatest size for what is slow; 0 means any
	decide func(data any, s settings) verdicts
}

// group is a family of methods on the same data.
type group struct {
	name, doc string
	settings  [2]string // names of the light and the heavy data
	draw      func(r *rand.Rand, s setting, t truth, n int) any
	methods   []method
}

// result counts the verdicts of one method on one kind of data.
type result struct {
	group   *group
	method  *method
	setting setting
	sizes   []int
	runs    int
	fail    [truths][]int // at each size
	pass    [truths][]int
}

// blank is a result for each method on each kind of data, all zero.
func blank(s settings) []*result {
	var all []*result
	for gi := range groups {
		g := &groups[gi]
		for _, kind := range allSettings {
			for i := range g.methods {
				r := &result{group: g, method: &g.methods[i], setting: kind, sizes: s.sizes, runs: (s.runs + every(&g.methods[i]) - 1) / every(&g.methods[i])}
				for t := range truths {
					r.fail[t], r.pass[t] = make([]int, len(s.sizes)), make([]int, len(s.sizes))
				}
				all = append(all, r)
			}
		}
	}
	return all
}

// simulate runs every method on every kind of data. The data of a run are drawn
// once and given to all methods of the group; each run has a source of its own,
// so that the result does not depend on the number of processors.
func simulate(s settings) []*result {
	all := blank(s)
	from := 0
	for gi := range groups {
		g := &groups[gi]
		for si, kind := range allSettings {
			to := from + len(g.methods)
			for t := range truths {
				runAll(g, kind, t, s, s.seed+uint64(1000*gi+100*si+10*int(t)), all[from:to])
			}
			from = to
			if s.progress != nil {
				fmt.Fprintf(s.progress, "errorrates: %s, %s\n", g.name, g.kind(kind))
			}
		}
	}
	return all
}

func every(m *method) int { return max(m.every, 1) }

func runAll(g *group, kind setting, t truth, s settings, seed uint64, rs []*result) {
	var mu sync.Mutex // guards rs
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	most := slices.Max(s.sizes)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < s.runs; i += workers {
				data := g.draw(rand.New(rand.NewPCG(seed, uint64(i))), kind, t, most)
				for k := range g.methods {
					m := &g.methods[k]
					if i%every(m) != 0 || t == atMargin && !m.margin {
						continue
					}
					v := m.decide(data, s.upTo(m.most))
					mu.Lock()
					for j := range v.fail {
						if v.fail[j] {
							rs[k].fail[t][j]++
						}
						if v.pass[j] {
							rs[k].pass[t][j]++
						}
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// kind names a setting of the group.
func (g *group) kind(s setting) string {
	name := g.settings[0]
	if s.heavy {
		name = g.settings[1]
	}
	if s.sessions {
		return name + ", sessions"
	}
	return name
}

// alarms gives the counts of false alarms by kind: the wrong verdicts where the
// truth makes them worst.
func (r *result) alarms() (fail, pass []int) {
	if !r.method.margin {
		return r.fail[equal], nil
	}
	return r.fail[atMargin], r.pass[atMargin]
}

// band is the 95 % interval of a share of runs (Wilson).
func band(k, n int) (lo, hi float64) {
	const z = 1.959963984540054
	p, m := float64(k)/float64(n), float64(n)
	mid, half := (p+z*z/2/m)/(1+z*z/m), z/(1+z*z/m)*math.Sqrt(p*(1-p)/m+z*z/4/m/m)
	return math.Max(0, mid-half), math.Min(1, mid+half)
}

// violations lists the tests of ours that err more often than they say: the
// lower end of the band of their rate is above it. Of the thousand and more
// rates that are measured some bands lie there by chance, so the band is that of
// all of them together (Bonferroni: about 4 standard errors).
func violations(results []*result) []string {
	var out []string
	for _, r := range results {
		if r.method.naive {
			continue
		}
		fail, pass := r.alarms()
		for which, counts := range [][]int{fail, pass} {
			for j, k := range counts {
				if limit := nominal + 4*math.Sqrt(nominal*(1-nominal)/float64(r.runs)); float64(k)/float64(r.runs) > limit {
					out = append(out, fmt.Sprintf("%s, %s, n = %d: false %s in %.1f %% of %d runs", r.method.name, r.group.kind(r.setting), r.sizes[j], [2]string{"fail", "pass"}[which], 100*float64(k)/float64(r.runs), r.runs))
				}
			}
		}
	}
	return out
}

// looks are the sizes at which a test is looked at: close together, and at each
// size of the table.
func looks(sizes []int) []int {
	var out []int
	for at := 20.0; at < float64(sizes[len(sizes)-1]); at *= 1.15 {
		out = append(out, int(at))
	}
	out = append(out, sizes...)
	slices.Sort(out)
	return slices.Compact(out)
}

// peek looks at a test again and again. step moves it from one size to the
// next and gives the verdicts there.
func peek(s settings, step func(from, to int) (fail, pass bool)) verdicts {
	v := newVerdicts(len(s.sizes))
	from := 0
	var fail, pass bool
	for _, to := range looks(s.sizes) {
		if !fail || !pass {
			f, p := step(from, to)
			fail, pass = fail || f, pass || p
		}
		if j := slices.Index(s.sizes, to); j >= 0 {
			v.fail[j], v.pass[j] = fail, pass
		}
		from = to
	}
	return v
}

// once looks at each size as if it were the only one.
func once(s settings, at func(n int) (fail, pass bool)) verdicts {
	v := newVerdicts(len(s.sizes))
	for j, n := range s.sizes {
		v.fail[j], v.pass[j] = at(n)
	}
	return v
}
