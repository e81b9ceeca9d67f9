package quiz

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/assay-llm/assay/verify"
)

// Every question is answered rightly by what it expects, and wrongly by what another
// of its task and language expects.
func TestQuestions(t *testing.T) {
	for seed := range uint64(5) {
		all := Questions(seed, 60, nil)
		seen := make(map[string]bool)
		for i, q := range all {
			if err := q.Expected.Validate(); err != nil || seen[q.ID] || q.Prompt == "" {
				t.Fatalf("seed %d: %+v: %v", seed, q, err)
			}
			seen[q.ID] = true
			if got := q.Expected.Check(q.Expected.Value); got.Outcome != verify.Right {
				t.Errorf("seed %d: %q is %v as an answer to %q: %s", seed, q.Expected.Value, got.Outcome, q.Prompt, got.How)
			}
			other := all[(i+10)%60]
			if other.Task != q.Task || other.Language != q.Language {
				t.Fatalf("%s and %s", q.ID, other.ID)
			}
			if other.Expected.Value != q.Expected.Value && q.Expected.Check(other.Expected.Value).Outcome == verify.Right {
				t.Errorf("seed %d: %q is right for %q", seed, other.Expected.Value, q.Prompt)
			}
		}
		if !reflect.DeepEqual(all, Questions(seed, 60, nil)) || seed > 0 && reflect.DeepEqual(all, Questions(0, 60, nil)) {
			t.Errorf("seed %d: the questions are not those of the seed", seed)
		}
	}
	for _, q := range Questions(1, 12, []string{"zh"}) {
		if q.Language != "zh" {
			t.Errorf("%s was not asked for", q.ID)
		}
	}
}

// What a passage says is supported by it and answers its question; what it does not
// say is nowhere in it. No sentence of a passage is taken for an unsupported claim.
func TestInquiries(t *testing.T) {
	open := 0
	for seed := range uint64(5) {
		all := Inquiries(seed, 48, nil)
		for _, q := range all {
			if q.Expect == "" {
				open++
				continue
			}
			if !strings.Contains(q.Source, q.Expect) || !strings.Contains(q.Prompt, q.Source) {
				t.Errorf("seed %d: %+v", seed, q)
			}
			claims := verify.Claims(q.Expect+".", q.Source)
			if len(claims) == 0 || slices.ContainsFunc(claims, func(c verify.Claim) bool { return !c.Supported }) {
				t.Errorf("%q of %q: claims %+v", q.Expect, q.Source, claims)
			}
			for _, s := range verify.SplitSentences(q.Source) {
				for _, c := range verify.Claims(s, q.Source) {
					if !c.Supported {
						t.Errorf("%q is taken for unsupported in %q", c.Value, s)
					}
				}
			}
		}
		if !reflect.DeepEqual(all, Inquiries(seed, 48, nil)) {
			t.Errorf("seed %d gives two sets", seed)
		}
	}
	if open != 5*12 {
		t.Errorf("%d questions without an answer, want every fourth", open)
	}
}
