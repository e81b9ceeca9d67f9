package llm

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-llm/assay/record"
)

func TestTargetFaultsComeTogether(t *testing.T) {
	err := Target{
		URL: "ftp://x", API: "chats", Protocol: "h3", Proxy: "x", Key: "k\n", CA: []byte("x"),
		Headers: map[string]string{"content-length": "1", "A B": "x", "X": "a\r\nB: c", "Connection": "close", "Good": "yes"},
	}.Validate()
	if err == nil {
		t.Fatal("no fault")
	}
	for _, want := range []string{
		`scheme "ftp"`, `api "chats"`, `protocol "h3"`, "proxy: want", "key: it holds", "ca: no PEM", "header content-length: the client sets it", `header "A B": not a field name`, "header X: its value", "header Connection:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n"); n != 9 {
		t.Errorf("%d faults, want 10:\n%v", n+1, err)
	}
	for _, u := range []string{"", "http://", "http://u:p@h", "http://h/#x", ":", "h:80"} {
		if (Target{URL: u}).Validate() == nil {
			t.Errorf("url %q passes", u)
		}
	}
	if (Target{URL: "http://h", Key: "k", Headers: map[string]string{"authorization": "Basic x"}}).Validate() == nil {
		t.Error("two credentials pass")
	}
	if err := (Target{URL: "http://h"}).Validate(); err != nil {
		t.Errorf("a target of a URL alone: %v", err)
	}
	if _, err := NewClient(Target{}); err == nil {
		t.Error("a client without a URL")
	}
}

func TestEndpoints(t *testing.T) {
	for _, tt := range []struct{ in, api, post, models string }{
		{"http://h:8000", APIChat, "http://h:8000/v1/chat/completions", "http://h:8000/v1/models"},
		{"http://h/", APICompletions, "http://h/v1/completions", "http://h/v1/models"},
		{"http://h/v1/", APIChat, "http://h/v1/chat/completions", "http://h/v1/models"},
		{"http://h/openai/v1beta", APIChat, "http://h/openai/v1beta/chat/completions", "http://h/openai/v1beta/models"},
		{"http://h/api/v4/chat/completions?x=1", APIChat, "http://h/api/v4/chat/completions?x=1", "http://h/api/v4/models?x=1"},
		{"http://h/v1/completions", APICompletions, "http://h/v1/completions", "http://h/v1/models"},
		{"http://h/proxy", APIChat, "http://h/proxy/v1/chat/completions", "http://h/proxy/v1/models"},
	} {
		u, err := url.Parse(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if post, models := endpoints(u, tt.api); post.String() != tt.post || models.String() != tt.models {
			t.Errorf("%s: %s, %s; want %s, %s", tt.in, post, models, tt.post, tt.models)
		}
	}
	for in, want := range map[string]string{"http://h": "h:80", "https://h": "h:443", "http://[::1]:8": "[::1]:8", "https://[::1]": "[::1]:443"} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := hostPort(u); got != want {
			t.Errorf("hostPort(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain":               "plain",
		"a\nb\tc\x1b[31m\x7f": `a\nb\x09c\x1b[31m\x7f`,
		"\xff中\ufffd":         `\xff中` + "\ufffd",
		"\u202eabc\u2028":     `\u202eabc\u2028`,
		"\u009b31m":           `\x9b31m`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
	for _, unit := range []string{"x", "中", "\x00", "\u202e", "\xff"} {
		got := printable(strings.Repeat(unit, 1000))
		if len(got) > maxDetail || len(got) < maxDetail-32 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%q: %d bytes: …%q", unit, len(got), got[len(got)-10:])
		}
	}
}

func TestRequestIDIsAHeader(t *testing.T) {
	for _, r := range []record.Record{
		{Variant: "a\r\nEvil: x", Workload: strings.Repeat("中/", 500), Shot: -1},
		{},
	} {
		id := RequestID(&r)
		if !fieldValue(id) || strings.Count(id, "/") != 3 || len(id) > 400 {
			t.Errorf("RequestID = %q", id)
		}
	}
}
