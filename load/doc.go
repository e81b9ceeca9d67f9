// Package load fires a plan at a target and records what became of every shot.
//
// A [Driver] serves one variant on one workload. It sends the plan block by
// block, so that two variants can take turns and meet the same drift of the
// machine. In an open loop the shots leave when the schedule says, whatever the
// server does: a goroutine paces them, a pool of workers sends them, each
// stream has a worker of its own. In a closed loop every virtual user sends its
// next shot when its previous answer is done and its think time is over. In
// either, a session goes on turn by turn, each with the dialogue so far.
//
// Nothing slips silently. Latency counts from the due instant, which is kept
// beside the instant at which the first byte left. A shot that has to wait for
// the cap on requests in flight is flagged; one that cannot even wait is
// recorded as dropped. Every shot that came due gives exactly one Record, so
// that offered = completed + failed + dropped holds to the last request.
//
// The end is bounded: when a block's schedule is over, or the context ends,
// nothing new is sent and what is in flight has Config.Drain to finish. Then it
// is cut: as a timeout of the server if the run went on as planned, as
// interrupted if the run was told to stop.
//
// A [Monitor] watches the client itself, second by second, and issues the
// certificate that says whether this client was fit to measure. A contract
// gives no verdict on the numbers of an unfit client.
package load
