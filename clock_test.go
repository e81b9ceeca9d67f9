package assay

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// wallClock are the places that may read the wall clock as a number or take the monotonic
// reading off an instant, and why. Everything else measures on the monotonic clock, so
// that setting the wall clock in the middle of a run changes nothing.
var wallClock = map[string]string{
	"audit/audit.go Round":          "when the audit began, for people",
	"baseline/registry.go Unix":     "a column of the database, for people",
	"baseline/registry.go UnixNano": "a column of the database, for people",
	"bench/capacity.go Round":       "when the search began, for people",
	"bench/run.go Round":            "when the run began, for people and for a run that goes on",
	"contract/watch.go Round":       "a state that is kept between calls, whose times the caller gives",
	"interop/aiperf.go Unix":        "another tool's file",
	"interop/guidellm.go Unix":      "another tool's file",
	"interop/toaiperf.go UnixNano":  "another tool's file",
	"interop/toguidellm.go Unix":    "another tool's file",
	"llm/conn.go Unix":              "a deadline that has passed",
	"llm/sock.go UnixNano":          "the kernel stamps by the wall clock; a step between is noticed",
	"llm/tally.go UnixNano":         "the simulated engine's emit time, against the wall clock of the read",
	"pace/alarm_linux.go Unix":      "a deadline that has passed",
	"sim/answer.go Unix":            "a field of the answer",
	"sim/answer.go UnixNano":        "the ledger and the emit times, for other processes",
	"sim/server.go Unix":            "a field of the answer",
	"sim/server.go UnixNano":        "the ledger, for other processes",
	"sim/stream.go UnixNano":        "emit times, for other processes",
}

// TestDurationsAreMonotonic looks at every place that takes the time apart.
func TestDurationsAreMonotonic(t *testing.T) {
	seen := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || path == "tools" || path == "scripts"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name := takesApart(call); name != "" {
				seen[fmt.Sprintf("%s %s", filepath.ToSlash(path), name)] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range seen {
		if wallClock[place] == "" {
			t.Errorf("%s: a duration must not be computed from the wall clock; if none is, say in wallClock what it is for", place)
		}
	}
	for place := range wallClock {
		if !seen[place] {
			t.Errorf("%s does not read the wall clock any more: remove it from wallClock", place)
		}
	}
}

// takesApart returns the name of a call that reads the wall clock as a number, makes a time
// of one, or strips the monotonic reading: Unix and its kin, Round(0) and Truncate(0).
func takesApart(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch name := sel.Sel.Name; name {
	case "Unix", "UnixNano", "UnixMilli", "UnixMicro":
		return name
	case "Round", "Truncate":
		if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Value == "0" {
			return name
		}
	}
	return ""
}
