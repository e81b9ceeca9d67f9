package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// TestClientLeaves: by either wire, a client that is to hang up does so at its
// point, and the server sees it.
func TestClientLeaves(t *testing.T) {
	left := make(chan struct{}, 16)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, content("word "))
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	for _, protocol := range []string{ProtocolHTTP1, ProtocolHTTP2} {
		c := client(t, Target{URL: s.URL, SkipVerify: true, Protocol: protocol})
		for _, q := range []Request{{LeaveSent: true}, {LeaveAfter: 2}} {
			req := *chat("x")
			req.LeaveSent, req.LeaveAfter = q.LeaveSent, q.LeaveAfter
			rec, a := ask(t, t.Context(), c, &req)
			want := ""
			if q.LeaveAfter > 0 {
				want = "word word "
			}
			if rec.Outcome != record.ClientCancelled || rec.Detail != ErrPlanned.Error() || !rec.Sent.Set() || !rec.EOF.Set() {
				t.Errorf("%s, %+v: %s (%s)", protocol, q, rec.Outcome, rec.Detail)
			}
			if a.Text != want && !(q.LeaveSent && protocol == ProtocolHTTP2) { // which may have read something by then
				t.Errorf("%s, %+v: got %q", protocol, q, a.Text)
			}
			select {
			case <-left:
			case <-time.After(10 * time.Second):
				t.Errorf("%s, %+v: the server was not told", protocol, q)
			}
		}
	}
}
