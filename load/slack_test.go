package load

import (
	"runtime"
	"testing"
)

var kept []byte // so that allocations are not optimised away

// TestSlackSparesCollections allocates 60 MiB of garbage with and without.
func TestSlackSparesCollections(t *testing.T) {
	collections := func() uint32 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 60 << 4 {
			kept = make([]byte, 64<<10)
		}
		kept = nil
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	release := Slack()
	with := collections()
	release()
	without := collections()
	if with > 1 || without < 3*max(with, 1) {
		t.Errorf("%d collections with slack, %d without", with, without)
	}
}
