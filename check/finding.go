package check

import "github.com/assay-llm/assay/record"

// Severity is how much a finding matters to a reader. It softens no grade: only
// a contract grades.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Alarm   Severity = "alarm"
)

// Finding is something that a check saw and a person should: what, where, and
// with which evidence.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`              // stable, one lower-case word: "position_bias"
	Variant  string   `json:"variant,omitempty"` // "": of all
	Case     string   `json:"case,omitempty"`    // "": of no single case
	Text     string   `json:"text"`              // one sentence, with figures
	Hint     string   `json:"hint,omitempty"`    // one next step

	// Figures back the sentence, by name.
	Figures map[string]float64 `json:"figures,omitempty"`
	// Bodies are hex SHA-256 of texts that were kept by Pass.Keep.
	Bodies []string `json:"bodies,omitempty"`
}

// Signature says how a number came about: see [record.Signature]. In Pass.Sign
// its Value is the name within the check.
type Signature = record.Signature
