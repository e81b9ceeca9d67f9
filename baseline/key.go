package baseline

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key says which runs may be compared. Two runs of different keys never are.
type Key struct {
	Workload  string `json:"workload"`  // hex SHA-256 of what was sent, apart from seed and salt
	Family    string `json:"family"`    // of the model: llama-3.1-8b
	Precision string `json:"precision"` // bf16, fp8, int4; [Unstated] if nobody said
	Engine    string `json:"engine"`    // with its major version: vllm 0; Unstated if nobody said
	Hardware  string `json:"hardware"`  // class: h100-sxm x2
}

// Unstated stands for a precision or an engine that nobody stated.
const Unstated = "unstated"

// String writes the key on one line, the workload by the first eight digits.
func (k Key) String() string {
	return strings.Join([]string{k.Workload[:min(8, len(k.Workload))], k.Family, k.Precision, k.Engine, k.Hardware}, " · ")
}

// longest part of a key, in bytes.
const longest = 200

// Validate reports every part that is missing or that is no plain text.
func (k Key) Validate() error {
	var faults []error
	for _, p := range []struct{ name, text, hint string }{
		{"workload digest", k.Workload, "measure again with this version"},
		{"model family", k.Family, "say --family NAME, or about: {family: NAME} of the variant in the suite"},
		{"precision", k.Precision, "say --precision NAME, or about: {precision: NAME} of the variant in the suite"},
		{"engine", k.Engine, "say --engine NAME, or about: {engine: NAME} of the variant in the suite"},
		{"hardware class", k.Hardware, "say --hardware NAME, or about: {hardware: NAME} of the variant in the suite"},
	} {
		switch {
		case p.text == "":
			faults = append(faults, fmt.Errorf("the %s is not known\n  hint: %s", p.name, p.hint))
		case !plain(p.text) || len(p.text) > longest:
			faults = append(faults, fmt.Errorf("the %s is no plain text of at most %d bytes: %.40q\n  hint: %s", p.name, longest, p.text, p.hint))
		}
	}
	return errors.Join(faults...)
}

// plain reports whether a text can stand in a table: valid, on one line, and
// nothing in it that cannot be seen or that turns the direction of text.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) })
}

// Major shortens the version at the end of an engine's name to its first number:
// "vLLM 0.9.2" becomes "vllm 0".
func Major(engine string) string {
	fields := strings.Fields(strings.ToLower(engine))
	if n := len(fields); n > 1 {
		v := strings.TrimPrefix(fields[n-1], "v")
		if v != "" && v[0] >= '0' && v[0] <= '9' {
			fields[n-1], _, _ = strings.Cut(v, ".")
		}
	}
	return strings.Join(fields, " ")
}
