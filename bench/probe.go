package bench

import (
	"fmt"
	"math"
	"strings"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/stat"
)

const (
	// mostGrowth is the growth in flight, as a share of the rate, up to which a
	// queue may be called stable. What is not ruled out of it is taken off the rate
	// that a probe proves.
	mostGrowth = 0.1
	// leastRise is by how many requests the number in flight must have risen before
	// the queue is said to grow.
	leastRise = 2
)

// judgeProbe fills in what the run of a probe says: of the requests after its
// warm-up, at the given one-sided confidence.
func judgeProbe(p *report.Probe, r *Result, confidence float64) {
	m := r.Manifest
	p.Outcome, p.Leaning = report.Undecided, contract.Inconclusive.String()
	if len(m.Windows) != 1 {
		p.Outcome, p.Reason = report.Stopped, "it was stopped before anything was measured"
		return
	}
	two := math.Round((2*confidence-1)*1e12) / 1e12
	w := m.Windows[0]
	s := contract.FindSteady(pointers(r.Records), w, p.Users, two)
	e := contract.Evidence{Records: r.Records, Windows: m.Windows, Candidate: w.Variant}
	if p.Steady = s.Found; s.From > w.Start {
		p.WarmUp, _ = s.From.Sub(w.Start)
		e = e.Since(s.From)
	}
	c := contract.Contract{Version: 1, Confidence: config.Percent(confidence)}
	if r.contract != nil {
		c.Clauses = r.contract.Clauses
	}
	v := contract.Evaluate(&c, e)
	p.Leaning = v.Leaning().String()
	figures(p, e, c.Clauses)
	p.Growth = contract.Figure{Estimate: s.Drift}
	p.Outcome, p.Reason = decideProbe(p, r, s, v, two)
}

// decideProbe says what the probe proves, and why.
func decideProbe(p *report.Probe, r *Result, s contract.Steady, v contract.Verdict, two float64) (outcome, reason string) {
	m := r.Manifest
	if why := r.unfit(); len(why) > 0 {
		switch grown := overran(r, p.Users, two); {
		case m.State != StateDone:
			return report.Stopped, "it was stopped: " + why[len(why)-1]
		case grown != "":
			return report.Fails, grown
		case len(m.Client.Reasons) > 0:
			return report.Unfit, "the client's limit, not the server's: " + strings.Join(m.Client.Reasons, "; ")
		default:
			return report.Undecided, strings.Join(why, "; ")
		}
	}
	if len(m.Workloads) != 1 || p.Users != m.Workloads[0].Users || math.Abs(p.Rate-m.Workloads[0].Rate) > 1e-6*p.Rate {
		return report.Undecided, "the run is not that of this probe: it was planned at another rate"
	}
	if grown := grows(s, m.Windows[0]); grown != "" {
		return report.Fails, grown
	}
	switch {
	case len(v.Clauses) == 0:
		return report.Measured, stable(p, s)
	case !s.Found:
		return report.Undecided, "no steady state: " + s.Why
	case v.Grade == contract.Fail:
		return report.Fails, v.Reason
	case v.Grade != contract.Pass:
		return report.Undecided, v.Reason
	case p.Users > 0: // who wait for their answers: there is no queue that could grow
		return report.Holds, v.Reason
	case !s.Drift.Defined() || s.Drift.Hi > mostGrowth*p.Rate:
		return report.Undecided, v.Reason + "; but " + stable(p, s)
	}
	proven := p.Rate - max(0, s.Drift.Hi)
	p.Proven = &proven
	return report.Holds, v.Reason + "; " + stable(p, s)
}

// grows says that the number of requests in flight was shown to grow; "" if it
// was not.
func grows(s contract.Steady, w record.Window) string {
	span, ok := w.End.Sub(s.From)
	if d := s.Drift; ok && d.Defined() && d.Lo > 0 && d.Value*span.Seconds() >= leastRise {
		return fmt.Sprintf("the queue grows: requests in flight rise by %.3g a second, by %.3g at least", d.Value, d.Lo)
	}
	return ""
}

