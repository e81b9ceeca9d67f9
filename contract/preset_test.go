package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/stat"
)

// TestPresetsDecode: each preset decodes, and no clause of it is undecidable.
func TestPresetsDecode(t *testing.T) {
	for _, name := range Presets() {
		c, err := LoadPreset(name)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if c.Name != name {
			t.Errorf("preset %s is named %s", name, c.Name)
		}
		if name == "safety" {
			continue // its values are those of a check: the tests of package dimension lint it
		}
		for _, f := range Lint(c, nil) {
			t.Error(f.Error())
		}
	}
}

// TestThresholds: each threshold of production-17 acts on a stream made for it and
// recovers as stated, does nothing on the safe side of its limit, and nothing
// passes or recovers on missing data.
func TestThresholds(t *testing.T) {
	files, err := filepath.Glob("testdata/thresholds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := LoadPreset("production-17")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".yaml")
		tested[id] = true
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var test Test
			if err := config.Decode(file, data, &test); err != nil {
				t.Fatal(err)
			}
			for _, o := range test.Run(c) {
				for _, p := range o.Problems {
					t.Errorf("%s: %s", o.Case, p)
				}
				if *update {
					for _, d := range o.Decisions {
						t.Logf("%s: %s (%s)", o.Case, d.line(testEpoch), d.Reason)
					}
				}
				if o.Case == "missing data" && o.Verdict.Grade == Pass {
					t.Errorf("missing data passes: %s", o.Verdict.Reason)
				}
			}
		})
	}
	for _, clause := range c.Clauses {
		if !tested[clause.ID] {
			t.Errorf("%s has no test", clause.ID)
		}
	}
}

// identical answers every look with fresh lognormal latencies of two variants that are
// the same: whatever acts on them acts without cause.
type identical struct {
	rng   *rand.Rand
	n     int // in a window of five minutes
	sigma float64
}

func (d identical) Labels(string, time.Time) []string { return nil }

func (d identical) Steps(_, at time.Time) []Step {
	return []Step{{Since: at.Add(-5 * time.Minute)}}
}

func (d identical) See(a Ask) Series {
	n := int(float64(d.n) * a.To.Sub(a.From).Minutes() / 5)
	s := Series{N: int64(n), Values: make([]float64, n)}
	for i := range s.Values {
		s.Values[i] = 200e6 * math.Exp(d.sigma*d.rng.NormFloat64())
	}
	if a.Sessions {
		s.Best = new(stat.Histogram)
		for _, x := range s.Values {
			if err := s.Best.Add(x); err != nil {
				panic(err)
			}
		}
		s.Values, s.Worst = nil, s.Best
	}
	return s
}

// TestFalseAlarmsOfDrift measures how often a look at identical traffic finds a
// drift, and holds the table of the documentation to it.
func TestFalseAlarmsOfDrift(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("ASSAY_SLOW is not set: ten thousand looks take some seconds")
	}
	page, err := os.ReadFile("../docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	const looks = 1000
	for _, tc := range []struct {
		n     int
		sigma float64
	}{{300, 0.5}, {300, 1}, {1500, 0.5}, {1500, 1}} {
		row := fmt.Sprintf("| %s | %v |", grouped(fmt.Sprint(tc.n)), tc.sigma)
		for _, preset := range []string{"seed-compat", "production-17"} {
			c, err := LoadPreset(preset)
			if err != nil {
				t.Fatal(err)
			}
			c = alone(c, "T01-p99-drift")
			c.Clauses[0].Live.For = 0
			seen := identical{source(uint64(tc.n)), tc.n, tc.sigma}
			fired := 0
			for i := range looks {
				_, ds := c.Next(State{}, seen, testEpoch.Add(time.Duration(i)*time.Hour))
				fired += len(ds)
			}
			row += fmt.Sprintf(" %s %% |", trim(100*float64(fired)/looks, 1))
			if preset == "production-17" && fired > looks/20 {
				t.Errorf("%d of %d looks at identical traffic act", fired, looks)
			}
		}
		if t.Log(row); !strings.Contains(string(page), row+"\n") {
			t.Errorf("the page lacks %s", row)
		}
	}
}
