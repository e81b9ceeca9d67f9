package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// batch describes requests of one variant on one workload: the compact form in
// which tests write evidence.
type batch struct {
	variant, workload string
	n                 int // offered, measured
	failed, dropped   int // of n, spread evenly
	cancelled         int
	mute              int // of n: completed without usage
	single            int // of n: completed with one token
	out               int64
	chunks            int // events after the first; 0: one
	ttft, tpot        time.Duration
	sigma             float64 // of the logarithm of TTFT and TPOT
	every             time.Duration
	stream            bool
	warm              bool
	labels            map[string]string
	values            map[string]float64
}

func newBatch(variant, workload string) batch {
	return batch{variant: variant, workload: workload, out: 100, ttft: 200 * time.Millisecond, tpot: 15 * time.Millisecond, every: 100 * time.Millisecond, stream: true}
}

// records makes the batch's records. The same source gives the same records.
func (b batch) records(rng *rand.Rand) []record.Record {
	rs := make([]record.Record, b.n)
	for i := range rs {
		r := &rs[i]
		due := time.Duration(i) * b.every
		*r = record.Record{
			Shot: int64(i), Variant: b.variant, Workload: b.workload, Stream: b.stream,
			Due: record.At(due), Send: record.At(due), Outcome: record.OK, Finish: "stop", Labels: b.labels, Values: b.values,
		}
		if b.warm {
			r.Phase = record.WarmUp
		}
		ttft := time.Duration(float64(b.ttft) * math.Exp(b.sigma*rng.NormFloat64()))
		tpot := float64(b.tpot) * math.Exp(b.sigma*rng.NormFloat64())
		answer(r, ttft, tpot, b.out, max(b.chunks, 1))
	}
	b.spoil(rs)
	return rs
}

// answer fills in a stream of n tokens: the first alone, the others in so many
// chunks of equal size.
func answer(r *record.Record, ttft time.Duration, tpot float64, n int64, chunks int) {
	due, _ := r.Due.Offset()
	last := due + ttft
	r.Output, r.Prompt = record.Tokens(n), record.Tokens(50)
	r.Events = []record.Event{{At: record.At(last), Kind: record.KindContent, Tokens: record.Tokens(1)}}
	if n > 1 && r.Stream {
		each := (n - 1) / int64(chunks)
		for range chunks {
			last += time.Duration(tpot * float64(each))
			r.Events = append(r.Events, record.Event{At: record.At(last), Kind: record.KindContent, Tokens: record.Tokens(each)})
		}
	}
	r.EOF = record.At(last)
}

// spoil turns evenly spread records into failures, drops and so on, one after
// the other so that they do not overlap.
func (b batch) spoil(rs []record.Record) {
	total := b.failed + b.dropped + b.cancelled + b.mute + b.single
	for k := range min(total, len(rs)) {
		r := &rs[k*len(rs)/total]
		switch {
		case k < b.failed:
			fail(r)
		case k < b.failed+b.dropped:
			r.Outcome, r.Events, r.Send, r.EOF = record.ClientOverload, nil, 0, 0
		case k < b.failed+b.dropped+b.cancelled:
			r.Outcome = record.ClientCancelled
		case k < b.failed+b.dropped+b.cancelled+b.mute:
			r.Output, r.Flags = 0, record.FlagUsageMissing
			for i := range r.Events {
				r.Events[i].Tokens = 0
			}
		default:
			r.Output, r.Events = record.Tokens(1), r.Events[:1]
		}
	}
}

func fail(r *record.Record) {
	r.Outcome, r.Status, r.Events, r.Output = record.HTTP5xx, 503, nil, 0
}

// window is the stretch in which the batch was due.
func (b batch) window() record.Window {
	return record.Window{Variant: b.variant, Workload: b.workload, Start: record.At(0), End: record.At(time.Duration(b.n) * b.every)}
}

