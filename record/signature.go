package record

// Signature says how a number of a check came about. Two numbers of different
// signatures are not comparable.
type Signature struct {
	Value     string `json:"value"`               // CHECK.NAME
	Data      string `json:"data,omitempty"`      // hex SHA-256 of the cases; "": they have none
	Judge     string `json:"judge,omitempty"`     // who judged: model, prompt and calibration; "": no judge
	Estimator string `json:"estimator,omitempty"` // how each number was computed: "exact match, NFKC", "13a|smooth:exp"
	Cluster   string `json:"cluster,omitempty"`   // what is independent of each other: case, session, document
	N         int    `json:"n"`                   // records that should have the number, of all variants
	Missing   int    `json:"missing"`             // of them without
}
