package config

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSuggestionsAreWhatWasMeant(t *testing.T) {
	known := []string{"version", "name", "workloads", "ignore_eos", "for", "on", strings.Repeat("long", 20)}
	for got, want := range map[string]string{
		"vesion": "version", "Version": "version", "versoin": "version", "work-loads": "workloads", "workload": "workloads",
		"ignoreEos": "ignore_eos", "ignore-eos": "ignore_eos", "nmae": "name", "fro": "for",
		"x": "", "": "", "candidate": "", "vrsn": "", "time": "", strings.Repeat("long", 20): "",
	} {
		if s, ok := suggest(got, known); s != want || ok != (want != "") {
			t.Errorf("suggest(%q) = %q, %v, want %q", got, s, ok, want)
		}
	}
	for _, c := range []struct {
		got   string
		known []string
		want  string
	}{
		{"x", nil, "remove it"},
		{"x", []string{"name"}, "use name"},
		{"nam", []string{"name"}, "did you mean name?"},
		{"xyz", strings.Split("aa bb cc dd ee ff gg hh ii jj kk ll mm nn oo pp qq", " "), "use one of aa, bb, cc, dd, ee, ff, gg, hh, ii, jj, kk, ll, mm, nn, oo, pp, …"},
	} {
		if got := oneOfHint(c.got, c.known); got != c.want {
			t.Errorf("oneOfHint(%q, %q) = %q, want %q", c.got, c.known, got, c.want)
		}
	}
}

func TestDistanceIsADistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"ca", "abc", 3}, {"名前", "名", 1}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	word := rapid.StringMatching(`[abc]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) {
			t.Fatalf("distance(%q, %q) = %d depends on the order", a, b, d)
		}
		if (d == 0) != (a == b) {
			t.Fatalf("distance(%q, %q) = %d", a, b, d)
		}
		if m, n := utf8.RuneCountInString(a), utf8.RuneCountInString(b); d > max(m, n) || d < max(m-n, n-m) {
			t.Fatalf("distance(%q, %q) = %d is out of bounds", a, b, d)
		}
	})
}
