package perturb

import (
	"embed"
	"strings"
	"sync"
)

//go:embed tables/*.txt
var files embed.FS

// lines are those of a table that say something, in fields.
func lines(name string) (out [][]string) {
	b, err := files.ReadFile("tables/" + name + ".txt")
	if err != nil {
		panic("perturb: " + err.Error())
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, strings.Fields(line))
		}
	}
	return out
}

// pairs reads a table of a word and what may stand for it.
func pairs(name string) func() map[string][]string {
	return sync.OnceValue(func() map[string][]string {
		out := make(map[string][]string)
		for _, f := range lines(name) {
			out[f[0]] = append(out[f[0]], f[1:]...)
		}
		return out
	})
}

// phrases reads a table of a term and what may stand for it, which may have spaces.
func phrases(name string) func() map[string]string {
	return sync.OnceValue(func() map[string]string {
		out := make(map[string]string)
		for _, f := range lines(name) {
			out[f[0]] = strings.Join(f[1:], " ")
		}
		return out
	})
}

// groups reads a table of groups of characters that stand for each other: all but
// each itself. skip is how many fields of a line come before the group.
func groups(name string, skip int) func() map[rune][]rune {
	return sync.OnceValue(func() map[rune][]rune {
		out := make(map[rune][]rune)
		for _, f := range lines(name) {
			group := []rune(f[skip])
			for _, r := range group {
				for _, other := range group {
					if other != r {
						out[r] = append(out[r], other)
					}
				}
			}
		}
		return out
	})
}

var (
	misspelt  = pairs("misspellings")
	sounds    = pairs("sounds")
	misheard  = phrases("terms")
	soundZh   = groups("homophones", 1)
	lookalike = groups("shapes", 0)

	// known are words that a typing error must not make of another.
	known = sync.OnceValue(func() map[string]bool {
		out := make(map[string]bool)
		for _, f := range lines("words") {
			for _, w := range f {
				out[w] = true
			}
		}
		return out
	})

	// traditional and simplified are the characters of either script by the other.
	traditional, simplified = script(0), script(1)
)

func script(from int) func() map[rune]rune {
	return sync.OnceValue(func() map[rune]rune {
		out := make(map[rune]rune)
		for _, f := range lines("scripts") {
			for _, pair := range f {
				r := []rune(pair)
				out[r[from]] = r[1-from]
			}
		}
		return out
	})
}
