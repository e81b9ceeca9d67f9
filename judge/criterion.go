package judge

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode"

	"github.com/assay-llm/assay/config"
)

// Criterion is one thing that is judged about an answer.
type Criterion struct {
	Name string `yaml:"name,required" doc:"one lower-case word, as reports spell it"`
	Asks string `yaml:"asks,required" doc:"what is judged, in one to three sentences"`
	// Sees says what the judge is shown beside the answer.
	Sees []string `yaml:"sees" doc:"what the judge is shown beside the answer: question, source, reference; question if left out"`
	// Levels is the menu, the worst first.
	Levels []Level `yaml:"levels" doc:"the menu of verdicts, 2 to 5, the worst first; without them answers can only be compared"`
}

// Level is one verdict of a menu.
type Level struct {
	Verdict string `yaml:"verdict,required" doc:"one short word, as the judge writes it"`
	Means   string `yaml:"means,required" doc:"when an answer deserves it"`
}

// Rubric is a file of criteria.
type Rubric struct {
	Version  int         `yaml:"version,required" doc:"1"`
	Criteria []Criterion `yaml:"criteria,required" doc:"what is judged"`
}

const (
	seesQuestion  = "question"
	seesSource    = "source"
	seesReference = "reference"

	tie = "tie"

	mostLevels = 5
	mostText   = 4000 // bytes of Asks and of each Means
)

//go:embed builtin.yaml
var builtinYAML []byte

// Builtin returns the criteria that need no file: consistency (are the answer's
// facts those of its source?), completeness (does it hold what the source says in
// answer to the question?), better (which answer serves the question better?, for
// pairs only), and compliance (does the answer do what is asked, or refuse? with the
// three classes of XSTest).
func Builtin() []Criterion {
	r, err := ReadRubric("builtin.yaml", builtinYAML)
	if err != nil {
		panic("judge: " + err.Error())
	}
	return r.Criteria
}

// ReadRubric reads a rubric in YAML. The error holds every fault with its line.
func ReadRubric(file string, data []byte) (*Rubric, error) {
	var r Rubric
	if err := config.Decode(file, data, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// CheckConfig checks what a rubric says across its fields.
func (r *Rubric) CheckConfig(n *config.Node) {
	if r.Version != 1 {
		n.Fault("version 1 is the only one there is", "write version: 1")
	}
	seen := map[string]bool{}
	for _, c := range r.Criteria {
		if seen[c.Name] {
			n.Fault(fmt.Sprintf("there are two criteria named %q", c.Name), "give each its own name")
		}
		seen[c.Name] = true
	}
}

// CheckConfig checks a criterion.
func (c *Criterion) CheckConfig(n *config.Node) {
	if err := c.Validate(); err != nil {
		n.Fault(err.Error(), "docs/judge.md shows a rubric")
	}
}

// Validate tells what keeps the criterion from being asked.
func (c *Criterion) Validate() error {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("criterion %q: %s", c.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Name == "" || strings.ContainsFunc(c.Name, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_') }):
		return fault("a name is one word of a to z, digits and _")
	case strings.TrimSpace(c.Asks) == "":
		return fault("it asks nothing")
	case len(c.Asks) > mostText:
		return fault("it asks more than %d bytes", mostText)
	case len(c.Levels) == 1 || len(c.Levels) > mostLevels:
		return fault("a menu has 2 to %d levels, not %d", mostLevels, len(c.Levels))
	}
	for _, s := range c.Sees {
		if s != seesQuestion && s != seesSource && s != seesReference {
			return fault("the judge can see question, source and reference, not %q", s)
		}
	}
	for i, l := range c.Levels {
		if l.Verdict == "" || len(l.Verdict) > 30 || strings.ContainsFunc(l.Verdict, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }) {
			return fault("a verdict is a short word of letters, digits, - and _, not %q", l.Verdict)
		}
		if strings.TrimSpace(l.Means) == "" || len(l.Means) > mostText {
			return fault("verdict %q has to say in at most %d bytes what it means", l.Verdict, mostText)
		}
		for _, other := range c.Levels[:i] {
			if strings.EqualFold(l.Verdict, other.Verdict) {
				return fault("verdict %q is there twice", l.Verdict)
			}
		}
	}
	return nil
}

// Level is the index of a verdict in the menu; -1 if it is none of it.
func (c *Criterion) Level(verdict string) int {
	for i, l := range c.Levels {
		if strings.EqualFold(l.Verdict, verdict) {
			return i
		}
	}
	return -1
}

// Score is what a level is worth: 0 for the worst to 1 for the best, in equal
// steps.
func (c *Criterion) Score(level int) float64 { return float64(level) / float64(len(c.Levels)-1) }

func (c *Criterion) sees(what string) bool {
	if len(c.Sees) == 0 {
		return what == seesQuestion
	}
	for _, s := range c.Sees {
		if s == what {
			return true
		}
	}
	return false
}
