package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// CapacitySchema names the JSON form of a Capacity.
const CapacitySchema = "assay.capacity/1"

// Capacity is what a search for the highest rate that a service bears, or a sweep
// over given rates or numbers of users, has found. Its JSON form is stable under
// [CapacitySchema] and holds no NaN and no infinity.
type Capacity struct {
	Schema  string        `json:"schema"`
	ID      string        `json:"id"` // of its directory
	Assay   string        `json:"assay"`
	Start   time.Time     `json:"start"`
	Elapsed time.Duration `json:"elapsed_ns"`
	State   string        `json:"state"` // running, done, interrupted or failed
	URL     string        `json:"url"`
	Model   string        `json:"model,omitempty"`
	Seed    uint64        `json:"seed"`  // of the first probe; each next one has the next
	Sweep   bool          `json:"sweep"` // points were given; else they were searched for, and there is a bracket
	Needs   []string      `json:"needs"` // the clauses that must hold

	// The bracket. It holds with Confidence as a whole; each probe was therefore
	// judged at ProbeConfidence.
	Confidence      float64  `json:"confidence"`
	ProbeConfidence float64  `json:"probe_confidence"`
	Lo              *float64 `json:"lo_per_s"` // requests a second that were proven to be borne; null: none was
	Hi              *float64 `json:"hi_per_s"` // lowest rate proven not to be borne; null: none was
	Grade           string   `json:"grade"`    // of a search: pass (both ends are known), fail (no rate holds) or inconclusive
	Reason          string   `json:"reason"`   // what was found, in one sentence
	Ended           string   `json:"ended"`    // why it ended where it did

	Probes []Probe `json:"probes"` // in the order in which they ran
}

// The outcomes of a probe.
const (
	Holds     = "holds"     // every clause passes and the queue is stable
	Fails     = "fails"     // a clause fails, or the queue grows
	Undecided = "undecided" // neither was shown
	Unfit     = "client"    // the client could not send or stamp at this rate: its limit, not the server's
	Stopped   = "stopped"   // the probe did not run to its end
	Measured  = "measured"  // a point of a sweep of which nothing was demanded
)

// Probe is one run at one rate, or with so many users.
type Probe struct {
	Run     string        `json:"run"`                  // its run directory, below that of the search
	Rate    float64       `json:"rate_per_s,omitempty"` // planned; 0 in a closed loop
	Users   int           `json:"users,omitempty"`      // of a closed loop
	For     time.Duration `json:"for_ns"`               // planned
	Outcome string        `json:"outcome"`              // holds, fails, undecided, client, stopped or measured
	Reason  string        `json:"reason"`               // why, with figures
	Proven  *float64      `json:"proven_per_s"`         // what a probe that holds proves: its rate, less the growth in flight that it cannot rule out
	Leaning string        `json:"leaning"`              // what the values say without their bounds: pass, fail or inconclusive

	// Everything below is about the time from WarmUp on.
	WarmUp    time.Duration   `json:"warm_up_ns"` // left out
	Steady    bool            `json:"steady"`     // false: no steady state was found in the first half
	Requests  int             `json:"requests"`   // that were judged
	Failed    int             `json:"failed"`
	Good      *float64        `json:"good_per_s"`          // requests a second that succeeded within all limits on a request
	GoodShare *float64        `json:"good_share"`          // of those judged
	Growth    contract.Figure `json:"in_flight_growth"`    // requests a second by which the number in flight grew
	TTFTP50   contract.Figure `json:"ttft_p50_ns"`         //
	TTFTP99   contract.Figure `json:"ttft_p99_ns"`         //
	Completed contract.Figure `json:"completed_per_s"`     // requests
	Tokens    contract.Figure `json:"output_tokens_per_s"` //
}

// PointText says where a probe was: "8/s" or "16 users".
func PointText(p *Probe) string {
	if p.Users > 0 {
		return count(p.Users, "user")
	}
	return plain(p.Rate, 4) + "/s"
}

// CapacityJSON writes the document as one object on one line, with the schema
// assay.capacity/1.
func CapacityJSON(w io.Writer, c *Capacity) error { return writeJSON(w, c) }

