package bench

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/stat"
)

// twice runs a workload of 300 requests of 800 tokens twice, with one seed, against one
// engine with a prefix cache, in virtual time.
func twice(t *testing.T, engine, spec, variant string) (runs [2]*Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := bubble(t, engine)
		s := parseSuite(t, fmt.Sprintf(`
seed: 5
variants:
  candidate: {url: "http://sim/v1", metrics: off%s}
workloads:
  w:
    arrivals: {poisson: 4/s}
    requests: 300
    output: 4
    warmup: {requests: 2}
    %s
`, variant, spec))
		for i := range runs {
			r, err := Run(t.Context(), s, o)
			if err != nil {
				t.Fatal(err)
			}
			runs[i] = r
		}
	})
	return runs
}

// caching takes 100 µs for a token of a prompt that it does not know.
const caching = "{step: {base: 2ms, prefill: 100us}, kv_blocks: 60000}"

func median(t *testing.T, r *Result) (stat.Estimate, float64) {
	t.Helper()
	m, _ := record.Find("ttft")
	var ttft []float64
	cached, prompt := int64(0), int64(0)
	for i := range r.Records {
		rec := &r.Records[i]
		if rec.Phase != record.Measured {
			continue
		}
		ttft = m.Values(rec, ttft)
		c, _ := rec.Cached.N()
		p, _ := rec.Prompt.N()
		cached, prompt = cached+c, prompt+p
	}
	s, err := stat.NewSample(ttft, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s.Quantile(.5, .99), float64(cached) / float64(prompt)
}

// TestSaltsKeepASecondRunFromBeingFlattered runs one seed twice against one cache.
func TestSaltsKeepASecondRunFromBeingFlattered(t *testing.T) {
	runs := twice(t, caching, "prompts: {synthetic: 800}", "")
	first, hits1 := median(t, runs[0])
	second, hits2 := median(t, runs[1])
	if second.Hi < first.Lo || second.Lo > first.Hi || hits1 > .02 || hits2 > .02 {
		t.Errorf("median TTFT %v [%v, %v] with %.3f hits, then %v [%v, %v] with %.3f", first.Value, first.Lo, first.Hi, hits1, second.Value, second.Lo, second.Hi, hits2)
	}
	for _, r := range runs {
		if len(r.Report.Alerts) > 0 {
			t.Errorf("alerts %q", r.Report.Alerts)
		}
	}
	t.Logf("median TTFT %v, then %v; hits %.3f, %.3f", time.Duration(first.Value), time.Duration(second.Value), hits1, hits2)
}

// TestASecondRunWithoutSaltsIsTold holds that the first lines say it, in every form.
func TestASecondRunWithoutSaltsIsTold(t *testing.T) {
	for _, tt := range []struct {
		name, engine, variant string
		want                  string // of the second run
	}{
		{"usage", caching, "", "WARM CACHE: 9"},
		{"nothing told", strings.Replace(caching, "{step", "{usage: never, step", 1), ", tokens: events", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs := twice(t, tt.engine, "prompts: {synthetic: 800}\n    salt: false", tt.variant)
			first, _ := median(t, runs[0])
			second, _ := median(t, runs[1])
			if second.Hi > .5*first.Lo {
				t.Errorf("the cache changes nothing (%v, %v): the test proves nothing", first.Value, second.Value)
			}
			t.Logf("median TTFT %v, then %v: %q", time.Duration(first.Value), time.Duration(second.Value), runs[1].Report.Alerts)
			for i, r := range runs {
				alerts := r.Report.Alerts
				if len(alerts) == 0 || !strings.Contains(alerts[0], "SALTS ARE OFF for w") {
					t.Errorf("run %d: alerts %q", i+1, alerts)
				}
				if warm := len(alerts) > 1; warm != (i == 1 && tt.want != "") || warm && !strings.Contains(alerts[1], tt.want) {
					t.Errorf("run %d: alerts %q, want %q in the second", i+1, alerts, tt.want)
				}
				checkFirstLines(t, r)
			}
		})
	}
}

func checkFirstLines(t *testing.T, r *Result) {
	t.Helper()
	var text, page, markdown bytes.Buffer
	if report.Text(&text, r.Report, report.TextOptions{Width: 400}) != nil || report.HTML(&page, r.Report) != nil || report.Markdown(&markdown, r.Report) != nil {
		t.Fatal("a report cannot be written")
	}
	if lines := strings.Split(text.String(), "\n"); !strings.Contains(lines[1], "SALTS ARE OFF") {
		t.Errorf("the text's second line is %q", lines[1])
	}
	if lines := strings.Split(markdown.String(), "\n"); !strings.Contains(lines[2], "SALTS ARE OFF") {
		t.Errorf("the Markdown's third line is %q", lines[2])
	}
	salts, verdict := strings.Index(page.String(), "SALTS ARE OFF"), strings.Index(page.String(), `<section class="verdict`)
	if salts < 0 || salts > verdict {
		t.Errorf("the page says it at %d, the verdict is at %d", salts, verdict)
	}
}

// TestSharedPrefixesAreExplained holds that what the plan repeats is no cause for alarm.
func TestSharedPrefixesAreExplained(t *testing.T) {
	runs := twice(t, caching, "prompts: {synthetic: 200}\n    prefix: {tokens: 600, groups: 3}", "")
	_, hits := median(t, runs[1])
	if hits < .5 || len(runs[1].Report.Alerts) > 0 {
		t.Errorf("%.2f hits, alerts %q", hits, runs[1].Report.Alerts)
	}
	if r := runs[1].Manifest.Workloads[0].Repeats; r == nil || *r < hits-.1 {
		t.Errorf("the plan repeats %v, the cache knew %v", r, hits)
	}
}
