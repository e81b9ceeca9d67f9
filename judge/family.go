package judge

import (
	"fmt"
	"regexp"
	"strings"
)

// families are makers and lines of models by parts of their names.
var families = []struct{ family, parts string }{
	{"openai", "gpt-|gpt4|gpt3|gpt5|chatgpt|openai|davinci|o1-|o3-|o4-"},
	{"anthropic", "claude|anthropic"},
	{"google", "gemini|gemma|palm-|bard"},
	{"meta", "llama|meta-"},
	{"mistral", "mistral|mixtral|ministral|codestral|magistral"},
	{"qwen", "qwen|qwq|tongyi"},
	{"deepseek", "deepseek"},
	{"microsoft", "phi-|phi3|phi4|wizardlm"},
	{"cohere", "command-r|command-a|cohere|aya-"},
	{"xai", "grok"},
	{"zhipu", "glm-|chatglm"},
	{"moonshot", "kimi|moonshot"},
	{"01ai", "yi-"},
	{"ibm", "granite"},
	{"nvidia", "nemotron"},
	{"huggingface", "smollm|zephyr"},
	{"tii", "falcon"},
	{"internlm", "internlm"},
	{"baidu", "ernie"},
	{"minimax", "minimax"},
}

// Family is the family that a model's name speaks of; "" if none is known.
func Family(model string) string {
	m := strings.ToLower(model)
	for _, f := range families {
		for part := range strings.SplitSeq(f.parts, "|") {
			at := strings.Index(m, part)
			// A short part begins a word: "o1-mini", not "foo1-mini".
			if at == 0 || at > 0 && (len(part) > 4 || !isWord(m[at-1])) {
				return f.family
			}
		}
	}
	return ""
}

func isWord(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// SelfPreference warns of a judge that judges its own kind: models prefer what is
// like their own answers. "" is no warning, and not proof of distance: the names
// may say nothing.
func SelfPreference(judge string, variants ...string) string {
	own := Family(judge)
	for _, v := range variants {
		switch {
		case v == "" || judge == "":
		case strings.EqualFold(v, judge):
			return fmt.Sprintf("the judge %s is one of those that it judges; it may prefer its own answers", judge)
		case own != "" && Family(v) == own:
			return fmt.Sprintf("the judge %s and %s are of one family (%s); it may prefer answers like its own", judge, v, own)
		}
	}
	return ""
}

// confession is how a model says what it is. The name is all of its second group.
var confession = regexp.MustCompile(`(?i)(\b(?:i am|i['’]m|my name is|call me|as|here is)\s+(?:an?\s+)?(?:ai\s+|large\s+|helpful\s+)*(?:language\s+)?(?:model|assistant|chatbot)?,?\s*(?:named|called|known as)?\s*)((?:chatgpt|gpt-?[0-9][\w.\-]*|claude|gemini|gemma|llama|qwen|mistral|mixtral|deepseek|phi|grok|kimi|chatglm|ernie|command r)(?:[\s\-][0-9][\w.\-]*)?)\b`)

// maker is how a model says whose it is.
var maker = regexp.MustCompile(`(?i)(\b(?:made|created|trained|developed|built|designed)\s+by\s+)((?:openai|anthropic|google(?:\s+deepmind)?|meta(?:\s+ai)?|alibaba(?:\s+cloud)?|mistral(?:\s+ai)?|deepseek|microsoft|xai|moonshot(?:\s+ai)?|zhipu(?:\s+ai)?|cohere|nvidia)\b)`)

// scrub replaces what gives a variant away.
func (j *Judge) scrub(answer string) (clean string, changed bool) {
	clean = confession.ReplaceAllString(answer, "${1}[NAME]")
	clean = maker.ReplaceAllString(clean, "${1}[MAKER]")
	for _, name := range j.Scrub {
		if len(name) > 3 {
			clean = replaceFold(clean, name, "[NAME]")
		}
	}
	return clean, clean != answer
}

// replaceFold replaces ASCII text whatever the case of its letters.
func replaceFold(s, old, with string) string {
	return regexp.MustCompile(`(?i)`+regexp.QuoteMeta(old)).ReplaceAllLiteralString(s, with)
}