// CapacityText writes the document for a terminal.
func CapacityText(w io.Writer, c *Capacity, o TextOptions) error {
	c = scrub(c)
	p := newPage(w, o)
	p.text("", capacityHead(c), boldPaint)
	if c.Ended != "" {
		p.text("  ", "ended: "+c.Ended, dimPaint)
	}
	for _, n := range c.Needs {
		p.text("  ", "needs "+n, dimPaint)
	}
	p.line("")
	g := &grid{tail: 1}
	g.add(texts("probe", "for", "warm-up", "requests", "good", "TTFT p50", "p99", "in flight", "outcome"))
	for i := range c.Probes {
		r := rowOf(&c.Probes[i])
		g.add([]cell{
			{first: "  " + r.Point},
			{first: r.For},
			{first: r.WarmUp},
			{first: r.Requests},
			{first: r.Good},
			{first: r.P50},
			{first: r.P99},
			{first: r.Growth},
			{first: r.Outcome, paint: outcomePaint(r.Outcome)},
		})
	}
	g.write(p)
	p.line("")
	for i := range c.Probes {
		pr := &c.Probes[i]
		first := fmt.Sprintf("%-9s %-10s ", PointText(pr), pr.Outcome)
		p.reason(first, columns(first), pr.Reason)
	}
	return p.w.Flush()
}

// capacityHead is the first line.
func capacityHead(c *Capacity) string {
	if c.Grade == "" {
		return c.Reason
	}
	return strings.ToUpper(c.Grade) + ": " + c.Reason
}

func outcomePaint(outcome string) paint {
	switch outcome {
	case Holds:
		return passPaint
	case Fails:
		return failPaint
	case Measured:
		return noPaint
	}
	return doubtPaint
}

// probeRow is a probe in words, as every renderer prints it.
type probeRow struct {
	Point, For, WarmUp, Requests, Good, P50, P99, Growth, Outcome, Reason, Run string
}

func rowOf(p *Probe) probeRow {
	r := probeRow{
		Point: PointText(p), For: span(p.For), Outcome: p.Outcome, Reason: p.Reason, Run: p.Run,
		Requests: fixed(float64(p.Requests), 0), WarmUp: "not steady", Good: none, Growth: none,
	}
	if p.Failed > 0 {
		r.Requests += ", " + fixed(float64(p.Failed), 0) + " failed"
	}
	if p.Steady {
		r.WarmUp = span(p.WarmUp)
	}
	if p.Good != nil && p.GoodShare != nil {
		r.Good = plain(*p.Good, 3) + "/s"
	}
	time := func(f contract.Figure) string {
		v, _ := scaleOf(record.Nanoseconds, f.Value).figure(f.Estimate)
		return v
	}
	r.P50, r.P99 = time(p.TTFTP50), time(p.TTFTP99)
	if p.Growth.Defined() {
		r.Growth = fmt.Sprintf("%+.2g/s", p.Growth.Value)
		if p.Growth.Value == 0 {
			r.Growth = "0/s"
		}
	}
	return r
}

// none stands where there is no number.
const none = "–"

//go:embed capacity.html
var capacityText string

// capacityView is the document as the page lays it out.
type capacityView struct {
	*Capacity
	Rows   []probeRow
	Charts []chart
	About  []string
}

// CapacityHTML writes the document as one self-contained page: it makes no
// network request and runs no script.
func CapacityHTML(w io.Writer, c *Capacity) error {
	c = scrub(c)
	v := capacityView{Capacity: c, Charts: capacityCharts(c)}
	for i := range c.Probes {
		v.Rows = append(v.Rows, rowOf(&c.Probes[i]))
	}
	if !c.Start.IsZero() {
		v.About = append(v.About, c.Start.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	for _, s := range []string{c.URL, c.Model, fmt.Sprintf("seed %d", c.Seed)} {
		if s != "" {
			v.About = append(v.About, s)
		}
	}
	b := bufio.NewWriter(w)
	if err := htmlPage.ExecuteTemplate(b, "capacity", v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return b.Flush()
}
