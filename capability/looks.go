package capability

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
)

// window is the context that /v1/models tells of the model, in tokens; 0 if it tells
// none.
func (p *probe) window(ctx context.Context) int64 {
	r, err := p.send(ctx, p.api+"/models", nil)
	if err != nil || !r.ok() {
		return 0
	}
	var list struct {
		Data []struct {
			ID   string `json:"id"`
			Max  int64  `json:"max_model_len"` // vLLM
			Meta struct {
				Context int64 `json:"n_ctx"` // of one slot, llama.cpp
				Trained int64 `json:"n_ctx_train"`
			} `json:"meta"`
		} `json:"data"`
	}
	if json.Unmarshal(r.body, &list) != nil {
		return 0
	}
	for _, m := range list.Data {
		if m.ID == p.report.Served || m.ID == p.end.Model || len(list.Data) == 1 {
			return max(m.Max, m.Meta.Context)
		}
	}
	return 0
}

// choices asks for three answers at once.
func (p *probe) choices(ctx context.Context) ([]check.Proof, error) {
	a, r, err := p.chat(ctx, "Name a city.", map[string]any{"n": 3, "temperature": 1, "max_tokens": 8})
	if err != nil {
		return nil, err
	}
	if !r.ok() {
		return []check.Proof{failed(r)}, nil
	}
	seen := make(map[int]bool)
	for _, c := range a.Choices {
		seen[c.Index] = true
	}
	if len(a.Choices) == 3 && len(seen) == 3 {
		return []check.Proof{proven(3, "three answers were asked for and came")}, nil
	}
	return []check.Proof{absent("three answers were asked for, and %d came with %d indexes", len(a.Choices), len(seen))}, nil
}

// logprobs asks for log-probabilities with 20, 5 and 1 alternatives, and for the same
// at two temperatures.
func (p *probe) logprobs(ctx context.Context) ([]check.Proof, error) {
	const question = "Name the capital of France."
	var got check.Proof
	for _, n := range []int{20, 5, 1} {
		a, r, err := p.chat(ctx, question, map[string]any{"logprobs": true, "top_logprobs": n, "max_tokens": 8})
		if err != nil {
			return nil, err
		}
		if !r.ok() {
			got = failed(r)
			continue
		}
		if len(a.Choices[0].Logprobs.Content) == 0 {
			got = absent("%d alternatives were asked for, and no log-probabilities came", n)
			continue
		}
		got = sound(a, n) // what is wrong with 20 is not made right by asking for 1
		break
	}
	if got.Standing != check.Proven {
		return []check.Proof{got, unknown("there are no log-probabilities to compare")}, nil
	}
	raw, err := p.raw(ctx, question, min(got.Level, 5))
	return []check.Proof{got, raw}, err
}

// sound looks at log-probabilities: numbers at or below 0, in falling order, the
// token that came among them or beside them, and together no more than 1.
func sound(a *answer, asked int) check.Proof {
	tokens := a.Choices[0].Logprobs.Content
	level := math.MaxInt
	for _, t := range tokens {
		if t.Logprob == nil {
			return absent("the log-probability of a token is null")
		}
		sum, values := 0.0, 0.0
		chosen := false
		for i, o := range t.Top {
			if o.Logprob == nil {
				return absent("the log-probability of an alternative is null")
			}
			if i > 0 && *o.Logprob > *t.Top[i-1].Logprob+1e-6 {
				return absent("the alternatives do not come in falling order")
			}
			if *o.Logprob > 1e-6 {
				return absent("numbers above 0 are no log-probabilities: probabilities or logits (the first is %.3g)", *o.Logprob)
			}
			sum += math.Exp(*o.Logprob)
			values += *o.Logprob
			chosen = chosen || o.Token == t.Token && math.Abs(*o.Logprob-*t.Logprob) < 1e-3
		}
		switch {
		case *t.Logprob > 1e-6:
			return absent("numbers above 0 are no log-probabilities: probabilities or logits (the first is %.3g)", *t.Logprob)
		case sum > 1+1e-3:
			return absent("the probabilities of %d alternatives add up to %.3f", len(t.Top), sum)
		case len(t.Top) > 1 && values == 0:
			return absent("all log-probabilities are 0")
		case len(t.Top) > 0 && !chosen && *t.Logprob > *t.Top[len(t.Top)-1].Logprob+1e-3:
			return absent("the token that came is not among the alternatives, although it is likelier than the last of them")
		}
		level = min(level, len(t.Top))
	}
	if level == 0 {
		return proven(0, "%d tokens, without alternatives", len(tokens))
	}
	return proven(min(level, asked), "%d tokens with %d alternatives each, in order, at most 1 in sum", len(tokens), min(level, asked))
}

