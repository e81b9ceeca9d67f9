package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
)

// Limits of a fit client. The first two and the CPU rule are the ones by which
// a saturated client was told from a healthy one in every trial; see the test of
// starved clients.
const (
	maxLag        = 5 * time.Millisecond   // p99 of the client's own send lag and of its stamp lag …
	maxLagShare   = .02                    // … or this share of the median TTFT, if that is more
	maxDropped    = .001                   // share of the shots that the client dropped, failed itself or held back at its cap
	maxStall      = 100 * time.Millisecond // longest time that the process did not run
	maxCPU        = .85                    // share of the CPU time that it could have had …
	maxCPUSeconds = 5                      // … for more than so many seconds in a row
	maxOpen       = .9                     // share of the descriptors that it may have
)

// Certificate says whether the client was fit to measure the given records, and
// why not, with figures.
func (m *Monitor) Certificate(records []record.Record) record.Certificate {
	return Certify(records, m.rows())
}

// Certify is the certificate of a client over the given seconds and records,
// which may be a part of those of a run.
func Certify(records []record.Record, seconds []record.ClientSecond) record.Certificate {
	c := record.Certificate{Seconds: seconds}
	c.Reasons = append(lagReasons(records), lossReasons(records)...)
	c.Reasons = append(c.Reasons, processReasons(c.Seconds)...)
	c.Fit = len(c.Reasons) == 0
	return c
}

// lagReasons judges how late the client sent and stamped.
func lagReasons(records []record.Record) (reasons []string) {
	var send, stamp, ttft []time.Duration
	for i := range records {
		r := &records[i]
		if r.Phase != record.Measured {
			continue
		}
		if lag, ok := r.OwnLag(); ok {
			send = append(send, lag)
		}
		if first := r.First(); first != nil {
			if d, ok := first.At.Sub(r.Due); ok {
				ttft = append(ttft, d)
			}
		}
		for j := range r.Events {
			if lag := r.Events[j].Lag; lag >= 0 {
				stamp = append(stamp, lag)
			}
		}
	}
	limit := maxLag
	if median := quantile(ttft, .5); float64(median)*maxLagShare > float64(limit) {
		limit = time.Duration(float64(median) * maxLagShare)
	}
	if p99 := quantile(send, .99); p99 > limit {
		reasons = append(reasons, fmt.Sprintf("the client sent late: p99 of its own lag is %v, above %v", short(p99), short(limit)))
	}
	if p99 := quantile(stamp, .99); p99 > limit {
		reasons = append(reasons, fmt.Sprintf("the client stamped late: p99 from the kernel's receive stamp to its own is %v, above %v", short(p99), short(limit)))
	}
	return reasons
}

// lossReasons judges what the client did not send as asked.
func lossReasons(records []record.Record) (reasons []string) {
	var offered, overload, fault, delayed int
	detail := ""
	for i := range records {
		r := &records[i]
		if r.Phase != record.Measured {
			continue
		}
		offered++
		switch r.Outcome {
		case record.ClientOverload:
			overload++
		case record.ClientFault:
			fault++
			detail = r.Detail
		}
		if r.Flags&record.FlagDelayedByCap != 0 {
			delayed++
		}
	}
	over := func(n int) bool { return float64(n) > maxDropped*float64(offered) }
	if over(overload) {
		reasons = append(reasons, fmt.Sprintf("the client dropped %d of %d requests at its cap", overload, offered))
	}
	if over(fault) {
		reasons = append(reasons, fmt.Sprintf("the client itself failed %d of %d requests (%s)", fault, offered, detail))
	}
	if over(delayed) {
		reasons = append(reasons, fmt.Sprintf("the cap on requests in flight held back %d of %d requests: this was not an open loop", delayed, offered))
	}
	return reasons
}

// processReasons judges the process itself.
func processReasons(seconds []record.ClientSecond) (reasons []string) {
	var stall, busy, longest, busyEnd, open int
	for i := range seconds {
		s := &seconds[i]
		if s.Stall > seconds[stall].Stall {
			stall = i
		}
		if float64(s.Descriptors) > float64(seconds[open].Descriptors) {
			open = i
		}
		if s.CPU > maxCPU {
			busy++
		} else {
			busy = 0
		}
		if busy > longest {
			longest, busyEnd = busy, s.Second
		}
	}
	if len(seconds) == 0 {
		return []string{"the client was not watched"}
	}
	if s := &seconds[stall]; s.Stall > maxStall {
		reasons = append(reasons, fmt.Sprintf("the client stood still for %v in second %d, above %v", short(s.Stall), s.Second, maxStall))
	}
	if longest > maxCPUSeconds {
		reasons = append(reasons, fmt.Sprintf("the client took more than %.0f %% of its CPU for %d s in a row, until second %d", maxCPU*100, longest, busyEnd))
	}
	if s := &seconds[open]; s.Limit > 0 && float64(s.Descriptors) > maxOpen*float64(s.Limit) {
		reasons = append(reasons, fmt.Sprintf("the client had %d of its %d descriptors open in second %d", s.Descriptors, s.Limit, s.Second))
	}
	return reasons
}

// quantile returns an order statistic of d, which it sorts; 0 when d is empty.
func quantile(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(p*float64(len(d)-1))]
}

// short rounds a duration to three figures or so, for people.
func short(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}
