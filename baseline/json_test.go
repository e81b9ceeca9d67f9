package baseline

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestJSONIsDocumented: docs/format/json.md names every field of what is kept and
// printed here.
func TestJSONIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/format/json.md")
	if err != nil {
		t.Fatal(err)
	}
	r := create(t, Address{path: filepath.Join(t.TempDir(), "r.db")})
	src := service{requests: 400, typical: 100 * time.Millisecond, seed: 1}.run("a", chat)
	s := take(t, src)
	mustAdd(t, r, s)
	mustPromote(t, r, by("first"), s)
	e, err := r.Find(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Backtest(t.Context(), Policy{})
	if err != nil {
		t.Fatal(err)
	}
	d := Compare(t.Context(), r, take(t, service{requests: 400, typical: 100 * time.Millisecond, seed: 2}.run("b", chat)), Policy{})
	if len(d.References) != 1 || len(d.Screens) != 2 {
		t.Fatalf("%d references and %d screens", len(d.References), len(d.Screens))
	}
	for _, x := range []any{e, b, d} {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		var top any
		if err := json.Unmarshal(text, &top); err != nil {
			t.Fatal(err)
		}
		named(t, top, string(page))
	}
}

func named(t *testing.T, x any, page string) {
	t.Helper()
	switch x := x.(type) {
	case []any:
		for _, e := range x {
			named(t, e, page)
		}
	case map[string]any:
		for key, value := range x {
			if !strings.Contains(page, "`"+key+"`") {
				t.Errorf("%s is not documented", key)
			}
			named(t, value, page)
		}
	}
}

// FuzzLocate: any text is an address or an error, and no password is shown.
func FuzzLocate(f *testing.F) {
	for _, s := range []string{"", "runs/b.db", "postgres://u:pass@h/d", "env:X", "file:x", "postgres://h/d?password=pass", "postgres://%zz", "a://b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(text, "file:") {
			t.Skip("reads a file")
		}
		a, err := Locate(text, func(string) string { return text })
		if err != nil {
			return
		}
		shown := a.String()
		for _, s := range a.secrets() {
			if len(s) > 8 && !strings.Contains("xxxxx", s) && strings.Count(text, s) == 1 && strings.Contains(shown, s) {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
		if (a.url == nil) == (a.path == "") {
			t.Errorf("%q is at %q and %v", text, a.path, a.url)
		}
	})
}

// FuzzFigures: whatever stands in a registry's column, reading it is an error or
// gives figures that can be used.
func FuzzFigures(f *testing.F) {
	good, err := json.Marshal(made(chat, 1, 1000, 500).Figures)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add(`[{"levels":[]}]`)
	f.Add(`[{"quantity":{"stat":"rate","metric":"x"},"levels":[{"value":null}]}]`)
	f.Fuzz(func(t *testing.T, body string) {
		var e Entry
		if e.fill(body) != nil {
			return
		}
		e.reference()
		for _, g := range DefaultGates() {
			against(g, e.Snapshot, e.Snapshot)
		}
		Screens([]Snapshot{e.Snapshot}, e.Snapshot, Policy{})
	})
}
