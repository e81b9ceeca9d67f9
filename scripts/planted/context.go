package main

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/dimension"
	"github.com/assay-llm/assay/record"
)

// reader reads long texts and finds a sentence in them as often as its ability at
// that length and depth says; else it overlooks it, or confuses it with another.
type reader struct {
	seed    uint64
	ability func(tokens, depth float64) float64
	invents float64 // how often it makes up what is not there
	window  int     // tokens that its server keeps of a prompt, the last ones, without a word; 0: all
}

const tokensPerByte = .31

var (
	wantedRE = regexp.MustCompile(`What is the access code of the (.+?)\?`)
	statedRE = regexp.MustCompile(`The access code of the (.+?) is (\d{7})\.`)
)

func (m reader) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	prompt := q.Messages[len(q.Messages)-1].Content
	tokens := int(tokensPerByte*float64(len(prompt))) + 14
	asked := tokens
	if m.window > 0 && tokens > m.window {
		cut := int(float64(tokens-m.window) / tokensPerByte)
		prompt, tokens = strings.ToValidUTF8(prompt[min(cut, len(prompt)):], ""), m.window
	}
	a := answer(m.say(prompt, float64(asked)), q)
	a.Prompt = record.Tokens(int64(tokens))
	return a, nil
}

func (m reader) say(prompt string, tokens float64) string {
	rng := chance(m.seed, prompt)
	at := strings.LastIndex(prompt, "What is")
	if at < 0 {
		return "I do not know."
	}
	text, question := prompt[:at], prompt[at:]
	wanted := wantedRE.FindStringSubmatch(question)
	if wanted == nil {
		return "I do not know."
	}
	codes := statedRE.FindAllStringSubmatchIndex(text, -1)
	for _, c := range codes {
		if text[c[2]:c[3]] == wanted[1] && rng.Float64() < m.ability(tokens, float64(c[0])/float64(len(text))) {
			code := text[c[4]:c[5]]
			return []string{code, "The access code is " + code + ".", "**" + code[:1] + "," + code[1:4] + "," + code[4:] + "**"}[rng.IntN(3)]
		}
	}
	if rng.Float64() >= m.invents {
		return []string{"not stated", "Not stated.", "The text does not state the access code of the " + wanted[1] + "."}[rng.IntN(3)]
	}
	if others := slices.DeleteFunc(codes, func(c []int) bool { return text[c[2]:c[3]] == wanted[1] }); len(others) > 0 && rng.IntN(2) == 0 {
		c := others[rng.IntN(len(others))]
		return text[c[4]:c[5]]
	}
	return strconv.Itoa(1_000_000 + rng.IntN(9_000_000))
}

func evenly(share float64) func(tokens, depth float64) float64 {
	return func(float64, float64) float64 { return share }
}

// contextFault plays the check on a clean baseline and a candidate. A clean candidate
// is found guilty of whatever the check says against either of them.
func contextFault(name, doc, by, where string, conf func() *dimension.ContextConfig, plant func(rng *rand.Rand, m *reader) (placed func(f check.Finding) bool), clauses ...string) fault {
	return fault{
		check: "context", name: name, doc: doc, by: by, where: where,
		play: func(ctx context.Context, seed uint64, faulty bool) (told, error) {
			baseline := reader{seed: 2 * seed, ability: evenly(.95), invents: .05}
			candidate := reader{seed: 2*seed + 1, ability: evenly(.95), invents: .05}
			placed := func(check.Finding) bool { return false }
			if faulty {
				placed = plant(rand.New(rand.NewPCG(seed, 0xc0)), &candidate)
			}
			v, outcomes, err := run(ctx, seed, baseline, candidate, nil, clauses, check.Declared{Check: dimension.Context, Config: conf()})
			if len(clauses) > 0 {
				return told{found: failed(v)}, err
			}
			if !faulty {
				for _, o := range outcomes {
					for _, f := range o.Findings {
						if f.Severity != check.Info {
							return told{found: true}, err
						}
					}
				}
				return told{}, err
			}
			f, ok := finding(outcomes, by)
			return told{found: ok, placed: ok && placed(f)}, err
		},
	}
}

func contextFaults() []fault {
	lengths := []int64{512, 768, 1024, 1536, 2048, 3072, 4096, 6144}
	grid := func() *dimension.ContextConfig { return &dimension.ContextConfig{Lengths: lengths, Texts: 40} }
	breaks := func(rng *rand.Rand, m *reader) func(check.Finding) bool {
		cell := 1 + rng.IntN(len(lengths)-1)
		between := float64(lengths[cell-1]+lengths[cell]) / 2
		m.ability = func(tokens, _ float64) float64 {
			if tokens > between {
				return .55
			}
			return .95
		}
		return func(f check.Finding) bool {
			at := slices.Index(lengths, int64(f.Figures["from"]))
			return at >= cell-1 && at <= cell+1
		}
	}
	adaptive := func() *dimension.ContextConfig {
		return &dimension.ContextConfig{Lengths: lengths, Adaptive: true}
	}
	return []fault{
		contextFault("a breakpoint", "Of what is hidden in texts 95 % are found, from a random length on 55 %; 5 % of what is not there is made up. 8 lengths from 512 to 6,144 tokens, 40 texts of each.",
			"breakpoint", "the length, within one of the grid", grid, breaks),
		contextFault("a breakpoint, searched for", "The same, with `adaptive: true`.", "breakpoint", "the length, within one of the grid", adaptive, breaks),
		contextFault("a sagging middle", "Of needles in a stretch of a third to a half of the text, somewhere in its middle, 35 % are found, of others 95 %; in texts of 1,500 tokens and more. 9 depths, 60 texts of each length.",
			"sagging_middle", "both ends, within one depth", func() *dimension.ContextConfig {
				return &dimension.ContextConfig{Lengths: []int64{1024, 2048, 4096}, Depths: 9, Texts: 60, Kinds: []string{"retrieval"}}
			}, func(rng *rand.Rand, m *reader) func(check.Finding) bool {
				wide := 3 + rng.IntN(2) // depths, in eighths
				from := 2 + rng.IntN(6-wide)
				lo, hi := float64(from)/8, float64(from+wide-1)/8
				m.ability = func(tokens, depth float64) float64 {
					if tokens > 1500 && depth > lo-1./16 && depth < hi+1./16 {
						return .35
					}
					return .95
				}
				near := func(a, b float64) bool { return a-b < .13 && b-a < .13 }
				return func(f check.Finding) bool { return near(f.Figures["from"], lo) && near(f.Figures["to"], hi) }
			}),
		contextFault("prompts cut by the server", "The server keeps the last tokens of a prompt, a random number from 600 to 5,000, and says nothing.", "truncated", "the tokens that it keeps", grid,
			func(rng *rand.Rand, m *reader) func(check.Finding) bool {
				m.window = 600 + rng.IntN(4400)
				return func(f check.Finding) bool { return int(f.Figures["read"]) == m.window }
			}),
		contextFault("making up what is not there", "Of questions about what the text does not state 30 % are answered with a value, of the clean models 5 %.",
			"a clause, share(context.invented) <= baseline + 5 points", "", grid,
			func(_ *rand.Rand, m *reader) func(check.Finding) bool {
				m.invents = .3
				return nil
			}, "share(context.invented) <= baseline + 5 points"),
	}
}