// raw tells log-probabilities from before sampling from those after it: temperature
// changes only the latter.
func (p *probe) raw(ctx context.Context, question string, n int) (check.Proof, error) {
	var at [2]map[string]float64
	for i, temperature := range []float64{.01, 2} {
		a, r, err := p.chat(ctx, question, map[string]any{"logprobs": true, "top_logprobs": max(n, 1), "max_tokens": 1, "temperature": temperature})
		if err != nil {
			return check.Proof{}, err
		}
		if !r.ok() || len(a.Choices[0].Logprobs.Content) == 0 {
			return unknown("log-probabilities did not come at a temperature of %g", temperature), nil
		}
		at[i] = make(map[string]float64)
		for _, o := range a.Choices[0].Logprobs.Content[0].Top {
			if o.Logprob != nil {
				at[i][o.Token] = *o.Logprob
			}
		}
	}
	common, most := 0, 0.0
	for token, x := range at[0] {
		if y, ok := at[1][token]; ok {
			common++
			most = max(most, math.Abs(x-y))
		}
	}
	switch {
	case common == 0:
		return unknown("at two temperatures no alternative was the same"), nil
	case most > .05:
		return absent("temperature changes them by up to %.2f: they are from after sampling", most), nil
	case common == 1 && n < 2:
		return unknown("one alternative is too few to tell"), nil
	}
	return proven(0, "at temperatures of 0.01 and 2 the %d common alternatives differ by at most %.3f", common, most), nil
}

// scored is a text whose tokens an endpoint is to score.
const scored = "The harbour was quiet that morning. Two men carried crates of oranges up the stone steps, and a dog watched them from the shade of a cart. Nobody spoke of the storm, although everyone had heard the bells in the night and knew what they meant for the boats that were still at sea."

// promptLogprobs asks for the log-probabilities of a text of its own, cold and warm, in
// the two ways that servers have.
func (p *probe) promptLogprobs(ctx context.Context) ([]check.Proof, error) {
	ways := []struct {
		name string
		more map[string]any
		read func(*answer) []float64
	}{
		{"echo", map[string]any{"echo": true, "logprobs": 1, "max_tokens": 1}, echoed},
		{"prompt_logprobs", map[string]any{"prompt_logprobs": 1, "max_tokens": 1}, func(a *answer) []float64 { return ofPrompt(a.Choices[0].PromptLogprobs) }},
	}
	var last check.Proof
	for _, w := range ways {
		var runs [][]float64
		for i := range 3 { // cold, warm, and under another salt
			body := map[string]any{"prompt": scored, "temperature": 0}
			if p.end.Model != "" {
				body["model"] = p.end.Model
			}
			for k, v := range w.more {
				body[k] = v
			}
			if i == 2 {
				body["cache_salt"] = "assay-probe" // servers that do not know it ignore it
			}
			r, err := p.send(ctx, p.api+"/completions", body)
			if err != nil {
				return nil, err
			}
			if !r.ok() {
				last = failed(r)
				break
			}
			a := new(answer)
			if json.Unmarshal(r.body, a) != nil || len(a.Choices) == 0 {
				last = unknown("the answer has not the shape of OpenAI's completions API")
				break
			}
			runs = append(runs, w.read(a))
		}
		if len(runs) < 3 {
			continue
		}
		if last = agreed(w.name, runs); len(runs[0]) > 0 {
			break // what it gives is what it has: another spelling makes it no truer
		}
	}
	return []check.Proof{last}, nil
}