// stable says what is known of the queue when it was not shown to grow.
func stable(p *report.Probe, s contract.Steady) string {
	switch {
	case p.Users > 0:
		return "a closed loop"
	case !s.Drift.Defined():
		return "nothing is known of the queue: " + s.Why
	case s.Drift.Hi <= mostGrowth*p.Rate:
		return fmt.Sprintf("requests in flight rise by %.2g a second at most", max(0, s.Drift.Hi))
	}
	return fmt.Sprintf("the queue was not shown to be stable: requests in flight may rise by up to %.2g a second", s.Drift.Hi)
}

// overran judges a probe that the client spoilt only when it had reached its cap
// on requests in flight: what came before counts against the server, if the
// client was fit until then and the queue was growing.
func overran(r *Result, users int, two float64) string {
	w := r.Manifest.Windows[0]
	end := w.End
	for i := range r.Records {
		if rec := &r.Records[i]; rec.Phase == record.Measured && (rec.Flags&record.FlagDelayedByCap != 0 || rec.Outcome == record.ClientOverload) {
			end = min(end, rec.Due)
		}
	}
	since, ok := end.Offset()
	if end == w.End || !ok {
		return ""
	}
	var records []record.Record
	for i := range r.Records {
		if r.Records[i].Due < end {
			records = append(records, r.Records[i])
		}
	}
	var seconds []record.ClientSecond
	for _, second := range r.Manifest.Client.Seconds {
		if float64(second.Second+1) <= since.Seconds() {
			seconds = append(seconds, second)
		}
	}
	if !load.Certify(records, seconds).Fit {
		return ""
	}
	w.End = end
	if why := grows(contract.FindSteady(pointers(records), w, users, two), w); why != "" {
		return why + ", until the client's cap was reached"
	}
	return ""
}

func pointers(records []record.Record) []*record.Record {
	out := make([]*record.Record, len(records))
	for i := range records {
		out[i] = &records[i]
	}
	return out
}

// figures fills in what a probe measured, whatever it proves.
func figures(p *report.Probe, e contract.Evidence, clauses []contract.Clause) {
	w := e.Windows[0]
	span, _ := w.End.Sub(w.Start)
	good := 0
	for i := range e.Records {
		r := &e.Records[i]
		if r.Phase != record.Measured || r.Outcome.Group() == record.GroupDropped {
			continue
		}
		p.Requests++
		if !r.Success() {
			p.Failed++
		} else if within(r, clauses) {
			good++
		}
	}
	if p.Requests > 0 && span > 0 {
		share := float64(good) / float64(p.Requests)
		rate := float64(good) / span.Seconds()
		p.Good, p.GoodShare = &rate, &share
	}
	measure := func(kind, metric string, quantile float64) contract.Figure {
		est, _, err := contract.Measure(e, contract.Quantity{Stat: kind, Metric: metric, P: quantile}, w.Variant, w.Workload, nil, 0.95)
		if err != nil {
			est = stat.Estimate{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1)}
		}
		return contract.Figure{Estimate: est}
	}
	p.TTFTP50, p.TTFTP99 = measure("quantile", "ttft", 0.5), measure("quantile", "ttft", 0.99)
	p.Completed, p.Tokens = measure("rate", "requests", 0), measure("rate", "output_tokens", 0)
}

// within reports whether a completed request keeps every limit that a clause sets
// to a quantile or the maximum of something that a request has: what goodput
// counts. A value that is missing keeps none.
func within(r *record.Record, clauses []contract.Clause) bool {
	for _, c := range clauses {
		if !within(r, c.All) {
			return false
		}
		q, limit := c.Need.Quantity, c.Need.Limit
		if q.Stat != "quantile" && q.Stat != "max" || limit.Baseline || c.Need.Compare != "<=" && c.Need.Compare != "<" {
			continue
		}
		m, ok := record.Find(q.Metric)
		if !ok || m.Values == nil {
			return false
		}
		values := m.Values(r, nil)
		if len(values) == 0 && !valueless(r, q.Metric) {
			return false
		}
		for _, x := range values {
			if !(x <= limit.Value) {
				return false
			}
		}
	}
	return true
}

// valueless reports whether a completed request can have no value of the metric: no
// gaps follow a single token, and no dial a connection that was there.
func valueless(r *record.Record, metric string) bool {
	if metric == "connect" {
		return r.Reused
	}
	n, ok := r.Output.N()
	return ok && n <= 1
}
