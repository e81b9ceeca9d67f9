package notify

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/report"
)

var update = flag.Bool("update", false, "rewrite testdata")

// wire answers in memory, one status a try; 0 is no answer.
type wire struct {
	statuses []int
	after    string // Retry-After of every answer
	keys     []string
	at       []time.Time
}

func (w *wire) RoundTrip(q *http.Request) (*http.Response, error) {
	w.keys, w.at = append(w.keys, q.Header.Get("Idempotency-Key")), append(w.at, time.Now())
	status := w.statuses[len(w.keys)-1]
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	h := http.Header{"Location": {"http://elsewhere.invalid/"}}
	if w.after != "" {
		h.Set("Retry-After", w.after)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("ok"))}, nil
}

func TestPostTriesAgainWhileThereIsHope(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []int
		after    string
		tries    int
		took     time.Duration
		err      string
	}{
		{"taken", []int{200}, "", 1, 0, ""},
		{"no content is taken", []int{204}, "", 1, 0, ""},
		{"taken at the third try", []int{0, 503, 200}, "", 3, 3 * time.Second, ""},
		{"asks to come back", []int{429, 200}, "7", 2, 7 * time.Second, ""},
		{"asks for too much", []int{429, 200}, "86400", 2, time.Minute, ""},
		{"asks in words", []int{429, 200}, "tomorrow", 2, time.Second, ""},
		{"never", []int{500, 500, 500, 500, 500, 200}, "", 5, 15 * time.Second, "posting to hooks.invalid: the answer was 500 Internal Server Error"},
		{"nobody there", []int{0, 0, 0, 0, 0}, "", 5, 15 * time.Second, "posting to hooks.invalid: connection refused"},
		{"refused for good", []int{404, 200}, "", 1, 0, "posting to hooks.invalid: the answer was 404 Not Found"},
		{"elsewhere", []int{302, 200}, "", 1, 0, "posting to hooks.invalid: the answer was 302 Found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{statuses: c.statuses, after: c.after}
				start := time.Now()
				d, err := post(t.Context(), w, "https://hooks.invalid/services/SECRET", "key-1", []byte("{}"))
				if took := time.Since(start); d.Tries != c.tries || took != c.took || len(w.keys) != c.tries {
					t.Errorf("%d tries in %v, want %d in %v", d.Tries, took, c.tries, c.took)
				}
				if got := ""; err != nil {
					if got = err.Error(); got != c.err || strings.Contains(got, "SECRET") {
						t.Errorf("error %q, want %q", got, c.err)
					}
				} else if c.err != "" {
					t.Errorf("no error, want %q", c.err)
				}
				for _, k := range w.keys {
					if k != "key-1" {
						t.Errorf("a try with the key %q", k)
					}
				}
			})
		})
	}
}

func TestPostEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		d, err := post(ctx, &wire{statuses: []int{0, 0, 0}}, "https://hooks.invalid/x", "k", nil)
		if err == nil || d.Tries != 2 || time.Since(start) != 1500*time.Millisecond {
			t.Errorf("%d tries, %v after %v", d.Tries, err, time.Since(start))
		}
	})
}

// TestPostOverTheWire posts to a server: what arrives is the body, as JSON.
func TestPostOverTheWire(t *testing.T) {
	var got []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/services/T/B" {
			t.Errorf("%s %s %s", r.Method, r.URL.Path, r.Header)
		}
		got, _ = io.ReadAll(r.Body)
	}))
	defer s.Close()
	d, err := Post(t.Context(), s.URL+"/services/T/B", "k", []byte(`{"text":"x"}`))
	if err != nil || string(got) != `{"text":"x"}` || d.Status != 200 || d.Host != strings.TrimPrefix(s.URL, "http://") {
		t.Errorf("%+v, %v, %q", d, err, got)
	}
	for _, address := range []string{"", "hooks.example.com/x", "file:///etc/passwd", "ftp://example.com", "http://", "https://exa mple/SECRET"} {
		if _, err := Post(t.Context(), address, "k", nil); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("posting to %q: %v", address, err)
		}
	}
}

func failed() *report.Document {
	d := &report.Document{Reason: "p99 of TTFT is 2 s (limit 1 s)", Verdict: &contract.Verdict{Grade: contract.Fail}}
	d.Run.ID, d.Run.Name, d.Run.Seed, d.Run.Assay = "20261130T120000-0a1b2c", "chat <!channel>", 42, "v0.1.0"
	d.Verdict.Clauses = []contract.Result{
		{ID: "first", Grade: contract.Fail, Reason: "p99 of TTFT is 2 s & more <https://evil.invalid|click> @here *bold* `code`"},
		{ID: "fine", Grade: contract.Pass, Reason: "all well"},
		{ID: "rare", Reason: "too few requests"},
	}
	return d
}

