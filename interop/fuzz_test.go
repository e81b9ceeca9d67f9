package interop

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-llm/assay/record"
)

// sound checks what any file may do to a run: nothing that is not a number, no
// latency below 0, no row lost without a count.
func sound(t *testing.T, r *Run) {
	t.Helper()
	if len(r.Records)+r.Skipped != r.Rows {
		t.Fatalf("%d records and %d skipped of %d rows", len(r.Records), r.Skipped, r.Rows)
	}
	if r.Manifest.State != State || r.Manifest.Client.Fit || len(r.Manifest.Notes) == 0 {
		t.Fatalf("manifest %+v", r.Manifest)
	}
	for i := range r.Records {
		rec := &r.Records[i]
		if rec.Outcome == "" || rec.Variant == "" || rec.Workload == "" {
			t.Fatalf("record %+v", rec)
		}
		for _, m := range record.Metrics() {
			if m.Values == nil || m.Name == "lag" {
				continue // a request may be sent before it is due
			}
			for _, v := range m.Values(rec, nil) {
				if math.IsNaN(v) || v < 0 && m.Unit == record.Nanoseconds && rec.Due <= rec.Admit {
					t.Fatalf("%s = %v of %+v", m.Name, v, rec)
				}
			}
		}
		if !rec.Success() && rec.First() == nil {
			for _, name := range []string{"ttft", "e2e", "tpot"} {
				if m, _ := record.Find(name); len(m.Values(rec, nil)) > 0 {
					t.Fatalf("%s of a request without an answer", name)
				}
			}
		}
	}
}

// fuzz imports any bytes as a format and exports what came of it.
func fuzz(f *testing.F, format Format, files ...string) {
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte(`{"ttfts":[1],"itls":[[NaN]],"x":"NaN\"Infinity"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Import([]Source{{"f", bytes.NewReader(data)}}, Options{Format: format})
		if err != nil {
			return
		}
		sound(t, r)
		if len(r.Records) == 0 {
			return
		}
		for _, as := range Exports() {
			var b bytes.Buffer
			done, err := Export(&b, as, &r.Manifest, r.Records, Selection{Workload: r.Records[0].Workload})
			if err != nil {
				t.Fatalf("%s: %v", as, err)
			}
			if b.Len() == 0 && done.Rows > 0 {
				t.Fatalf("%s: %+v, but nothing was written", as, done)
			}
			if done.Rows == 0 {
				continue
			}
			if back, err := Import([]Source{{"f", bytes.NewReader(b.Bytes())}}, Options{Format: as}); err != nil {
				t.Fatalf("%s: its own export: %v\n%s", as, err, b.Bytes())
			} else {
				sound(t, back)
			}
		}
	})
}

func FuzzVLLM(f *testing.F)     { fuzz(f, VLLM, "vllm.json") }
func FuzzSGLang(f *testing.F)   { fuzz(f, SGLang, "sglang.jsonl") }
func FuzzAIPerf(f *testing.F)   { fuzz(f, AIPerf, "aiperf.jsonl", "aiperf.json") }
func FuzzGuideLLM(f *testing.F) { fuzz(f, GuideLLM, "guidellm-0.7.json", "guidellm-0.3.json") }
func FuzzInferencePerf(f *testing.F) {
	fuzz(f, InferencePerf, "inference-perf.json")
}

// FuzzDetect finds a format out from any bytes.
func FuzzDetect(f *testing.F) { fuzz(f, "", "vllm.json", "aiperf.jsonl") }
