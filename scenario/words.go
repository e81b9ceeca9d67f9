package scenario

// words are what generated dialogues say, by language.
var words = map[string]language{"en": english, "zh": chinese}

// choices makes the values of an enum from words; forms of one value stand together,
// its name first.
func choices(values ...[]string) (out []Choice) {
	for _, v := range values {
		out = append(out, Choice(v))
	}
	return out
}
