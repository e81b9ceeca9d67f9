package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/record"
)

const secret = "a secret of more than sixteen bytes"

func TestSeal(t *testing.T) {
	for _, short := range []string{"", "123456789012345"} {
		if s, err := NewSeal(short); err == nil || s != nil || !strings.Contains(err.Error(), "hint: ") {
			t.Errorf("NewSeal(%q) = %v, %v", short, s, err)
		}
	}
	one, err := NewSeal(secret)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := NewSeal(secret + "!")
	a := &Answer{Outcome: record.OK, Status: 200, Text: "something harmful", Refusal: "no", Finish: "stop", Prompt: record.Tokens(3), Model: "m"}
	shut, err := one.shut("key", a)
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := json.Marshal(shut)
	if bytes.Contains(kept, []byte("harmful")) || shut.Outcome != record.OK {
		t.Errorf("kept: %s", kept)
	}
	again, _ := one.shut("key", a)
	if bytes.Equal(again.Sealed, shut.Sealed) {
		t.Error("two seals of one answer are equal")
	}
	if got, err := one.Open("key", shut); err != nil || diff.Diff(a, got) != "" {
		t.Errorf("opened: %v, %v", got, err)
	}
	if got, err := one.Open("key", a); err != nil || got != a {
		t.Errorf("an answer in clear: %v, %v", got, err)
	}
	changed := &Answer{Sealed: bytes.Clone(shut.Sealed)}
	changed.Sealed[len(changed.Sealed)-1] ^= 1
	for name, f := range map[string]func() (*Answer, error){
		"another secret":   func() (*Answer, error) { return other.Open("key", shut) },
		"another question": func() (*Answer, error) { return one.Open("other", shut) },
		"changed":          func() (*Answer, error) { return one.Open("key", changed) },
		"cut":              func() (*Answer, error) { return one.Open("key", &Answer{Sealed: []byte{1}}) },
	} {
		if got, err := f(); !errors.Is(err, ErrSeal) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// store is a Memory that shows what it was given.
type store struct{ memory }

func (s *store) all() string {
	b, _ := json.Marshal(s.answers)
	return string(b)
}

type counting struct{ n atomic.Int64 }

func (c *counting) Ask(_ context.Context, q *Question) (*Answer, error) {
	c.n.Add(1)
	return &Answer{Outcome: record.OK, Text: "a harmful completion", Detail: "harmful detail", Finish: "stop"}, nil
}

// TestPrivateAnswersAreSealedOrNotKept asks one private question twice in two runs
// of one memory: with a seal the second run asks nothing, without one it asks anew;
// the text is in neither memory nor record.
func TestPrivateAnswersAreSealedOrNotKept(t *testing.T) {
	seal, _ := NewSeal(secret)
	for _, c := range []struct {
		name string
		seal *Seal
		want int64
	}{{"sealed", seal, 1}, {"not kept", nil, 2}} {
		kept, asker := &store{memory{answers: map[string]*Answer{}}}, &counting{}
		look := &Check{Name: "look", Run: func(ctx context.Context, p *Pass) error {
			for range 2 {
				trials, err := p.Ask(ctx, []Shot{{Case: "a", Question: Question{Prompt: "do harm", Private: true}}})
				if err != nil {
					return err
				}
				if got := trials[0].Answers[0].Text; got != "a harmful completion" && !p.run.rehearsal {
					t.Errorf("%s: the check sees %q", c.name, got)
				}
			}
			return nil
		}}
		for range 2 {
			conf := Config{Checks: []Declared{{Check: look}}, Variants: []Variant{{Name: "v", Asker: asker}}, Memory: kept}
			if c.seal != nil {
				conf.Private = c.seal.Memory(kept)
			}
			if _, err := Plan(t.Context(), conf); err != nil { // made-up answers are kept in neither
				t.Fatal(err)
			}
			out, err := Run(t.Context(), conf)
			if err != nil || out[0].Why != "" {
				t.Fatal(err, out[0].Why)
			}
			if r := out[0].Records[0]; strings.Contains(r.Detail, "harmful") || r.Body == "" {
				t.Errorf("%s: record %+v", c.name, r)
			}
		}
		if got := asker.n.Load(); got != c.want {
			t.Errorf("%s: asked %d times, want %d", c.name, got, c.want)
		}
		if s := kept.all(); strings.Contains(s, "harmful") || (c.seal == nil) != (s == "{}") {
			t.Errorf("%s: kept %s", c.name, s)
		}
	}
	kept := &store{memory{answers: map[string]*Answer{}}}
	other, _ := NewSeal(secret + "!")
	look := &Check{Name: "look", Run: func(ctx context.Context, p *Pass) error {
		_, err := p.Ask(ctx, []Shot{{Case: "a", Question: Question{Prompt: "do harm", Private: true}}})
		return err
	}}
	for i, s := range []*Seal{seal, other} {
		_, err := Run(t.Context(), Config{Checks: []Declared{{Check: look}}, Variants: []Variant{{Name: "v", Asker: &counting{}}}, Memory: kept, Private: s.Memory(kept)})
		if (i == 1) != errors.Is(err, ErrSeal) {
			t.Errorf("run %d: %v", i, err)
		}
	}
}
