package contract

import (
	"fmt"
	"slices"
)

// Grade is the outcome of a clause or of a contract. The zero Grade is
// inconclusive: whatever was not shown is not passed.
type Grade uint8

// The grades. Exit codes of the program are 3, 0 and 1.
const (
	Inconclusive Grade = iota
	Pass
	Fail
)

var gradeNames = []string{"inconclusive", "pass", "fail"}

// String returns "inconclusive", "pass" or "fail"; a value that is no grade is
// inconclusive.
func (g Grade) String() string {
	if int(g) >= len(gradeNames) {
		return gradeNames[Inconclusive]
	}
	return gradeNames[g]
}

// MarshalText writes the grade's name.
func (g Grade) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads a grade's name.
func (g *Grade) UnmarshalText(text []byte) error {
	i := slices.Index(gradeNames, string(text))
	if i < 0 {
		return fmt.Errorf("reading a grade: %q is not one of %q", text, gradeNames)
	}
	*g = Grade(i)
	return nil
}

// Worst combines grades: one fail is a fail, else one inconclusive is
// inconclusive, else pass. Worst of nothing is inconclusive: nothing was shown.
func Worst(grades ...Grade) Grade {
	if len(grades) == 0 {
		return Inconclusive
	}
	worst := Pass
	for _, g := range grades {
		switch g {
		case Fail:
			return Fail
		case Pass:
		default:
			worst = Inconclusive
		}
	}
	return worst
}
