package assay

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/assay-llm/assay/"

// floors lists the packages from the ground up. A package may import only
// packages of a lower floor. The list is the architecture: change it in a
// commit of its own, and say why.
var floors = [][]string{
	{"record", "stat", "corpus", "config", "pace", "host"},
	{"lock", "verify", "perturb", "stat/agree", "stat/anytime", "stat/compare", "stat/diverge", "stat/screen"},
	{"attention", "overlap", "haystack", "quiz", "scenario"},
	{"workload", "contract", "check", "llm", "engine"},
	{"baseline"},
	{"load", "sim", "report", "interop", "judge", "ask", "embed", "capability"},
	{"dimension"},
	{"bench", "audit", "notify"},
	{"cmd/assay", "scripts/bench-client", "scripts/errorrates", "scripts/gaterates", "scripts/originals", "scripts/overlap", "scripts/planted"},
}

// quarantine maps a dependency to the only packages that may import it, and why.
var quarantine = map[string][]string{
	"net/http":                    {"llm", "capability", "engine", "load", "sim", "bench", "notify", "cmd/assay", "scripts/bench-client"}, // the rest of the house has no wire
	"go.yaml.in/":                 {"config"},                                                                                             // one strict reader of YAML
	"github.com/parquet-go/":      {"record"},                                                                                             // one file format at rest
	"github.com/spf13/":           {"cmd/assay"},                                                                                          // packages take values, not flags
	"github.com/abadojack/":       {"verify"},                                                                                             // languages are told in one place
	"github.com/neurosnap/":       {"verify"},                                                                                             // and sentences
	"gonum.org/":                  {"stat", "stat/agree", "stat/anytime", "stat/compare", "embed"},                                        // distributions live with statistics, matrices with the embedder
	"database/sql":                {"baseline"},                                                                                           // one registry
	"modernc.org/":                {"baseline"},
	"github.com/jackc/":           {"baseline"},
	"github.com/pressly/":         {"baseline"},
	"google.golang.org/protobuf/": {"record"}, // wire primitives of the journal
	"math/rand":                   {},         // math/rand/v2 with an explicit source
	"k8s.io/":                     {},         // the CLI must not carry it
}

// pure packages take values and return values: no files, no clock, no wire.
var pure = map[string][]string{
	"stat":         {"os", "net", "time"},
	"stat/agree":   {"os", "net", "time"},
	"stat/anytime": {"os", "net", "time"},
	"stat/compare": {"os", "net", "time"},
	"stat/diverge": {"os", "net", "time"},
	"stat/screen":  {"os", "net", "time"},
	"corpus":       {"os", "net", "time"},
	"attention":    {"os", "net", "time"},
	"lock":         {"os", "net", "time"},
	"verify":       {"os", "net", "time"},
	"perturb":      {"os", "net", "time"},
	"overlap":      {"os", "net", "time"},
	"haystack":     {"os", "net", "time"},
	"quiz":         {"os", "net", "time"},
	"scenario":     {"os", "net", "time"},
	"workload":     {"os", "net"},
	"contract":     {"os", "net"},
	"check":        {"os", "net"},
	"interop":      {"os", "net"},
}

func TestArchitecture(t *testing.T) {
	floor := map[string]int{"": len(floors)}
	for i, ps := range floors {
		for _, p := range ps {
			floor[p] = i
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Doc", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Doc string
			Imports         []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, strings.TrimSuffix(module, "/")), "/")
		at, ok := floor[name]
		if !ok {
			t.Errorf("%s has no floor: add it to floors", name)
		}
		if p.Doc == "" {
			t.Errorf("%s has no package doc", name)
		}
		for _, imp := range p.Imports {
			if dep, ok := strings.CutPrefix(imp, module); ok && floor[dep] >= at {
				t.Errorf("%s (floor %d) imports %s (floor %d)", name, at, dep, floor[dep])
			}
			for dep, may := range quarantine {
				if (imp == dep || strings.HasSuffix(dep, "/") && strings.HasPrefix(imp, dep)) && !slices.Contains(may, name) {
					t.Errorf("%s imports %s, which only %v may", name, imp, may)
				}
			}
			if slices.Contains(pure[name], imp) {
				t.Errorf("%s imports %s, but is pure", name, imp)
			}
		}
	}
}
