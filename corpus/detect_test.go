package corpus

import (
	"strings"
	"testing"
)

// Messages stand in our sets and in those of OpenAI, so the first row alone does
// not tell which it is.
func TestReadGuessesByTheFirstRows(t *testing.T) {
	const (
		ask    = `{"messages": [{"role": "user", "content": "Hi"}]}`
		named  = `{"id": "a", "messages": [{"role": "user", "content": "Hi"}]}`
		told   = `{"id": "b", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}`
		prompt = `{"id": "c", "prompt": "Hi"}`
		logged = `{"id": "d", "model": "m", "messages": [{"role": "user", "content": "Hi"}]}`
	)
	asks := func(n int) string { return strings.TrimSuffix(strings.Repeat(ask+"\n", n), "\n") }
	for name, tt := range map[string]struct{ in, want string }{
		"a prompt after messages":        {named + "\n" + prompt, "assay"},
		"a prompt, messages have no id":  {ask + "\n" + prompt, "assay"},
		"expect after messages":          {named + "\n" + `{"messages": [{"role": "user", "content": "Hi"}], "expect": "Ho"}`, "assay"},
		"ids and questions":              {named, "assay"},
		"ids and answers":                {named + "\n" + told, "openai"},
		"answers first":                  {told + "\n" + named, "openai"},
		"no ids":                         {ask + "\n" + ask, "openai"},
		"a request log":                  {logged, "openai"},
		"a broken row after messages":    {named + "\n{", ""},
		"the last row that is looked at": {asks(19) + "\n" + prompt, "assay"},
		"a list":                         {"[" + named + ",\n" + prompt + "]", "assay"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Read("x.jsonl", strings.NewReader(tt.in), "")
			switch {
			case tt.want == "" && err == nil:
				t.Errorf("Read gave %d cases, want an error", len(set.Cases))
			case tt.want == "":
			case err != nil:
				t.Error(err)
			case set.Format != tt.want || len(set.Cases) != strings.Count(tt.in, "Hi"):
				t.Errorf("Read took the format %s and gave %d cases, want %s and %d", set.Format, len(set.Cases), tt.want, strings.Count(tt.in, "Hi"))
			}
		})
	}
}

func TestReadSaysWhatItGuessed(t *testing.T) {
	ask := `{"messages": [{"role": "user", "content": "Hi"}]}` + "\n"
	for name, tt := range map[string]struct{ in, format, want string }{
		"beyond the rows looked at": {
			strings.Repeat(ask, 20) + `{"prompt": "Hi"}`, "",
			"x.jsonl:21: no messages (read as openai, by the look of the first rows)\n  hint: rows are {\"messages\": [{\"role\": \"user\", \"content\": …}]}; or say which format it is: format: assay",
		},
		"no hint of its own":  {`{"messages": [], "labels": {}}`, "", "x.jsonl:1: the list of messages is empty (read as assay, by the look of the first rows)\n  hint: say which format it is: format: openai"},
		"wrong in any format": {ask + `{"messages": 5}`, "", "x.jsonl:2: column 14: want a list, got a number"},
		"told":                {`{"messages": [], "labels": {}}`, "assay", "x.jsonl:1: the list of messages is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Read("x.jsonl", strings.NewReader(tt.in), tt.format)
			if err == nil {
				t.Fatalf("Read gave %d cases, want an error", len(set.Cases))
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
		})
	}
}
