package haystack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/assay-llm/assay/verify"
)

// unit is a piece of a text between two of which a needle can stand.
type unit struct {
	text string // ends with what separates it from the next
	size int    // characters
}

func newUnit(text string) unit { return unit{text, utf8.RuneCountInString(text)} }

// source gives one unit after the other; ok is false when there is no more.
type source func() (u unit, ok bool)

// generated writes a text without an end. No two of its lines are equal.
func generated(t *tongue, zh bool, seed uint64) source {
	rng := rand.New(rand.NewPCG(seed, 0x4a75)) //nolint:gosec // it has to be repeatable
	w := writer{t: t, rng: rng, page: 100 + rng.IntN(800), minute: rng.IntN(24 * 60)}
	seen := make(map[string]bool)
	return func() (unit, bool) {
		for {
			line := w.english()
			if zh {
				line = w.chinese()
			}
			if !seen[line] {
				seen[line] = true
				return newUnit(line + "\n"), true
			}
		}
	}
}

// writer writes lines. It counts pages and minutes up, as ledgers and logs do.
type writer struct {
	t            *tongue
	rng          *rand.Rand
	page, minute int
}

func (w *writer) of(list []string) string { return list[w.rng.IntN(len(list))] }

// clock is the time of the next entry.
func (w *writer) clock() string {
	w.minute += 1 + w.rng.IntN(9)
	return fmt.Sprintf("%02d:%02d:%02d", w.minute/60%24, w.minute%60, w.rng.IntN(60))
}

func (w *writer) number() int { return 2 + w.rng.IntN(180) }

func (w *writer) english() string {
	t := w.t
	switch w.rng.IntN(8) {
	case 0, 1:
		w.page += 1 + w.rng.IntN(3)
		return fmt.Sprintf("Ledger %d: %s %d %s of %s from %s, shelf %c-%d, paid %d.%02d.", w.page%10000, w.of([]string{"received", "returned", "ordered", "set aside"}), w.number(), w.of(t.units),
			w.of(t.things), w.of(t.firms), 'A'+rune(w.rng.IntN(12)), 1+w.rng.IntN(40), w.rng.IntN(900), w.rng.IntN(100))
	case 2, 3:
		return fmt.Sprintf("%s %s %d %s after %d s, pressure %d.%d bar, noted by %s.", w.clock(), w.of([]string{"pump", "crane", "gate", "boiler", "winch", "fan"}), 1+w.rng.IntN(30),
			w.of([]string{"restarted", "stopped", "was oiled", "was checked", "ran idle", "was switched over"}), w.number(), 1+w.rng.IntN(8), w.rng.IntN(10), w.of(t.names))
	case 4, 5:
		return fmt.Sprintf("%q asked %s. %q said %s, %q", fmt.Sprintf("Has anyone %s the %s by the %s?", w.of(t.verbs), w.of(t.things), w.of(t.places)), w.of(t.names),
			w.of([]string{"Not before noon,", "Twice already,", "Only half of it,", "Nobody told me,", "Ask at the office,", "Since yesterday,"}), w.of(t.names),
			fmt.Sprintf("the %s is too %s for %d %s.", w.of(t.places), w.of(t.adjectives), w.number(), w.of(t.units)))
	}
	return fmt.Sprintf("The %s %s near the %s was %s that %s, and %s %s %d %s of %s while %s watched the %s.", w.of(t.adjectives), w.of(t.places), w.of(t.places), w.of(t.adjectives),
		w.of([]string{"morning", "evening", "week", "season", "afternoon", "night"}), w.of(t.names), w.of(t.verbs), w.number(), w.of(t.units), w.of(t.things), w.of(t.names), w.of(t.places))
}

func (w *writer) chinese() string {
	t := w.t
	name := func() string { return w.of(t.surnames) + w.of(t.names) }
	switch w.rng.IntN(8) {
	case 0, 1:
		w.page += 1 + w.rng.IntN(3)
		return fmt.Sprintf("账册第%d页：%s%s%d%s%s，存放%c-%d架，付款%d元%d角。", w.page%10000, w.of(t.firms), w.of([]string{"送来", "退回", "订购", "寄存"}), w.number(), w.of(t.units), w.of(t.things),
			'A'+rune(w.rng.IntN(12)), 1+w.rng.IntN(40), w.rng.IntN(900), w.rng.IntN(10))
	case 2, 3:
		return fmt.Sprintf("%s %d号%s%s，历时%d秒，压力%d.%d巴，记录人%s。", w.clock(), 1+w.rng.IntN(30), w.of([]string{"水泵", "吊车", "闸门", "锅炉", "绞车", "风机"}),
			w.of([]string{"重新启动", "停止运转", "加注机油", "例行检查", "空转", "切换线路"}), w.number(), 1+w.rng.IntN(8), w.rng.IntN(10), name())
	case 4, 5:
		return fmt.Sprintf("%s问：“%s旁边的%s有人%s了吗？”%s答：“%s，%s太%s，放不下%d%s。”", name(), w.of(t.places), w.of(t.things), w.of(t.verbs), name(),
			w.of([]string{"中午以前不行", "已经两回了", "只弄了一半", "没人告诉我", "去账房问问", "昨天就好了"}), w.of(t.places), w.of(t.adjectives), w.number(), w.of(t.units))
	}
	return fmt.Sprintf("那%s，%s的%s挨着%s，%s把%d%s%s%s妥当，%s一直望着%s。", w.of([]string{"天早上", "天晚上", "一周", "个季节", "天下午", "天夜里"}), w.of(t.adjectives), w.of(t.places), w.of(t.places),
		name(), w.number(), w.of(t.units), w.of(t.things), w.of(t.verbs), name(), w.of(t.places))
}

// longestPiece is from how many characters on a paragraph is cut into sentences.
const longestPiece = 400

// own cuts a caller's text into paragraphs, long ones into sentences. What came
// before is left out, so that nothing stands in it twice.
func own(text string) []unit {
	var out []unit
	seen := make(map[string]bool)
	for _, block := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		block = strings.Join(strings.Fields(block), " ")
		if block == "" || seen[block] {
			continue
		}
		seen[block] = true
		pieces := []string{block}
		if utf8.RuneCountInString(block) > longestPiece {
			pieces = verify.SplitSentences(block)
		}
		for i, p := range pieces {
			if p = strings.TrimSpace(p); p == "" {
				continue
			}
			if i == len(pieces)-1 {
				p += "\n"
			} else {
				p += " "
			}
			out = append(out, newUnit(p))
		}
	}
	return out
}

// given reads a caller's text from a place that the seed draws, around its end, and
// once.
func given(units []unit, seed uint64) (source, error) {
	if len(units) == 0 {
		return nil, errors.New("there is no text in the haystack")
	}
	start := rand.New(rand.NewPCG(seed, 0x4a76)).IntN(len(units)) //nolint:gosec // it has to be repeatable
	n := 0
	return func() (unit, bool) {
		if n == len(units) {
			return unit{}, false
		}
		u := units[(start+n)%len(units)]
		n++
		return u, true
	}, nil
}
