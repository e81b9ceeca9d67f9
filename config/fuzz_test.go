package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzDecode checks that no document panics, that every fault stands inside of
// the document, and that what is accepted can be written and read back.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(goodSample))
	paths, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		files := txtar.Parse(data).Files
		for _, file := range files {
			switch filepath.Ext(file.Name) {
			case ".yaml":
				f.Add(file.Data)
			case ".quoted":
				s, err := strconv.Unquote(strings.TrimSpace(string(file.Data)))
				if err != nil {
					f.Fatal(err)
				}
				f.Add([]byte(s))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := Limits{Bytes: 64 << 10, Depth: 16, Nodes: 2000}
		var v sample
		if err := Decode("x.yaml", data, &v, Within(limits)); err != nil {
			checkPlaces(t, data, err)
		} else {
			again[sample](t, v)
		}
		var open map[string]any
		if err := Decode("x.yaml", data, &open, Within(limits)); err != nil {
			checkPlaces(t, data, err)
		} else {
			again[map[string]any](t, open)
		}
	})
}

// again fails unless v is written as a document that is read as v.
func again[T any](t *testing.T, v T) {
	data, err := Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := Decode("x.yaml", data, &back); err != nil {
		t.Fatalf("reading back\n%s\n%v", data, err)
	}
	second, err := Encode(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(second)); diff != "" {
		t.Fatalf("written differently (-first +second):\n%s", diff)
	}
}

// FuzzSecret checks that a reference is printed as it was read, and that what is
// refused is not shown.
func FuzzSecret(f *testing.F) {
	for _, s := range []string{"env:API_KEY", "file:api.key", "sk-live-0123456789", "env:", "file:\n", "$KEY", "${KEY}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseSecret(s)
		if err == nil {
			if v.String() != s || v.IsZero() {
				t.Fatalf("%q is printed as %q", s, v)
			}
			return
		}
		if len(s) > 12 && !shellVar.MatchString(s) && strings.Contains(err.Error(), s) {
			t.Fatalf("refusing %q shows it: %v", s, err)
		}
	})
}
