package load_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
)

// hold passes on what comes from up to down in pieces of size bytes, as a proxy
// does that fills its buffer before it sends; the rest when the answer ends.
func hold(down, up net.Conn, size int) {
	defer down.Close()
	buffer, n := make([]byte, size), 0
	end := []byte("\r\n0\r\n\r\n") // of a chunked body
	for {
		k, err := up.Read(buffer[n:])
		n += k
		ended := n >= len(end) && string(buffer[n-len(end):n]) == string(end)
		if n == size || ended || err != nil {
			if _, failed := down.Write(buffer[:n]); failed != nil || err != nil {
				return
			}
			n = 0
		}
	}
}

// buffering listens at proxy:80 of the network and forwards to sim:80 through
// buffers of size bytes.
func buffering(t *testing.T, network *sim.Network, size int) (stop func()) {
	t.Helper()
	l, err := network.Listen("proxy:80")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				up, err := network.DialContext(context.Background(), "tcp", "sim:80")
				if err != nil {
					t.Error(err)
					return
				}
				wg.Go(func() { hold(down, up, size) })
				_, _ = io.Copy(up, down)
				_ = up.Close()
			})
		}
	})
	return func() {
		_ = l.Close()
		wg.Wait()
	}
}

// streams sends 60 requests to an engine in virtual time, at an address of the
// network, and returns the records.
func streams(t *testing.T, engineYAML, address string, buffer, output int, seed uint64) []*record.Record {
	_, network, stop := engine(t, engineYAML)
	proxy := buffering(t, network, buffer)
	client, err := llm.NewClient(llm.Target{URL: "http://" + address + "/v1", Dial: network.DialContext, KeepText: -1})
	if err != nil {
		t.Fatal(err)
	}
	recs := fly(t, client, fmt.Sprintf(`{arrivals: {poisson: 20/s}, requests: 60, prompts: {synthetic: 40}, output: %d}`, output), seed)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	proxy()
	stop()
	return recs
}

// judged is the verdict of a clause that any engine's pace meets.
func judged(t *testing.T, recs []*record.Record) contract.Verdict {
	t.Helper()
	need, err := contract.ParseNeed("median(tpot) <= 1s")
	if err != nil {
		t.Fatal(err)
	}
	return contract.Evaluate(&contract.Contract{Clauses: []contract.Clause{{Need: need}}}, contract.Evidence{Records: values(recs), Candidate: "v"})
}

// TestBufferingProxiesAreDetected puts a proxy with buffers of 16 KiB, which is
// about eighty events, between client and engine: answers of 16 to 400 tokens at
// 1 to 30 ms each come in one to five pieces. Without the proxy the same engines,
// and faster ones, are honest.
func TestBufferingProxiesAreDetected(t *testing.T) {
	detected, wrongly := 0, 0
	for i := range 20 {
		output := []int{16, 64, 90, 128, 400}[i%5]
		yaml := fmt.Sprintf("{step: %dms, seed: %d, max_seqs: 1024}", []int{1, 5, 12, 30}[i%4], i)
		synctest.Test(t, func(t *testing.T) {
			recs := streams(t, yaml, "proxy:80", 16<<10, output, uint64(i))
			v := judged(t, recs)
			if !record.HeldBack(recs) || v.Grade != contract.Inconclusive {
				t.Errorf("%d tokens from %s through a proxy: %s: %s", output, yaml, v.Grade, v.Reason)
			}
			if i == 0 && !strings.Contains(v.Reason, "the streams of v arrive in pieces, as behind a buffering proxy") {
				t.Errorf("the reason is %q", v.Reason)
			}
			detected++
		})
		// Honest: fast, and with several tokens at a time.
		yaml = fmt.Sprintf("{step: {base: %dus, prefill: 50us}, seed: %d, max_seqs: 1024, tokens_per_event: %d}", []int{250, 500, 1000, 8000}[i%4], i, 1+i%3)
		synctest.Test(t, func(t *testing.T) {
			if recs := streams(t, yaml, "sim:80", 16<<10, output, uint64(i)); record.HeldBack(recs) {
				wrongly++
				t.Errorf("%d tokens from %s without a proxy are taken for held back", output, yaml)
			}
		})
	}
	t.Logf("detected %d of 20, wrongly %d of 20", detected, wrongly)
}
