package workload

import (
	"time"

	"github.com/assay-llm/assay/record"
)

// quick is how soon a request of a closed loop must fail for its user to hold
// back before the next one. Without that, users of a server that refuses them at
// once would send as fast as the client can.
const quick = 100 * time.Millisecond

// Refusals counts the quick failures in a row of one user of a closed loop.
type Refusals int

// Hold enters how a request ended that took so long from its due instant, and
// returns how long the user holds back: after so many quick failures in a row from
// 50 ms, doubling, to a second. It is no part of any latency.
func (r *Refusals) Hold(o record.Outcome, took time.Duration) time.Duration {
	if o.Group() != record.GroupFailed || took >= quick {
		*r = 0
		return 0
	}
	*r++
	return min(50*time.Millisecond<<min(int(*r)-1, 10), time.Second)
}
