package load

import "runtime"

// slackBytes is how much a client may allocate before the collector runs.
const slackBytes = 64 << 20

// Slack lets a client allocate 64 MiB more between two runs of the garbage
// collector, until release is called. What is alive in a client is little, so that
// by default it would collect every four megabytes, tens of times a second under
// load, for a tenth of its CPU time. A client with much that is alive is hardly
// changed, which a higher GOGC could not promise.
//
// It costs up to that much resident memory. The bytes that make the slack are
// never touched, so that they have no pages of their own.
func Slack() (release func()) {
	slack := make([]byte, slackBytes)
	return func() { runtime.KeepAlive(slack) }
}