func TestMessage(t *testing.T) {
	got, err := Message(failed(), Links{Diff: "https://example.com/a...b?x=1&y=2", Report: "https://example.com/report"})
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(got, &v); err != nil {
		t.Fatal(err)
	}
	pretty, _ := json.MarshalIndent(v, "", "  ")
	if *update {
		if err := os.WriteFile("testdata/message.json", append(pretty, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/message.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(pretty)+"\n"); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestMessageKeepsTheBounds sends a verdict larger than any webhook takes.
func TestMessageKeepsTheBounds(t *testing.T) {
	d := failed()
	d.Run.Name, d.Reason = strings.Repeat("名", 4000), strings.Repeat("<", 9000)
	for range 60 {
		d.Verdict.Clauses = append(d.Verdict.Clauses, contract.Result{ID: strings.Repeat("c", 500), Reason: strings.Repeat("&", 5000)})
	}
	got, err := Message(d, Links{})
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Text   string
		Blocks []block
	}
	if err := json.Unmarshal(got, &m); err != nil {
		t.Fatal(err)
	}
	long := func(x *text, most int) {
		if x != nil && len([]rune(x.Text)) > most {
			t.Errorf("a text of %d characters, at most %d are taken", len([]rune(x.Text)), most)
		}
	}
	for _, b := range m.Blocks {
		if len(b.Fields) > mostFields {
			t.Errorf("%d fields", len(b.Fields))
		}
		long(b.Text, map[string]int{"header": longestHeader, "section": longestSection}[b.Type])
		for _, f := range b.Fields {
			long(f, longestField)
		}
	}
	if len(m.Blocks) != 4 {
		t.Errorf("%d blocks", len(m.Blocks))
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("<!channel> <@U1> <https://evil.invalid|click>", "a")
	f.Add("&lt;!here&gt;", "*b*")
	f.Fuzz(func(t *testing.T, reason, id string) {
		d := failed()
		d.Reason, d.Verdict.Clauses[0].ID, d.Verdict.Clauses[0].Reason = reason, id, reason
		got, err := Message(d, Links{})
		if err != nil {
			t.Fatal(err)
		}
		var m struct{ Blocks []block }
		if err := json.Unmarshal(got, &m); err != nil {
			t.Fatal(err)
		}
		for _, b := range m.Blocks[1:] {
			for _, x := range append(append(b.Fields, b.Elements...), b.Text) {
				if x != nil && strings.ContainsAny(x.Text, "<>") {
					t.Fatalf("%q holds markup of links or mentions", x.Text)
				}
			}
		}
	})
}

func TestHold(t *testing.T) {
	got, err := Hold(failed(), Links{Diff: "https://example.com/d"})
	want := `{"schema":"assay.hold/1","run":"20261130T120000-0a1b2c","name":"chat \u003c!channel\u003e","grade":"fail","reason":"p99 of TTFT is 2 s (limit 1 s)","clauses":["first","rare"],"diff":"https://example.com/d"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	d := failed()
	d.Verdict = nil
	if got, err := Hold(d, Links{}); err != nil || !strings.Contains(string(got), `"grade":"inconclusive"`) {
		t.Errorf("a run that nobody judged: %s, %v", got, err)
	}
}

func TestLinks(t *testing.T) {
	for link, ok := range map[string]bool{
		"": true, "https://example.com/a?b=c": true, "http://host:8080/x": true,
		"javascript:alert(1)": false, "/relative": false, "https://": false, "https://u:p@example.com": false, "https://example.com/a|b": false, "https://example.com/>": false,
	} {
		if err := (Links{Diff: link}).Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", link, err)
		}
	}
}

func TestKey(t *testing.T) {
	d := failed()
	k := Key("https://a.invalid/x", d, []byte("body"))
	other := failed()
	other.Run.ID = "another"
	for name, got := range map[string]string{
		"another receiver": Key("https://a.invalid/y", d, []byte("body")),
		"another run":      Key("https://a.invalid/x", other, []byte("body")),
		"another verdict":  Key("https://a.invalid/x", d, []byte("bodz")),
	} {
		if got == k {
			t.Errorf("%s has the same key", name)
		}
	}
	if Key("https://a.invalid/x", failed(), []byte("body")) != k {
		t.Error("the same message has two keys")
	}
}

func TestLog(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Find("k1"); ok {
		t.Error("an empty log has a delivery")
	}
	for _, k := range []string{"k1", "k2"} {
		if err := l.Add(Delivered{Key: k, Host: "h", At: time.Unix(1, 0).UTC()}); err != nil {
			t.Fatal(err)
		}
	}
	again, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(l.All, again.All); d != "" {
		t.Error(d)
	}
	if _, ok := again.Find("k2"); !ok {
		t.Error("a delivery is lost")
	}
	if err := os.WriteFile(filepath.Join(dir, logFile), []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(dir); err == nil || !strings.Contains(err.Error(), "hint: remove it") {
		t.Errorf("a torn log: %v", err)
	}
}
