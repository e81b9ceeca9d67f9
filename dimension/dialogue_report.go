package dimension

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/scenario"
	"github.com/assay-llm/assay/stat"
)

// lossAlpha is the chance that one family of looks warns of a candidate that is the
// baseline.
const lossAlpha = .01

// dialogueData is what the check publishes.
type dialogueData struct {
	Scenarios   int                 `json:"scenarios"`
	Variants    []dialogueVariant   `json:"variants"`
	Propagation []dialogueSpreading `json:"propagation,omitempty"` // with mode both
}

// dialogueVariant is what one variant did in one replay.
type dialogueVariant struct {
	Variant string                     `json:"variant"`
	Replay  string                     `json:"replay"`
	Implied tallied                    `json:"implied"`
	Phases  map[scenario.Phase]*phased `json:"phases"` // constraints in replies, by their phase
	State   []atTurn                   `json:"state"`  // slots in side questions, by turn
	Read    map[string]int             `json:"read"`   // answers to side questions, by how they were read: json, prose, unread
	Depth   scenario.Depth             `json:"depth"`
}

// tallied counts what became of implied values.
type tallied struct {
	Implied  int `json:"implied"` // unique or derivable
	Used     int `json:"used"`
	Needless int `json:"needless"` // asked for
	Open     int `json:"open"`     // ambiguous or missing
	Asked    int `json:"asked"`
	Assumed  int `json:"assumed"`
}

// phased counts pairs of a constraint and a turn.
type phased struct {
	Satisfied    int `json:"satisfied"`
	Violated     int `json:"violated"`
	NotExercised int `json:"not_exercised"`
}

// atTurn counts slots at one turn, from 1.
type atTurn struct {
	Turn  int `json:"turn"`
	Right int `json:"right"`
	N     int `json:"n"`
}

// dialogueSpreading is how much worse a variant is when its own replies are sent back.
type dialogueSpreading struct {
	Variant string   `json:"variant"`
	Value   string   `json:"value"`
	Change  float64  `json:"change"` // live minus scripted, over the same turns of the same scenarios
	Low     *float64 `json:"low"`    // of its interval at 95 %, clustered by scenario; nil: there is none
	High    *float64 `json:"high"`
	N       int      `json:"n"` // turns
}

// report says what was found beyond the numbers of single turns.
func (c *DialogueConfig) report(p *check.Pass, all []*dialogue) {
	data := dialogueData{Scenarios: len(all) / len(c.replays())}
	for _, replay := range c.replays() {
		var list []*dialogue
		for _, d := range all {
			if d.replay == replay {
				list = append(list, d)
			}
		}
		for v, s := range p.Variants {
			data.Variants = append(data.Variants, sumDialogues(s.Name, replay, v, list))
		}
		for v := 1; v < len(p.Variants); v++ {
			c.findings(p, replay, v, list)
		}
	}
	for _, d := range data.Variants {
		noteDialogue(p, d)
	}
	depths(p, data)
	if c.Mode == "both" {
		data.Propagation = propagation(p, all)
	}
	drawDialogues(p, data, c.replays())
	p.Publish(data)
}

// sumDialogues adds up what one variant did.
func sumDialogues(name, replay string, v int, all []*dialogue) dialogueVariant {
	out := dialogueVariant{Variant: name, Replay: replay, Phases: make(map[scenario.Phase]*phased), Read: make(map[string]int)}
	byTurn := make(map[int]*atTurn)
	var reaches []scenario.Reach
	for _, d := range all {
		for t, turn := range d.turns {
			if how := turn.how[v]; how != "" {
				out.Read[how]++
			}
			for _, m := range turn.marks[v] {
				if byTurn[t] == nil {
					byTurn[t] = &atTurn{Turn: t + 1}
				}
				byTurn[t].N++
				byTurn[t].Right += countIf(m.Right)
			}
			r := turn.readings[v]
			if r == nil {
				continue
			}
			u := tallyUsed(r.Used)
			i := &out.Implied
			i.Implied, i.Used, i.Needless = i.Implied+u.implied, i.Used+u.right, i.Needless+u.needless
			i.Open, i.Asked, i.Assumed = i.Open+u.open, i.Asked+u.asked, i.Assumed+u.assumed
			for _, u := range r.Used {
				if !u.Resolution.Open() {
					reaches = append(reaches, scenario.Reach{Cluster: d.s.ID, Depth: u.Depth, Right: u.Right})
				}
			}
			for _, k := range r.Kept {
				out.phase(k)
			}
		}
	}
	for _, t := range slices.Sorted(maps.Keys(byTurn)) {
		out.State = append(out.State, *byTurn[t])
	}
	out.Depth = scenario.FitDepth(reaches, .9)
	return out
}

