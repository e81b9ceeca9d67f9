package contract

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// TestDocumentedContracts holds docs/contracts.md to the catalogue, the grammar
// and the numbers that it describes.
func TestDocumentedContracts(t *testing.T) {
	data, err := os.ReadFile("../docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	t.Run("metrics", func(t *testing.T) { documentedMetrics(t, page) })
	t.Run("needs", func(t *testing.T) { documentedNeeds(t, page) })
	t.Run("example", func(t *testing.T) { documentedExample(t, page) })
	t.Run("actions", func(t *testing.T) {
		for _, a := range actions {
			if !strings.Contains(page, "`"+a.name) {
				t.Errorf("%s is not documented", a.name)
			}
		}
	})
	t.Run("test file", func(t *testing.T) { documentedTest(t, page) })
	t.Run("numbers", func(t *testing.T) { documentedNumbers(t, page) })
}

// documentedMetrics wants each metric with its unit in the table of its kind, and
// no other metric there.
func documentedMetrics(t *testing.T, page string) {
	units := map[record.Unit]string{record.Nanoseconds: "time", record.Proportion: "share", record.TokenUnit: "tokens", record.TokensPerSecond: "tokens/s", record.Requests: "requests", record.Points: "points"}
	want := map[string]bool{"**Values**: | `value.NAME` | points |": true}
	for _, d := range vocabulary {
		want[fmt.Sprintf("**Declared**: | `%s` | %s |", d.Name, units[d.Unit])] = true
	}
	for i := range stages {
		m := stages[i].metric.Metric
		want[fmt.Sprintf("**Stages**: | `%s` | %s |", m.Name, units[m.Unit])] = true
	}
	for _, m := range record.Metrics() {
		kind := "**Values**"
		if m.Indicator {
			kind = "**Yes or no**"
		} else if m.Amount != nil {
			kind = "**Amounts**"
		}
		want[fmt.Sprintf("%s: | `%s` | %s |", kind, m.Name, units[m.Unit])] = true
	}
	_, section, _ := strings.Cut(page, "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile("^\\| `[^`]+` \\| [^|]+ \\|")
	kind := ""
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "**") {
			kind = line[:strings.LastIndex(line, "**")+2]
		}
		if head := row.FindString(line); head != "" {
			if key := kind + ": " + head; !want[key] {
				t.Errorf("no such metric, or of another unit or kind, or twice: %s", key)
			} else {
				delete(want, key)
			}
		}
	}
	for key := range want {
		t.Errorf("not documented: %s", key)
	}
}

// documentedNeeds parses every whole need that stands on the page.
func documentedNeeds(t *testing.T, page string) {
	whole := regexp.MustCompile("`([a-z0-9.]+\\([a-z0-9_.]+\\) [<>]=? [^`]+)`").FindAllStringSubmatch(page, -1)
	if len(whole) < 10 {
		t.Errorf("only %d needs found", len(whole))
	}
	for _, m := range whole {
		if _, err := ParseNeed(m[1]); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
}

// documentedExample decodes the contract on the page and lints it.
func documentedExample(t *testing.T, page string) {
	_, text, _ := strings.Cut(page, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var c Contract
	if err := config.Decode("contracts.md", []byte(text), &c); err != nil {
		t.Fatal(err)
	}
	for _, fault := range Lint(&c, nil) {
		t.Error(fault.Error())
	}
}

// documentedTest runs the test file on the page against the rule on the page.
func documentedTest(t *testing.T, page string) {
	_, live, _ := strings.Cut(page, "## Live rules")
	_, rule, _ := strings.Cut(live, "```yaml\n")
	rule, _, _ = strings.Cut(rule, "```")
	_, text, _ := strings.Cut(live, "## Tests of contracts")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var test Test
	if err := config.Decode("contracts.md", []byte(text), &test); err != nil {
		t.Fatal(err)
	}
	for _, o := range test.Run(decode(t, "version: 1\n"+rule)) {
		for _, p := range o.Problems {
			t.Errorf("%s: %s", o.Case, p)
		}
	}
}

// documentedNumbers computes the least numbers of requests anew.
func documentedNumbers(t *testing.T, page string) {
	for _, p := range []string{"p50", "p90", "p95", "p99", "p99.9"} {
		q := need(t, p+"(ttft) <= 1s").Quantity.P
		one, two := quantileNeeds(q, DefaultConfidence, true), stat.NeedAbove(q, DefaultConfidence)
		stands(t, page, fmt.Sprintf("| %s | %s | %s |\n", p, grouped(fmt.Sprint(one)), grouped(fmt.Sprint(two))))
	}
	stands(t, strings.ReplaceAll(page, "\n", " "), fmt.Sprintf("1, 2, 5 or 10 requests exceed it takes %d, %d, %s or %s.",
		stat.NeedViolations(.99, DefaultConfidence, 1), stat.NeedViolations(.99, DefaultConfidence, 2),
		grouped(fmt.Sprint(stat.NeedViolations(.99, DefaultConfidence, 5))), grouped(fmt.Sprint(stat.NeedViolations(.99, DefaultConfidence, 10)))))
	for _, limit := range []string{"5%", "2%", "1%", "0.1%", "baseline + 0.5 points"} {
		text := "share(failed) <= " + limit
		leaf := leafLint{c: &Clause{Need: need(t, text)}, t: terms{confidence: DefaultConfidence}}
		stands(t, page, fmt.Sprintf("| `%s` | %s |\n", text, grouped(fmt.Sprint(leaf.shareNeeds(leaf.t.confidence)))))
	}
}

func stands(t *testing.T, page, text string) {
	t.Helper()
	if !strings.Contains(page, text) {
		t.Errorf("the page lacks %q", text)
	}
}
