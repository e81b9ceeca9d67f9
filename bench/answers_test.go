package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
)

func TestAnswersSurviveACrash(t *testing.T) {
	dir := t.TempDir()
	a, err := openAnswers(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := check.Answer{
		Outcome: record.OK, Text: "a\nb<&>", Prompt: record.Tokens(0), Model: "m",
		Tokens: []check.Token{{Text: "a", Logprob: -0.1, Top: []check.Alternative{{Text: "b", Logprob: -2}}}},
	}
	for i := range 3 {
		if err := a.Save(fmt.Sprint("k", i), "e", &want); err != nil {
			t.Fatal(err)
		}
	}
	a.keep("d", "text")
	a.keep("d", "text")
	path := filepath.Join(dir, answersName)
	whole, err := os.ReadFile(path) // as a crash leaves it: nothing was closed
	if err != nil {
		t.Fatal(err)
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut <= len(whole); cut += 5 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := openAnswers(dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		known := 0
		for i := range 3 {
			got, ok, err := b.Recall(fmt.Sprint("k", i))
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if ok {
				known++
				if diff := cmp.Diff(&want, got); diff != "" {
					t.Fatalf("cut at %d (-want +got):\n%s", cut, diff)
				}
			}
		}
		line := len(whole) - len(`{"schema":"assay.text/1","sha256":"d","text":"text"}`) - 1
		if most := min(3, 3*cut/line); known != most {
			t.Fatalf("cut at %d of %d: %d answers are known; want %d", cut, len(whole), known, most)
		}
		if err := b.Save("new", "e", &want); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := b.Recall("new"); err != nil || !ok || got.Text != want.Text {
			t.Fatalf("cut at %d: what is saved behind it is %v, %v, %v", cut, got, ok, err)
		}
		if err := b.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADamagedLineIsAskedAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, answersName), []byte("{\"key\":\"a\",\"answer\":{\"Text\":\"x\"}}\nnot JSON\n{\"key\":\"b\",\"answer\":{\"Text\":\"y\"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := openAnswers(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}()
	for key, text := range map[string]string{"a": "x", "b": "y"} {
		if got, ok, err := a.Recall(key); err != nil || !ok || got.Text != text {
			t.Errorf("Recall(%s) = %v, %v, %v; want %s", key, got, ok, err, text)
		}
	}
	if _, ok, err := a.Recall("c"); ok || err != nil {
		t.Errorf("Recall(c) = %v, %v; want that it is not known", ok, err)
	}
}
