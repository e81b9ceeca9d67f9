package corpus

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// write encodes cases in our format with another JSON implementation.
func write(t *testing.T, cases []Case) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, c := range cases {
		row := map[string]any{"id": c.ID, "expect": c.Expect, "labels": c.Labels}
		if c.Labels == nil {
			row["labels"] = map[string]string{}
		}
		if c.MaxTokens > 0 {
			row["max_tokens"] = c.MaxTokens
		}
		if c.Messages != nil {
			messages := []map[string]string{}
			for _, m := range c.Messages {
				messages = append(messages, map[string]string{"role": m.Role, "content": m.Content})
			}
			row["messages"] = messages
		} else {
			row["prompt"] = c.Prompt
		}
		if err := enc.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// fuzzFormat checks that whatever is read survives a round trip, byte for byte.
func fuzzFormat(f *testing.F, format string, seeds ...string) {
	for _, s := range append(seeds, "", "[", "[]", "{}", "\ufeff", "\x1f\x8b", `{"a":{"b":[1,2,{"c":null}]}}`, "{\"prompt\":\"\\ud83d\\ude00\"}\r\n\r\n{\"prompt\":\"b\"}") {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		set, err := Read("x", bytes.NewReader(in), format)
		if err != nil {
			if set != nil {
				t.Fatal("an error and a set")
			}
			if s := err.Error(); !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' }) {
				t.Fatalf("error message is not printable: %q", s)
			}
			return
		}
		if len(set.Cases) == 0 {
			t.Fatal("an empty set")
		}
		for i := range set.Cases {
			c := &set.Cases[i]
			if c.ID == "" || (c.Prompt == "") == (len(c.Messages) == 0) || c.MaxTokens < 0 {
				t.Fatalf("case %d is not sound: %+v", i, c)
			}
		}
		again, err := Read("y", bytes.NewReader(write(t, set.Cases)), "assay")
		if err != nil {
			t.Fatalf("reading back: %v", err)
		}
		if d := cmp.Diff(set.Cases, again.Cases); d != "" || set.Digest != again.Digest {
			t.Fatalf("round trip differs (-first +second):\n%s", d)
		}
	})
}

func FuzzReadAssay(f *testing.F) {
	fuzzFormat(f, "assay", `{"id": "a", "prompt": "Hi?", "max_tokens": 7, "expect": "x", "labels": {"k": "v"}}`,
		`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}`, `[{"prompt": "a"}, {"prompt": "b"}]`)
}

func FuzzReadShareGPT(f *testing.F) {
	fuzzFormat(f, "sharegpt", `{"id": "s_0", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}`,
		`[{"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "Hi"}]}]`)
}

func FuzzReadOpenAI(f *testing.F) {
	fuzzFormat(f, "openai", `{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "assistant", "content": "b"}]}`,
		`{"custom_id": "q", "body": {"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}}`)
}

func FuzzReadQA(f *testing.F) {
	fuzzFormat(f, "qa", `{"question": "2+2?", "answer": "#### 4"}`, `{"id": 1, "question": "q", "answer": "", "labels": {"k": "v"}}`)
}

func FuzzReadIFEval(f *testing.F) {
	fuzzFormat(f, "ifeval", `{"key": 1, "prompt": "p", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{"a": null}]}`)
}

func FuzzReadAny(f *testing.F) { fuzzFormat(f, "", `{"prompt": "a"}`, `{"conversations": []}`) }

// FuzzJSON holds our reader of JSON against the standard library's: it accepts
// nothing that the library refuses, and reads texts alike.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`"a\u00e9\ud83d\ude00"`, `{"a":[1,-0.5e+3,true,null,""]}`, `[[[]]]`, `01`, `-`, `1.`, `"\u12"`, "\"\xff\"", `tru`, ` {} `, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c := &cursor{data: in}
		err := c.skip()
		if err == nil {
			err = c.end()
		}
		if err == nil && (!json.Valid(in) || !utf8.Valid(in)) {
			t.Fatalf("accepted %q", in)
		}
		if c.pos > len(in) {
			t.Fatalf("read to %d of %d", c.pos, len(in))
		}
		if err != nil {
			return
		}
		c = &cursor{data: in}
		if got, err := c.text(); err == nil {
			var want string
			if err := json.Unmarshal(in, &want); err != nil || got != want {
				t.Fatalf("text %q, want %q (%v)", got, want, err)
			}
		}
	})
}