// parseEvidence reads the compact form: a line a batch, "VARIANT WORKLOAD
// key=value ...", and lines "baseline: NAME", "candidate: NAME", "unfit: WHY".
func parseEvidence(t *testing.T, text string) Evidence {
	t.Helper()
	e := Evidence{Baseline: "baseline", Candidate: "candidate"}
	rng := rand.New(rand.NewPCG(1, 2))
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if key, rest, ok := strings.Cut(line, ":"); ok && !strings.Contains(key, " ") {
			switch rest = strings.TrimSpace(rest); key {
			case "baseline":
				e.Baseline = rest
			case "candidate":
				e.Candidate = rest
			case "unfit":
				e.Unfit = append(e.Unfit, rest)
			}
			continue
		}
		fields := strings.Fields(line)
		b := newBatch(fields[0], fields[1])
		windowed := true
		for _, f := range fields[2:] {
			k, v, _ := strings.Cut(f, "=")
			if k == "window" && v == "none" {
				windowed = false
				continue
			}
			if err := b.set(k, v); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		e.Records = append(e.Records, b.records(rng)...)
		if windowed && !b.warm {
			e.Windows = append(e.Windows, b.window())
		}
	}
	return e
}

func (b *batch) set(k, v string) (err error) {
	switch k {
	case "n", "failed", "dropped", "cancelled", "mute", "single", "out", "chunks":
		var n int
		n, err = strconv.Atoi(v)
		switch k {
		case "n":
			b.n = n
		case "failed":
			b.failed = n
		case "dropped":
			b.dropped = n
		case "cancelled":
			b.cancelled = n
		case "mute":
			b.mute = n
		case "single":
			b.single = n
		case "out":
			b.out = int64(n)
		case "chunks":
			b.chunks = n
		}
	case "ttft":
		b.ttft, err = time.ParseDuration(v)
	case "tpot":
		b.tpot, err = time.ParseDuration(v)
	case "every":
		b.every, err = time.ParseDuration(v)
	case "sigma":
		b.sigma, err = strconv.ParseFloat(v, 64)
	case "stream":
		b.stream = v == "true"
	case "phase":
		b.warm = v == "warm-up"
	case "label":
		name, value, _ := strings.Cut(v, ":")
		b.labels = map[string]string{name: value}
	case "value":
		name, value, _ := strings.Cut(v, ":")
		var x float64
		x, err = strconv.ParseFloat(value, 64)
		b.values = map[string]float64{name: x}
	default:
		err = fmt.Errorf("unknown key %q", k)
	}
	return err
}

// text writes a verdict the way testdata holds it.
func text(v Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", v.Grade, v.Reason)
	writeResults(&b, v.Clauses, "  ")
	return b.String()
}

func writeResults(b *strings.Builder, rs []Result, indent string) {
	for _, r := range rs {
		fmt.Fprintf(b, "%s%s %s", indent, r.Grade, r.ID)
		if r.Kind != KindClause {
			fmt.Fprintf(b, " (%s)", r.Kind)
		}
		if r.Scope != "" {
			fmt.Fprintf(b, " [%s]", r.Scope)
		}
		fmt.Fprintf(b, ": %s\n", r.Reason)
		for _, c := range r.Counts {
			fmt.Fprintf(b, "%s  %s: offered %d, completed %d, failed %d", indent, c.Variant, c.Offered, c.Completed, c.Failed)
			for _, x := range []struct {
				name string
				n    int
			}{{"dropped", c.Dropped}, {"cancelled", c.Cancelled}, {"missing", c.Missing}, {"undefined", c.Undefined}} {
				if x.n > 0 {
					fmt.Fprintf(b, ", %s %d", x.name, x.n)
				}
			}
			b.WriteByte('\n')
		}
		if r.Shortfall > 0 {
			fmt.Fprintf(b, "%s  shortfall: %d\n", indent, r.Shortfall)
		}
		for _, n := range r.Notes {
			fmt.Fprintf(b, "%s  note: %s\n", indent, n)
		}
		writeResults(b, r.Results, indent+"  ")
	}
}
