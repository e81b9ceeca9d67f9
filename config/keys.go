package config

import "strings"

// Keys returns the top keys of a YAML document, to tell what kind of document it
// is before it is decoded; nil when it cannot be read, which Decode then explains.
func Keys(data []byte) []string {
	d := &document{data: data, limits: Limits{}.orDefault()}
	if !d.parse() || !d.root.IsMapping() {
		return nil
	}
	var keys []string
	for _, p := range d.root.Pairs() {
		keys = append(keys, p.Key)
	}
	return keys
}

// Purpose is what a document says of itself: the first paragraph of the comments that
// it begins with, on one line; "" if it begins with none.
func Purpose(data []byte) string {
	var words []string
	for line := range strings.Lines(string(data)) {
		text, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !comment || strings.TrimSpace(text) == "" {
			break
		}
		words = append(words, strings.TrimSpace(text))
	}
	return strings.Join(words, " ")
}
