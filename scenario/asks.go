package scenario

import (
	"regexp"
	"slices"
	"strings"
)

// The marks of questions in folded texts. courtesyRE are questions that ask for no
// value; openRE is a question for a value, requestRE one without a question mark;
// whichRE a question that names no slot and can only mean what was left open;
// lacksRE says that something is not known, which is no assumption either.
var (
	courtesyRE = regexp.MustCompile(`anything else|any other (?:question|request|way)|something else|help you with|assist you|further (?:help|assistance|questions)|how (?:can|may) i (?:help|assist)|(?:请问)?(?:还有|还需要|有没有)(?:什么|其他|别的)|其他(?:需要|问题|可以)|可以帮(?:到)?您`)
	openRE     = regexp.MustCompile(`\b(?:which|what|what's|who|whose|whom|when|where|how many|how much)\b|\b(?:do|did) you (?:mean|want|refer|prefer)|\bare you (?:referring|talking|asking)|\b(?:could|can|would|will) you (?:please |kindly )*(?:tell|let|give|specify|confirm|clarify|provide|share|say|remind|repeat|state|choose|indicate)|\bmay i (?:have|ask|know)|哪|什么|多少|几(?:个|位|人|号|月|张|间)|何时|谁|请问|是指|还是|能否|可否|能不能|可以告诉`)
	requestRE  = regexp.MustCompile(`\bplease (?:also )?(?:tell|let me know|specify|confirm which|clarify|provide|share|give|state|choose|indicate)|\blet me know (?:which|what|who|when|where|how)|\bi(?:'d| would)? (?:need|have|like) to (?:know|ask|clarify)|\bi need (?:the|your|to know|more)|请(?:您)?(?:告诉|告知|说明|确认一下|确认是|明确|提供|指明|选择|补充|问)|需要(?:您)?(?:告诉|提供|说明|确认)|(?:想|要)(?:跟您)?确认`)
	whichRE    = regexp.MustCompile(`\bwhich (?:one|of|do you)|\b(?:do|did) you mean|\bare you referring|\b(?:could|can|would) you (?:please )?(?:clarify|specify|be more specific)|\bplease (?:clarify|specify)|哪(?:一)?(?:个|位|张|款|种|项)|是指|请(?:您)?(?:明确|说明|指明|具体)`)
	confirmRE  = regexp.MustCompile(`\b(?:shall|should) i\b|\bis (?:that|this|it) (?:right|correct|ok|okay)|\bcorrect\?|\bright\?|\bdo you want me to|\bwould you like me to|对吗|是吗|正确吗|可以吗|吗\?`)
	lacksRE    = regexp.MustCompile(`\b(?:do not|don't|does not|doesn't|did not|didn't) (?:have|know|see|say|tell|specify|mention|find)|\bnot (?:sure|clear|certain|specified|given|provided|mentioned)|\bunclear\b|\bno information\b|\bcan(?:not|'t) (?:tell|determine|know)|不(?:清楚|确定|知道|明确)|没有(?:提供|说明|提到|告诉|相关)|无法(?:确定|判断|得知)|未(?:提供|说明|提及)`)
)

// A question is one sentence of a reply that asks for something.
type question struct {
	text    string
	which   bool // it names no slot, and means what was left open
	confirm bool // it asks to confirm
}

// mostQuestions bounds the questions that are read from a reply.
const mostQuestions = 32

// questions lists the sentences of a folded reply that ask for a value, or to confirm
// one.
func questions(text string) (out []question) {
	for _, at := range sentences(text) {
		s := strings.TrimSpace(text[at[0]:at[1]])
		if len(out) == mostQuestions {
			break
		}
		mark := strings.HasSuffix(s, "?")
		asks := mark && openRE.MatchString(s) || requestRE.MatchString(s)
		confirm := mark && confirmRE.MatchString(s)
		if (asks || confirm || mark && strings.Contains(s, " or ")) && !courtesyRE.MatchString(s) {
			out = append(out, question{s, whichRE.MatchString(s), confirm})
		}
	}
	return out
}

// asks reports whether a folded reply asks for the value of a slot: a question that
// calls it by its name, lets choose between two of its values or more, or, with which,
// one that names no slot at all. To name one value and have it confirmed asks for
// none: see confirms.
func (s *Scenario) asks(text, slot string, which bool) bool {
	for _, q := range questions(text) {
		values := s.distinct(q.text, slot)
		switch {
		case len(values) > 1:
			return true
		case len(values) == 1 && !q.which:
			continue
		case s.speaks(q.text, slot) && (openRE.MatchString(q.text) || requestRE.MatchString(q.text)):
			return true
		case q.which && (which || len(values) == 1):
			return true
		}
	}
	return false
}

// confirms reports whether a folded reply asks to confirm a value of the slot.
func (s *Scenario) confirms(text, slot string) bool {
	return slices.ContainsFunc(questions(text), func(q question) bool {
		return q.confirm && len(s.distinct(q.text, slot)) > 0
	})
}

// distinct lists the different values of a slot in a folded text.
func (s *Scenario) distinct(text, slot string) (out []string) {
	for _, m := range s.mentions(text, slot) {
		if !slices.Contains(out, m.value) {
			out = append(out, m.value)
		}
	}
	return out
}

// statements is a folded text without the sentences that ask for a slot: a value that
// is offered for choice is not asserted.
func (s *Scenario) statements(text, slot string) string {
	for _, q := range questions(text) {
		if q.which || len(s.distinct(q.text, slot)) > 1 {
			text = strings.Replace(text, q.text, strings.Repeat(" ", len(q.text)), 1)
		}
	}
	return text
}
