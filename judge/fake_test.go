package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
)

// asked is a question as a judge sees it, taken apart at its fences.
type asked struct {
	code      string
	menu      []string
	names     []string          // of the material, in order
	material  map[string]string // by name, ANSWER without a letter for one answer
	outside   string            // of the second message: what no fence holds
	question  *check.Question
	pairwise  bool
	secondTry bool
}

var codeOf = regexp.MustCompile(`hold the code ([0-9a-f]{24})`)

// take is the reader that the fences promise: only lines with the code are fences.
func take(t *testing.T, q *check.Question) *asked {
	t.Helper()
	a := &asked{material: map[string]string{}, question: q}
	system, user := q.Messages[0].Content, q.Messages[1].Content
	m := codeOf.FindStringSubmatch(system)
	if m == nil {
		t.Fatalf("no code in %q", system)
	}
	a.code = m[1]
	a.pairwise = strings.Contains(system, "You compare two answers")
	a.secondTry = strings.Contains(system, "An earlier try of yours was of no use")
	_, menu, _ := strings.Cut(system, "the verdict that follows from it, one of: ")
	menu, _, _ = strings.Cut(menu, ".")
	a.menu = strings.Split(menu, ", ")
	open, rest := "", user
	for rest != "" {
		line, next, _ := strings.Cut(rest, "\n")
		switch name, ok := strings.CutSuffix(line, " "+a.code); {
		case ok && open == "" && strings.HasPrefix(name, begins):
			open = strings.TrimPrefix(name, begins)
			body, after, found := strings.Cut(next, "\n"+ends+open+" "+a.code+"\n")
			if !found {
				t.Fatalf("%s is not closed", open)
			}
			a.names = append(a.names, open)
			a.material[open] = body
			rest, open = after, ""
			continue
		default:
			a.outside += line + "\n"
		}
		rest = next
	}
	return a
}

// says is an honest answer of a judge.
func says(reason, verdict string) *check.Answer {
	b, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		panic(err)
	}
	v, err := json.Marshal(verdict)
	if err != nil {
		panic(err)
	}
	return text(strings.TrimSuffix(string(b), "}") + `,"verdict":` + string(v) + "}")
}

func text(s string) *check.Answer {
	return &check.Answer{Outcome: record.OK, Text: s, Finish: "stop", Model: "fake-judge"}
}

// askerFunc is an asker that is one function.
type askerFunc func(q *check.Question) (*check.Answer, error)

func (f askerFunc) Ask(_ context.Context, q *check.Question) (*check.Answer, error) { return f(q) }

// fake is a judge of answers of the form "quality=0.73 …" with planted faults. It
// is deterministic in its seed and the question.
type fake struct {
	t    *testing.T
	seed uint64

	noise      float64 // of the quality it sees, standard deviation
	first      float64 // added to what stands first
	verbose    float64 // added for each 100 characters of an answer
	obeys      bool    // does what stands inside the fences
	shift      float64 // added to all: drift
	garbage    float64 // share of answers that are no verdict
	nonsense   float64 // share of verdicts that are NaN or out of range
	restless   float64 // noise that is new in each replicate
	lenientTo  string  // adds lenience to answers that hold this
	lenience   float64
	mu         sync.Mutex
	questions  int
	transcript []string
}

var quality = regexp.MustCompile(`quality=([0-9.]+)`)

func (f *fake) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	a := take(f.t, q)
	f.mu.Lock()
	f.questions++
	f.transcript = append(f.transcript, a.code)
	f.mu.Unlock()
	if f.obeys {
		for _, n := range a.names {
			if v := wanted(a.material[n], a.menu); strings.HasPrefix(n, "ANSWER") && v != "" {
				return says("as I was told", v), nil
			}
		}
	}
	// Equal answers are seen as equally good, whatever else is in the question.
	see := func(name string, place int) float64 {
		text := a.material[name]
		var x float64
		if m := quality.FindStringSubmatch(text); m != nil {
			_, _ = fmt.Sscan(m[1], &x)
		}
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		x += f.noise * rand.New(rand.NewPCG(f.seed, h.Sum64())).NormFloat64()
		x += f.restless * rand.New(rand.NewPCG(f.seed+1, h.Sum64()+uint64(q.Replicate))).NormFloat64()
		x += f.verbose * float64(len(text)) / 100
		if f.lenientTo != "" && strings.Contains(text, f.lenientTo) {
			x += f.lenience
		}
		if place == 0 {
			x += f.first
		}
		return x + f.shift
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(q.Messages[1].Content))
	r := rand.New(rand.NewPCG(f.seed+2, h.Sum64()))
	if r.Float64() < f.garbage {
		return text("I would say it is rather good, all in all."), nil
	}
	if r.Float64() < f.nonsense {
		return text(`{"reason":"hm","verdict":` + []string{"NaN", "99", `"excellent"`, "-1", "1e999"}[r.IntN(5)] + `}`), nil
	}
	if a.pairwise {
		x, y := see(a.names[len(a.names)-2], 0), see(a.names[len(a.names)-1], 1)
		name := func(i int) string { return strings.TrimPrefix(a.names[len(a.names)-2+i], "ANSWER ") }
		switch {
		case x > y+0.02:
			return says("the first is better", name(0)), nil
		case y > x+0.02:
			return says("the second is better", name(1)), nil
		}
		return says("equal", tie), nil
	}
	x := see("ANSWER", -1)
	levels := sorted(a.menu)
	k := min(max(int(x*float64(len(levels))), 0), len(levels)-1)
	return says("it is of that quality", levels[k]), nil
}

// sorted is the menu from the worst on, whatever order it was shown in: the menus of
// these tests are in alphabetical order.
func sorted(menu []string) []string {
	out := append([]string(nil), menu...)
	if out[0] > out[len(out)-1] {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

// wanted is the verdict that a text asks for.
func wanted(text string, menu []string) string {
	if len(Suspicions(text, Item{})) == 0 {
		return ""
	}
	best := sorted(menu)
	return best[len(best)-1]
}
