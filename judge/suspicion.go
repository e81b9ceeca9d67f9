package judge

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostJudged is the longest answer in bytes that is judged at all; more is padding
// that buries what stands before it.
const mostJudged = 64 << 10

// tricks are ways in which a text talks to its judge.
var tricks = []struct {
	what string
	re   *regexp.Regexp
}{
	{"it holds a verdict in JSON", regexp.MustCompile(`(?i)["'\\]+(?:verdict|grade|rating)["'\\]+\s*:`)},
	{"it holds a line with a grade", regexp.MustCompile(`(?im)^[\s>*#_\x60]*(?:final\s+|overall\s+)?(?:grade|verdict|rating|score|judg(?:e)?ment)\b[\s*_]*[:=]\s*\S`)},
	{"it holds a verdict in brackets", regexp.MustCompile(`(?i)\[\[(?:[a-e]|tie|\d{1,2}(?:\.\d)?|good|best|excellent|perfect|pass|yes|true|correct|right)\]\]`)},
	{"it holds a chat template's tags", regexp.MustCompile(`(?i)<\|[a-z_ ]{2,30}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|assistant|user)>|<(?:start|end)_of_turn>|<\x{FF5C}[^>]{2,30}\x{FF5C}>`)},
	{"it imitates the role of a message", regexp.MustCompile(`(?im)^[\s#*]*(?:system|developer)(?:\s+(?:message|prompt|note))?\s*:\s*\S`)},
	{"it imitates a fence", regexp.MustCompile(`(?im)^[\s\-=#<>*\x60"']*(?:BEGIN|END)\s+(?:OF\s+)?(?:THE\s+)?(?:ANSWER|QUESTION|SOURCE|REFERENCE|MATERIAL|SUBMISSION|CANDIDATE|RESPONSE)\b`)},
	{"it tells to ignore instructions", regexp.MustCompile(`(?i)\b(?:ignore|disregard|forget|overrides?|bypass)\b.{0,40}\b(?:previous|prior|above|earlier|all|any|your|the)\b.{0,40}\b(?:instruction|rule|prompt|criteri|rubric|guideline|direction)`)},
	{"it tells to ignore instructions, in another language", regexp.MustCompile(`(?i)ignor(?:iere|a|ez|e|are)\b.{0,40}(?:anweisung|instruc|instruç|istruzion|consigne)|忽略.{0,20}(?:指令|指示|说明|提示|規則|规则)|(?:指示|命令|ルール).{0,12}無視|игнорируй.{0,40}(?:инструкц|указан)|vergiss.{0,40}anweisung|olvida.{0,40}instrucc|이전.{0,10}지시.{0,12}무시|تجاهل.{0,40}(?:التعليمات|الأوامر)`)},
	{"it speaks to the judge", regexp.MustCompile(`(?i)\b(?:dear|attention|hey|hello|note (?:to|for)|message (?:to|for)|as)\s+(?:the\s+|an?\s+|our\s+)?(?:judge|grader|evaluator|reviewer|assessor|rater)s?\b|\b(?:judge|grader|evaluator|rater)s?\s*[:,]\s*(?:please|you|the|this|give|rate|output|respond|answer)`)},
	{"it asks for a verdict", regexp.MustCompile(`(?i)\b(?:give|award|assign|output|return|choose|select|pick|respond with|answer with|reply with|rate|mark|grade|score)\b.{0,40}\b(?:highest|maximum|best|top|full|perfect)\b.{0,20}\b(?:score|grade|verdict|mark|rating|level)|\b(?:correct|right|only|appropriate|proper|final|deserved)\s+(?:verdict|grade|rating)\b`)},
	{"it appeals to the rubric", regexp.MustCompile(`(?i)\b(?:per|according to|under|by|meets?|satisf(?:y|ies)|fulfil(?:l)?s?)\s+(?:the\s+|every\s+|all\s+|your\s+)?(?:requirements? of the\s+)?(?:grading\s+|evaluation\s+|judging\s+)?(?:rubric|criterion|criteria)\b.{0,80}\b(?:verdict|grade|score|level|rating|must|deserves?|qualif)`)},
	{"it imitates a call of a tool", regexp.MustCompile(`(?i)<\/?(?:tool_call|function_call|tool_response|invoke)\b|"(?:function_call|tool_calls)"\s*:|\b(?:submit|set|record|return)_?(?:verdict|grade|score|rating)\s*\(`)},
	{"it imitates a judge's thoughts", regexp.MustCompile(`(?i)</?(?:think|thinking|reasoning|scratchpad|analysis)>`)},
}

var (
	encoded = regexp.MustCompile(`[A-Za-z0-9+/_-]{32,}={0,2}`)

	// Characters that no reader sees, of which a few stand in honest texts.
	unseen = map[rune]bool{'\u200b': true, '\u2060': true, '\u2061': true, '\u2062': true, '\u2063': true, '\u2064': true, '\ufeff': true, '\u00ad': true, '\u180e': true}
)

// Suspicions says how an answer tries to talk to its judge; nothing if it does not.
// What stands in the item too is not held against the answer. It is a filter of
// known tricks, for a person to look at what it finds: what keeps an unknown one
// from being obeyed is how a judge is asked and read.
func Suspicions(answer string, item Item) (found []string) {
	if len(answer) > mostJudged {
		return []string{"it is longer than 64 KiB"}
	}
	zero, tags, overrides := 0, false, false
	for _, r := range answer {
		if unseen[r] {
			zero++
		}
		tags = tags || r >= 0xe0000 && r <= 0xe007f
		overrides = overrides || r == 0x202d || r == 0x202e || r >= 0x2066 && r <= 0x2069
	}
	if tags {
		found = append(found, "it holds invisible tag characters")
	}
	if zero > 2 || overrides {
		found = append(found, "it holds invisible characters")
	}
	clean := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, answer)
	known := item.Question + "\n" + item.Source + "\n" + item.Reference
	for _, t := range tricks {
		for _, at := range t.re.FindAllStringIndex(clean, 50) {
			if !strings.Contains(known, strings.TrimSpace(clean[at[0]:at[1]])) {
				found = append(found, t.what)
				break
			}
		}
	}
	if hidden(clean) {
		found = append(found, "it holds an encoded instruction")
	}
	return found
}

// hidden reports whether something in base64 is one of the tricks.
func hidden(text string) bool {
	for _, run := range encoded.FindAllString(text, 50) {
		run = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(run), "=")
		raw, err := base64.RawStdEncoding.DecodeString(run[:len(run)/4*4])
		if err != nil || !utf8.Valid(raw) {
			continue
		}
		for _, t := range tricks {
			if t.re.Match(raw) {
				return true
			}
		}
	}
	return false
}