// echoed reads the prompt's part of token_logprobs; the first is null.
func echoed(a *answer) (out []float64) {
	length := 0
	for i, x := range a.Choices[0].Logprobs.TokenLogprobs {
		if i < len(a.Choices[0].Logprobs.Tokens) {
			if length += len(a.Choices[0].Logprobs.Tokens[i]); length > len(scored)+1 {
				break
			}
		}
		if x != nil {
			out = append(out, *x)
		}
	}
	return out
}

// ofPrompt reads vLLM's list, whose first entry is null; of each token the actual one
// is the only entry, or the one that is not the likeliest.
func ofPrompt(list []map[string]struct {
	Logprob float64 `json:"logprob"`
},
) (out []float64) {
	for _, m := range list {
		least, ok := 0.0, false
		for _, e := range m {
			if !ok || e.Logprob < least {
				least, ok = e.Logprob, true
			}
		}
		if ok {
			out = append(out, least)
		}
	}
	return out
}

// agreed holds three scorings of one text against each other.
func agreed(how string, runs [][]float64) check.Proof {
	n := len(runs[0])
	if n < 20 {
		return absent("by %s, %d tokens of a text of about 60 have log-probabilities", how, n)
	}
	var sums [3]float64
	for i, run := range runs {
		if len(run) != n {
			return absent("by %s, one text has %d tokens and then %d", how, n, len(run))
		}
		for _, x := range run {
			if x > 1e-6 || math.IsNaN(x) {
				return absent("by %s, numbers above 0 are no log-probabilities (%.3g)", how, x)
			}
			sums[i] += x
		}
	}
	if slices.Max(sums[:]) == 0 {
		return absent("by %s, all log-probabilities are 0", how)
	}
	for i, name := range []string{"cold", "warm", "with another salt"} {
		if off := math.Abs(sums[i]-sums[0]) / math.Abs(sums[0]); off > .01 {
			return absent("by %s, a text scores %.2f at first and %.2f %s: a cache gives stale rows", how, sums[0], sums[i], name)
		}
	}
	return proven(n, "by %s, %d tokens of a text, the same cold, warm and with another salt", how, n)
}

// tokenizer asks for the tokens of a text, and bans the first token of an answer by
// its id.
func (p *probe) tokenizer(ctx context.Context) ([]check.Proof, error) {
	ask := func(text string) ([]int64, reply, error) {
		body := map[string]any{"content": text, "prompt": text, "add_special_tokens": false}
		if p.end.Model != "" {
			body["model"] = p.end.Model
		}
		r, err := p.send(ctx, p.root+"/tokenize", body)
		if err != nil || !r.ok() {
			return nil, r, err
		}
		var t struct{ Tokens []int64 }
		if json.Unmarshal(r.body, &t) != nil {
			return nil, r, nil
		}
		return t.Tokens, r, nil
	}
	short, r, err := ask("oranges")
	if err != nil {
		return nil, err
	}
	if !r.ok() {
		return []check.Proof{failed(r), unknown("a token cannot be banned by its id without a tokenizer")}, nil
	}
	long, _, err := ask("oranges oranges oranges oranges")
	if err != nil {
		return nil, err
	}
	if len(short) == 0 || len(long) <= len(short) {
		return []check.Proof{absent("one word has %d tokens and four have %d", len(short), len(long)), unknown("a token cannot be banned by its id without a tokenizer")}, nil
	}
	tokenizes := proven(0, "/tokenize gives %d tokens of one word and %d of four", len(short), len(long))

	const question = "Say the word yes."
	before, r, err := p.chat(ctx, question, map[string]any{"max_tokens": 1})
	if err != nil {
		return nil, err
	}
	word := strings.TrimSpace(before.text())
	if !r.ok() || word == "" {
		return []check.Proof{tokenizes, unknown("there was no first token to ban")}, nil
	}
	bans := make(map[string]any)
	for _, text := range []string{word, " " + word, before.text()} {
		ids, _, err := ask(text)
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			bans[fmt.Sprint(ids[len(ids)-1])] = -100
		}
	}
	after, r, err := p.chat(ctx, question, map[string]any{"max_tokens": 1, "logit_bias": bans})
	if err != nil {
		return nil, err
	}
	switch {
	case !r.ok():
		return []check.Proof{tokenizes, failed(r)}, nil
	case strings.TrimSpace(after.text()) == word:
		return []check.Proof{tokenizes, absent("%q was banned, and came", word)}, nil
	}
	return []check.Proof{tokenizes, proven(0, "%q was banned, and %q came instead", word, after.text())}, nil
}