func (d *dialogueVariant) phase(k scenario.Kept) {
	c := d.Phases[k.Phase]
	if c == nil {
		c = new(phased)
		d.Phases[k.Phase] = c
	}
	switch k.Standing {
	case scenario.Satisfied:
		c.Satisfied++
	case scenario.Violated:
		c.Violated++
	default:
		c.NotExercised++
	}
}

// noteDialogue notes what one variant did, with denominators.
func noteDialogue(p *check.Pass, d dialogueVariant) {
	i := d.Implied
	p.Note("%s, %s: of %d implied values %d were used right and %d asked for needlessly; of %d open ones %d were asked for and %d assumed",
		d.Variant, d.Replay, i.Implied, i.Used, i.Needless, i.Open, i.Asked, i.Assumed)
	if prose, unread := d.Read["prose"], d.Read["unread"]; prose+unread > 0 {
		p.Note("%s, %s: of %d answers to side questions %d were read from prose, and %d could not be read, which leaves state missing", d.Variant, d.Replay, d.Read["json"]+prose+unread, prose, unread)
	}
	var phases []string
	for _, name := range []scenario.Phase{scenario.Activated, scenario.Persisting, scenario.Updating, scenario.Updated, scenario.Cancelled, scenario.Contradicted} {
		if c := d.Phases[name]; c != nil {
			phases = append(phases, fmt.Sprintf("%s %d of %d (%d not exercised)", name, c.Satisfied, c.Satisfied+c.Violated, c.NotExercised))
		}
	}
	p.Note("%s, %s: constraints satisfied of exercised: %s", d.Variant, d.Replay, strings.Join(phases, ", "))
	where := d.Depth.Why
	if d.Depth.At != nil {
		where = fmt.Sprintf("it falls to 90 %% at depth %.1f", *d.Depth.At)
	}
	p.Note("%s, %s: use of implied values by how many turns back they were said (mean %.1f): %s, 95 %% %s", d.Variant, d.Replay, d.Depth.Mean, where, depthInterval(d.Depth))
}

func depthInterval(d scenario.Depth) string {
	switch {
	case d.Low == nil && d.High == nil:
		return "open on both sides"
	case d.Low == nil:
		return fmt.Sprintf("at most %.1f", *d.High)
	case d.High == nil:
		return fmt.Sprintf("at least %.1f", *d.Low)
	}
	return fmt.Sprintf("%.1f to %.1f", *d.Low, *d.High)
}

// number is one value of a turn, if it has one.
func (t *dialogueTurn) number(value string, v int) (float64, bool) {
	if value == "state" {
		right := 0
		for _, m := range t.marks[v] {
			right += countIf(m.Right)
		}
		return float64(right) / math.Max(1, float64(len(t.marks[v]))), len(t.marks[v]) > 0
	}
	r := t.readings[v]
	if r == nil || !r.Expects {
		return 0, false
	}
	return yes(len(r.Misses) == 0), true
}

// drawDialogues shows the state by turn and the use of implied values by depth.
func drawDialogues(p *check.Pass, data dialogueData, replays []string) {
	state := check.Figure{
		Title: "State known, by turn", X: "turn", Y: "share of slots",
		About: "Share of the slots whose value the answer to the side question after a turn states right, of all scenarios that are as long, with exact intervals at 95 % that take the slots as independent.",
	}
	depth := check.Figure{
		Title: "Implied values used, by how far back they were said", X: "turns back", Y: "share used right",
		About: "Share of the values that a turn implies and that follow from what was said which the reply uses without asking, with exact intervals at 95 %.",
	}
	for _, d := range data.Variants {
		name := d.Variant
		if len(replays) > 1 {
			name += ", " + d.Replay
		}
		var a, b check.Curve
		a.Name, b.Name = name, name
		for _, s := range d.State {
			a.Points = append(a.Points, sharePoint(s.Turn, s.Right, s.N))
		}
		for _, s := range d.Depth.Count {
			b.Points = append(b.Points, sharePoint(s.Depth, s.Right, s.N))
		}
		if len(a.Points) > 0 {
			state.Curves = append(state.Curves, a)
		}
		if len(b.Points) > 0 {
			depth.Curves = append(depth.Curves, b)
		}
	}
	for _, f := range []check.Figure{state, depth} {
		if len(f.Curves) > 0 {
			p.Draw(f)
		}
	}
}

func sharePoint(x, k, n int) check.Point {
	e := stat.ExactShare(k, n, .95)
	return check.Point{X: float64(x), Y: e.Value, Low: &e.Lo, High: &e.Hi, N: n}
}
