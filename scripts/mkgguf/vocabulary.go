package main

import (
	"fmt"
	"strings"
)

// The types of tokens, by their numbers in GGUF.
const (
	textToken    = 1
	unknownToken = 2
	controlToken = 3
	byteToken    = 6
)

// wordStart stands for a space in a SentencePiece vocabulary.
const wordStart = "\u2581"

// alphabet holds the characters that are tokens of their own. All others are
// spelled in bytes.
const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?'\"()-"

// smallestVocabulary has the control and byte tokens, the alphabet, and the
// start of a word.
const smallestVocabulary = 3 + 256 + len(alphabet) + 1

type vocabulary struct {
	tokens []string
	scores []float32
	types  []int32
}

// newVocabulary makes a vocabulary of n tokens for llama.cpp's SentencePiece
// tokenizer, which joins neighbours into longer tokens as long as it can. Every
// token that starts a word is in it with all of its own beginnings, so that
// joining from the left reaches it: a known word is one token, an unknown one
// its longest known beginning and then letters. Common words come first; beyond
// them syllables make up as many words as there is room for.
func newVocabulary(n int) vocabulary {
	var v vocabulary
	add := func(token string, kind int32) {
		v.tokens = append(v.tokens, token)
		v.types = append(v.types, kind)
		// An earlier token is joined before a later one.
		v.scores = append(v.scores, -float32(len(v.tokens)))
	}
	add("<unk>", unknownToken)
	add("<s>", controlToken)
	add("</s>", controlToken)
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), byteToken)
	}
	for _, r := range alphabet {
		add(string(r), textToken)
	}
	add(wordStart, textToken)
	known := map[string]bool{}
	for word := range words {
		for i := range word {
			token := wordStart + word[:i+1]
			if len(v.tokens) == n {
				return v
			}
			if !known[token] {
				known[token] = true
				add(token, textToken)
			}
		}
	}
	panic("vocabulary: words came to an end")
}

// words yields the common words and then, without end, made-up ones.
func words(yield func(string) bool) {
	for word := range strings.FieldsSeq(commonWords) {
		if !yield(word) {
			return
		}
	}
	for i := 0; ; i++ {
		if !yield(madeUp(i)) {
			return
		}
	}
}

// madeUp spells i in syllables, at least two.
func madeUp(i int) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	var b strings.Builder
	for n := 0; n < 2 || i > 0; n++ {
		b.WriteByte(consonants[i%len(consonants)])
		i /= len(consonants)
		b.WriteByte(vowels[i%len(vowels)])
		i /= len(vowels)
	}
	return b.String()
}

const commonWords = `
the of and to in a is that it for was on are as with his they at be this from have or by one had not but what all were
when we there can an your which their said if do will each about how up out them then she many some so these would other
into has more her two like him see time could no make than first been its who now people my made over did down only way
find use may water long little very after words called just where most know get through back much before go good new
write our me man too any day same right look think also around another came come work three word must because does part
even place well such here take why help put different away again off went old number great tell men say small every
found still between name should home big give air line set own under read last never us left end along while might next
sound below saw something thought both few those always looked show large often together asked house world going want
school important until form food keep children feet land side without boy once animals life enough took sometimes four
head above kind began almost live page got earth need far hand high year mother light parts country father let night
following picture being study second eyes soon times story boys since white days ever paper hard near sentence better
best across during today others however sure means knew try told young miles sun ways thing whole hear example heard
several change answer room sea against top turned learn point city play toward five using himself usually money seen
car morning body upon family later turn move face door cut done group true half red fish plants living black short
United run book gave order open ground cold really table remember tree course front space inside ago sad early learned
brought close nothing though idea before lived became add become grow draw yet less wind behind cannot letter among able
server request token model prompt answer latency throughput version release rollout benchmark measure interval sample
baseline candidate verdict contract evidence confidence variant suite record queue cache stream window limit memory
`
