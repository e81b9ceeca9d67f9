package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeys(t *testing.T) {
	tests := []struct {
		doc  string
		want []string
	}{
		{"version: 1\nclauses: []\n", []string{"version", "clauses"}},
		{"{variants: {a: 1}, name: x}", []string{"variants", "name"}},
		{"", nil},
		{"- a", nil},
		{"a: [", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Keys([]byte(tt.doc))); diff != "" {
			t.Errorf("Keys(%q) (-want +got):\n%s", tt.doc, diff)
		}
	}
}

func TestPurpose(t *testing.T) {
	for text, want := range map[string]string{
		"# a first\n# look\n#\n# more\nversion: 1\n": "a first look",
		"version: 1\n# later\n":                      "",
		"":                                           "",
	} {
		if got := Purpose([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
