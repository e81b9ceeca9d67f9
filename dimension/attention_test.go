package dimension

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
)

// attended is a dump in which a head looks at the last few tokens alike: near of
// them, and from a position on at far.
func attended(at, near, far int) []byte {
	var b strings.Builder
	for q := 64; q < 160; q++ {
		n := near
		if q >= at {
			n = far
		}
		var top []string
		for k := range n {
			top = append(top, fmt.Sprintf("[%d,%g]", q-k, 1/float64(n)))
		}
		fmt.Fprintf(&b, `{"layer":0,"head":0,"query":%d,"top":[%s]}`+"\n", q, strings.Join(top, ","))
	}
	return []byte(b.String())
}

func TestAttentionIsReadFromFiles(t *testing.T) {
	run := func(conf *AttentionConfig, files map[check.FileRef][]byte) *check.Outcome {
		out, err := check.Run(t.Context(), check.Config{
			Checks: []check.Declared{{Check: Attention, Config: conf}}, Files: files,
			Variants: []check.Variant{{Name: "candidate", Asker: model(func(*check.Question) *check.Answer { t.Error("it asks"); return nil })}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	o := run(&AttentionConfig{File: "a.ndjson", Against: "b.ndjson"}, map[check.FileRef][]byte{"a.ndjson": attended(110, 40, 6), "b.ndjson": attended(1000, 40, 6)})
	if o.Why != "" || len(o.Findings) != 1 || o.Findings[0].Code != "attention_break" || o.Findings[0].Figures["position"] != 110 || !strings.HasPrefix(o.Findings[0].Text, "a.ndjson: from position 110") {
		t.Errorf("%s, %+v", o.Why, o.Findings)
	}
	if len(o.Figures) != 1 || len(o.Figures[0].Curves) != 2 || len(o.Figures[0].Curves[0].Points) != 96 {
		t.Errorf("%+v", o.Figures)
	}
	if o := run(&AttentionConfig{File: "a.ndjson"}, map[check.FileRef][]byte{"a.ndjson": []byte("{}\n")}); !strings.Contains(o.Why, "line 1") {
		t.Errorf("a file without attention: %q", o.Why)
	}
}

func TestAttentionConfigIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"needle: {from: 3, to: 9}\n":                   "file",
		"{file: a.ndjson, needle: {from: 9, to: 3}}":   "empty",
		"{file: a.ndjson, needle: {from: 3, to: 9}}":   "",
		"{file: a.ndjson, sinks: -1, against: b.json}": "",
	} {
		err := config.Decode("suite.yaml", []byte(text), Attention.Config())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
