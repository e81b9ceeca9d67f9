package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// queued writes a run of which one case fails newly, with names that are hostile to
// a terminal and to a spreadsheet.
func queued(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const line = `{"schema":"assay.check/1","check":"safety","data":{"cells":[],"queue":[{"variant":"candidate","case":"=HYPERLINK(1)","value":"over_refusal","category":"\u001b[31mred","strategy":"plain","language":"en","before":"comply","after":"refuse","how":"it begins as refusals do","prompt":"H•• d• (2 words, 6 bytes)","answer":"I'• s•••• (2 words, 9 bytes)","sha256":"0123456789abcdef"}],"left":3}}`
	if err := os.WriteFile(filepath.Join(dir, "checks.jsonl"), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReview(t *testing.T) {
	dir := queued(t)
	none := func(string) string { return "" }
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"review", dir}, nil, &out, &errs, none); code != 0 || strings.ContainsAny(out.String(), "\x1b") ||
		!strings.Contains(out.String(), "=HYPERLINK(1)") || !strings.Contains(out.String(), "0123456789ab\n") || !strings.Contains(out.String(), "and 3 more") {
		t.Errorf("status %d, %s\n%s", code, &errs, &out)
	}
	out.Reset()
	if code := run(t.Context(), []string{"review", dir, "--csv"}, nil, &out, &errs, none); code != 0 {
		t.Fatalf("status %d, %s", code, &errs)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][2] != "'=HYPERLINK(1)" {
		t.Errorf("%v, %q", err, rows)
	}
	out.Reset()
	if code := run(t.Context(), []string{"review", dir, "--json"}, nil, &out, &errs, none); code != 0 {
		t.Fatalf("status %d, %s", code, &errs)
	}
	var got struct {
		Schema string
		Queue  []struct{ Case, After string }
	}
	page, err := os.ReadFile("../../docs/format/json.md")
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal([]byte(out.String()), &document); err != nil {
		t.Fatal(err)
	}
	undocumented(t, "assay.review/1", document, string(page))
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got.Schema != "assay.review/1" || len(got.Queue) != 1 || got.Queue[0].After != "refuse" {
		t.Errorf("%v, %s", err, &out)
	}
}

func TestReviewSaysWhatItLacks(t *testing.T) {
	dir := queued(t)
	secret := func(name string) string {
		return map[string]string{"SHORT": "short", "SEAL": "a secret of more than sixteen bytes"}[name]
	}
	for want, args := range map[string][]string{
		"wants one run directory":    {"review"},
		"has no queue":               {"review", t.TempDir()},
		"hint: add --seal env:NAME":  {"review", dir, "--text"},
		"hint: add --text":           {"review", dir, "--seal", "env:SEAL"},
		"a secret of 5 bytes":        {"review", dir, "--text", "--seal", "env:SHORT"},
		"reading --seal":             {"review", dir, "--text", "--seal", "plainly"},
		"reading the sealed answers": {"review", dir, "--text", "--seal", "env:SEAL"},
		"two forms of one output":    {"review", dir, "--json", "--csv"},
		"env:NONE":                   {"review", dir, "--text", "--seal", "env:NONE"},
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), args, nil, &out, &errs, secret); code != 2 || !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%q: status %d, %s, want %s", args, code, &errs, want)
		}
	}
}
