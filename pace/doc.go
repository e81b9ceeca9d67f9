// Package pace waits until an instant, exactly.
//
// A schedule that is late before it starts cannot be measured against. Go's own
// timers wake through the network poller, which rounds its sleep up to whole
// milliseconds: time.Sleep is about 0.5 ms late at the median. A [Waiter] made
// by [New] arms a timerfd (Linux), which the same poller wakes as it wakes a
// socket: 0.05 to 0.1 ms late at the median, without a thread of its own.
// On other systems, and inside a testing/synctest bubble where only package time
// is virtual, [Plain] waits on a timer.
//
// A Waiter belongs to one goroutine at a time: the load driver has one for its
// schedule, the simulated engine one for its step loop.
package pace
