package check

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

// Signature says how a number came about. Two numbers of different signatures
// are not comparable.
type Signature struct {
	Value     string `json:"value"`               // CHECK.NAME
	Data      string `json:"data,omitempty"`      // hex SHA-256 of the cases; "": they have none
	Judge     string `json:"judge,omitempty"`     // who judged: model, prompt and calibration; "": no judge
	Estimator string `json:"estimator,omitempty"` // how each number was computed: "exact match, NFKC", "13a|smooth:exp"
	Cluster   string `json:"cluster,omitempty"`   // what is independent of each other: case, session, document
	N         int    `json:"n"`                   // records that should have the number, of all variants
	Missing   int    `json:"missing"`             // of them without
}
