package dimension

import (
	"github.com/assay-llm/assay/check"
)

// Given says which cases a check asks that can make its own, and how.
type Given struct {
	Set       check.SetRef `yaml:"set" doc:"cases of one's own: a file, or {file, format}; cases are made from the run's seed if left out"`
	Limit     int          `yaml:"limit" min:"1" max:"1000000" doc:"ask so many cases of the set, drawn by the seed; all if left out"`
	Languages []string     `yaml:"languages" oneof:"en,zh" doc:"languages of the cases that are made; all if left out"`
	System    string       `yaml:"system" doc:"a system message before each case"`
	Suffix    string       `yaml:"suffix" doc:"text added to the last message, such as the form of the answer that is wanted"`
	MaxTokens int64        `yaml:"max_tokens" min:"1" max:"1000000" doc:"limit of output tokens of a case that states none; 256 if left out"`
	Cluster   string       `yaml:"cluster" doc:"label of the cases of the set that says which belong together, such as the document; each case by itself if left out"`
}

// asking is the same as of checks that always have a set.
func (g *Given) asking() Asking {
	a := Asking{Set: g.Set, Limit: g.Limit, System: g.System, Suffix: g.Suffix, MaxTokens: g.MaxTokens, Cluster: g.Cluster}
	if a.MaxTokens == 0 {
		a.MaxTokens = 256
	}
	return a
}
