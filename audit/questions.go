package audit

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/corpus"
)

// Limits of output tokens, by kind of question.
const (
	taskTokens  = 32
	cacheTokens = 48
	countTokens = 320
	storyTokens = 160
	echoTokens  = 128
	agreeTokens = 24
)

// salt begins a prompt, so that no cache knows it.
func salt(rng *rand.Rand) string { return fmt.Sprintf("[%08x] ", rng.Uint32()) }

var codeWords = strings.Fields(`maple river copper lantern meadow pepper harbor velvet canyon thunder
pilot orange marble cactus falcon saddle window ginger rocket violin anchor basket candle dragon
engine forest garden hammer island jacket kettle ladder mirror needle oyster pencil rabbit shadow
tunnel walnut yellow zebra bridge castle desert feather glacier helmet insect jungle`)

// newCode is a code that nobody guesses: a word and four digits.
func newCode(rng *rand.Rand) string {
	return fmt.Sprintf("%s-%04d", codeWords[rng.IntN(len(codeWords))], rng.IntN(10_000))
}

func repeat(code string) string {
	return "Repeat this code and write nothing else: " + code
}

// topic is what a text should be about.
func topic(rng *rand.Rand) string {
	return codeWords[rng.IntN(len(codeWords))] + " and a " + codeWords[rng.IntN(len(codeWords))]
}

func story(rng *rand.Rand) string {
	return salt(rng) + "Write a story of at least five hundred words about a " + topic(rng) + "."
}

// labels name the codes of one prompt.
var labels = [3]string{"ALPHA", "BRAVO", "CHARLIE"}

// haystack is a prompt of about so many words with a code at its start, in its
// middle and at its end, and asks for one of them.
func haystack(rng *rand.Rand, length int64, place int) (prompt, code string) {
	var codes [3]string
	for i := range codes {
		codes[i] = newCode(rng)
	}
	half := max(length/2-30, 4) // the question and the codes take the rest
	prompt = fmt.Sprintf("%sRemember the codes in this text. The code of %s is %s. %s. The code of %s is %s. %s. The code of %s is %s. "+
		"What is the code of %s? Write only the code.", salt(rng),
		labels[0], codes[0], corpus.Words(rng, half), labels[1], codes[1], corpus.Words(rng, half), labels[2], codes[2], labels[place])
	return prompt, codes[place]
}

// words counts the words of a text. No vocabulary in use has tokens that hold
// many words, so half as many tokens is a bound from below.
func words(text string) int64 { return int64(len(strings.Fields(text))) }

// sum is a task of arithmetic, and its answer.
func sum(rng *rand.Rand) (question, answer string) {
	x, y := 100+rng.IntN(400), 100+rng.IntN(400)
	return fmt.Sprintf("What is %d + %d? Write only the number.", x, y), strconv.Itoa(x + y)
}

func countTo(n int) string {
	return fmt.Sprintf("Count from 1 to %d. Write all the numbers, separated by spaces, and nothing else.", n)
}

var digits = regexp.MustCompile(`[0-9]+`)

// hasNumber reports whether a text has a number, as one run of digits.
func hasNumber(text, number string) bool {
	for _, d := range digits.FindAllString(strings.ReplaceAll(text, ",", ""), -1) {
		if d == number {
			return true
		}
	}
	return false
}

// counted is how far a text counts from 1 without a gap.
func counted(text string) int {
	n := 0
	for _, d := range digits.FindAllString(text, -1) {
		if d == strconv.Itoa(n+1) {
			n++
		}
	}
	return n
}

// random is where questions are drawn from.
type random = *rand.Rand