// schema asks for a form that nothing in the question suggests.
func (p *probe) schema(ctx context.Context) ([]check.Proof, error) {
	const key, value = "zebra_71", "violet"
	form := map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{key},
		"properties": map[string]any{key: map[string]any{"type": "string", "enum": []string{value}}},
	}
	a, r, err := p.chat(ctx, "Tell me about the sea.", map[string]any{
		"max_tokens": 64, "response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "strict": true, "schema": form}},
	})
	if err != nil {
		return nil, err
	}
	if !r.ok() {
		return []check.Proof{failed(r)}, nil
	}
	var got map[string]string
	if json.Unmarshal([]byte(a.text()), &got) == nil && len(got) == 1 && got[key] == value {
		return []check.Proof{proven(0, "an answer had a form that nothing but the schema asked for")}, nil
	}
	return []check.Proof{absent("a JSON schema was taken, and the answer does not obey it")}, nil
}

// tools asks for a call of a function.
func (p *probe) tools(ctx context.Context) ([]check.Proof, error) {
	a, r, err := p.chat(ctx, "What is the time in Lisbon?", map[string]any{
		"max_tokens":  64,
		"tool_choice": map[string]any{"type": "function", "function": map[string]any{"name": "clock"}},
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{
			"name": "clock", "description": "Tells the time in a city.",
			"parameters": map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}},
		}}},
	})
	if err != nil {
		return nil, err
	}
	if !r.ok() {
		return []check.Proof{failed(r)}, nil
	}
	if len(a.Choices[0].Message.ToolCalls) > 0 {
		return []check.Proof{proven(0, "a function was to be called, and was")}, nil
	}
	return []check.Proof{absent("a function was to be called, and text came")}, nil
}

// overlong sends a prompt of more tokens than the context window has.
func (p *probe) overlong(ctx context.Context) ([]check.Proof, error) {
	w := p.report.Window
	switch {
	case w == 0:
		return []check.Proof{unknown("/v1/models does not tell the context window")}, nil
	case p.opts.Overlong < 0 || w > p.opts.Overlong:
		return []check.Proof{unknown("a window of %d tokens is too dear to fill; the limit is %d", w, p.opts.Overlong)}, nil
	}
	// Words of one token each, near enough: two lengths tell how many tokens a word has.
	words := func(n int64) string { return strings.Repeat(" cat", int(n)) }
	var used [2]int64
	for i, n := range []int64{40, 80} {
		a, r, err := p.chat(ctx, words(n), map[string]any{"max_tokens": 1})
		if err != nil {
			return nil, err
		}
		if !r.ok() || a.Usage.Prompt == 0 {
			return []check.Proof{unknown("the server does not count the tokens of prompts")}, nil
		}
		used[i] = a.Usage.Prompt
	}
	perWord := float64(used[1]-used[0]) / 40
	if perWord < .5 {
		return []check.Proof{absent("a prompt of 80 words has %d tokens and one of 40 has %d: it is cut, or not counted", used[1], used[0])}, nil
	}
	n := int64(1.05*float64(w)/perWord) + 1
	a, r, err := p.chat(ctx, words(n), map[string]any{"max_tokens": 1})
	if err != nil {
		return nil, err
	}
	sent := float64(used[0]) + perWord*float64(n-40)
	switch {
	case r.refused():
		return []check.Proof{proven(int(w), "a prompt of about %.0f tokens was refused: %s", sent, r.why())}, nil
	case !r.ok():
		return []check.Proof{unknown("%s", r.why())}, nil
	case float64(a.Usage.Prompt) < .97*sent:
		return []check.Proof{absent("a prompt of about %.0f tokens was cut to %d without a word: answers to long prompts are answers to other prompts", sent, a.Usage.Prompt)}, nil
	}
	return []check.Proof{unknown("a prompt of %d tokens was taken, although the window is said to be %d", a.Usage.Prompt, w)}, nil
}
