package corpus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func read(t *testing.T, text, format string) *Set {
	t.Helper()
	set, err := Read("x.jsonl", strings.NewReader(text), format)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func user(text string) []Message { return []Message{{Role: "user", Content: text}} }

func TestReadFormats(t *testing.T) {
	tests := []struct {
		name, in, format string
		want             []Case
	}{
		{
			"assay prompt", `{"id": "a", "prompt": "Hi?", "max_tokens": 7, "expect": "Hello.", "labels": {"lang": "en"}}`, "assay",
			[]Case{{ID: "a", Prompt: "Hi?", MaxTokens: 7, Expect: "Hello.", Labels: map[string]string{"lang": "en"}}},
		},
		{
			"assay messages", `{"messages": [{"role": "system", "content": ""}, {"role": "user", "content": "Hi"}], "labels": {}}`, "assay",
			[]Case{{ID: "row-1", Messages: []Message{{"system", ""}, {"user", "Hi"}}}},
		},
		{
			"numbers as ids, blank lines and a last line without newline", "\n {\"id\": 7, \"prompt\": \"a\"} \n\n\t\n{\"id\": -8, \"prompt\": \"b\"}", "assay",
			[]Case{{ID: "7", Prompt: "a"}, {ID: "-8", Prompt: "b"}},
		},
		{
			"CRLF and byte order mark", "\ufeff{\"prompt\": \"a\"}\r\n{\"prompt\": \"b\\r\\n\"}\r\n", "assay",
			[]Case{{ID: "row-1", Prompt: "a"}, {ID: "row-2", Prompt: "b\r\n"}},
		},
		{
			"escapes", `{"prompt": "\"\\\/\b\f\n\r\t\u00E9\ud83d\uDE00é😀\u0000\u2028"}`, "assay",
			[]Case{{ID: "row-1", Prompt: "\"\\/\b\f\n\r\té😀é😀\x00\u2028"}},
		},
		{
			"list over several lines", "[\n {\"prompt\": \"}]{[\"},\n {\"prompt\":\n \"b\"}\n]\n", "assay",
			[]Case{{ID: "row-1", Prompt: "}]{["}, {ID: "row-2", Prompt: "b"}},
		},
		{
			"sharegpt", `{"id": "s_0", "conversations": [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}, {"from": "human", "value": "More"}], "model": "x"}`, "sharegpt",
			[]Case{{ID: "s_0", Messages: []Message{{"system", "Be brief."}, {"user", "Hi"}}, Expect: "Ho"}},
		},
		{
			"sharegpt that begins with an answer", `[{"conversations": [{"from": "gpt", "value": "rest"}, {"from": "user", "value": "Hi"}]}]`, "sharegpt",
			[]Case{{ID: "row-1", Messages: user("Hi")}},
		},
		{
			"sharegpt does not take a later answer", `{"conversations": [{"from": "human", "value": "Hi"}, {"from": "system", "value": "x"}, {"from": "gpt", "value": "Ho"}]}`, "sharegpt",
			[]Case{{ID: "row-1", Messages: user("Hi")}},
		},
		{
			"questions with answers", `{"question": "2+2?", "answer": "Two and two. #### 4\n"}` + "\n" + `{"question": "Capital?", "answer": "Paris", "id": "x", "more": [1]}`, "qa",
			[]Case{{ID: "row-1", Messages: user("2+2?"), Expect: "4"}, {ID: "x", Messages: user("Capital?"), Expect: "Paris"}},
		},
		{
			"ifeval", `{"key": 1000, "prompt": "Be short.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}`, "ifeval",
			[]Case{{ID: "1000", Messages: user("Be short."), Expect: `{"instruction_id_list":["punctuation:no_comma"],"kwargs":[{}]}`}},
		},
		{
			"openai fine-tuning", `{"messages": [{"role": "developer", "content": "d"}, {"role": "user", "content": "Hi", "name": "ann"}, {"role": "assistant", "content": "Ho", "weight": 1, "tool_calls": null}]}`, "openai",
			[]Case{{ID: "row-1", Messages: []Message{{"developer", "d"}, {"user", "Hi"}}, Expect: "Ho"}},
		},
		{
			"openai request log", `{"model": "m", "temperature": 0.5, "max_tokens": null, "max_completion_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]}`, "openai",
			[]Case{{ID: "row-1", Messages: user("ab"), MaxTokens: 9}},
		},
		{
			"openai batch", `{"custom_id": "q1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}}`, "openai",
			[]Case{{ID: "q1", Messages: user("Hi"), MaxTokens: 5}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, format := range []string{tt.format, ""} {
				set := read(t, tt.in, format)
				if d := cmp.Diff(tt.want, set.Cases); d != "" {
					t.Errorf("Read(%q) differs (-want +got):\n%s", format, d)
				}
				if set.Format != tt.format {
					t.Errorf("Read(%q) took the format %q, want %q", format, set.Format, tt.format)
				}
			}
		})
	}
}

func TestReadFaults(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	tests := []struct{ name, in, format, want string }{
		{"empty file", "", "", "x.jsonl: no cases: the file is empty\n  hint: write one JSON object a line, for example {\"prompt\": \"What is a prefix cache?\"}"},
		{"blank file", "\ufeff \n\r\n", "", "x.jsonl: no cases: the file is empty\n  hint: write one JSON object a line, for example {\"prompt\": \"What is a prefix cache?\"}"},
		{"empty list", "[ ]", "assay", "x.jsonl: no cases: the file is empty\n  hint: write one JSON object a line, for example {\"prompt\": \"What is a prefix cache?\"}"},
		{"unknown format", "{}", "alpaca", "x.jsonl: unknown format \"alpaca\"\n  hint: formats are assay, sharegpt, openai, qa, ifeval, advbench, harmbench, xstest, azure, burstgpt, mooncake, servegen"},
		{"gzip", "\x1f\x8b\x08", "", "x.jsonl:1: the file is compressed with gzip\n  hint: decompress it first: gunzip -k"},
		{"zstd", "\x28\xb5\x2f\xfd", "", "x.jsonl:1: the file is compressed with zstd\n  hint: decompress it first: zstd -d"},
		{"UTF-16", "\xff\xfe{\x00", "", "x.jsonl:1: the file is UTF-16\n  hint: convert it first: iconv -f utf-16 -t utf-8"},
		{"parquet", "PAR1", "", "x.jsonl:1: the file is in Parquet format\n  hint: export it as JSON Lines first"},
		{"unknown rows", `{"ask": "2+2?", "tell": "4"}`, "", "x.jsonl:1: unknown kind of row: its keys are \"ask\", \"tell\"\n  hint: a row needs \"prompt\" or \"messages\" (assay), \"conversations\" (sharegpt), \"messages\" (openai), \"question\" and \"answer\" (qa) or \"instruction_id_list\" (ifeval)"},
		{"no object", `"prompt"`, "", "x.jsonl:1: column 1: want an object, got a string"},
		{"CSV", "id,prompt\n1,hello\n", "", "x.jsonl:1: column 1: want an object, got 'i'"},
		{"second line", "{\"prompt\": \"a\"}\n{\"prompt\": 5}\n", "", "x.jsonl:2: column 12: want a string, got a number"},
		{"null prompt", `{"prompt": null}`, "assay", "x.jsonl:1: column 12: want a string, got null"},
		{"empty prompt", `{"prompt": " \n"}`, "assay", "x.jsonl:1: the prompt is empty"},
		{"misspelt key", `{"prompt": "a", "maxTokens": 5}`, "assay", "x.jsonl:1: unknown key \"maxTokens\"\n  hint: keys are id, prompt, messages, max_tokens, expect, labels; did you mean \"max_tokens\"?"},
		{"key in another case", `{"Prompt": "a"}`, "assay", "x.jsonl:1: unknown key \"Prompt\"\n  hint: keys are id, prompt, messages, max_tokens, expect, labels; did you mean \"prompt\"?"},
		{"foreign key", `{"prompt": "a", "quux": 1}`, "assay", "x.jsonl:1: unknown key \"quux\"\n  hint: keys are id, prompt, messages, max_tokens, expect, labels"},
		{"both", `{"prompt": "a", "messages": [{"role": "user", "content": "b"}]}`, "assay", "x.jsonl:1: a case needs either a prompt or messages\n  hint: give exactly one of them"},
		{"neither", `{"id": "a"}`, "assay", "x.jsonl:1: a case needs either a prompt or messages\n  hint: give exactly one of them"},
		{"key twice", `{"prompt": "a", "prompt": "b"}`, "assay", "x.jsonl:1: column 17: key \"prompt\" twice"},
		{"id twice", "{\"id\": \"a\", \"prompt\": \"a\"}\n{\"id\": \"a\", \"prompt\": \"b\"}", "assay", "x.jsonl:2: id \"a\" is already used on line 1\n  hint: give each case an id of its own, or leave all ids out"},
		{"id that cannot be printed", `{"id": "a\u001b[31m", "prompt": "a"}`, "assay", "x.jsonl:1: column 8: the id \"a\\x1b[31m\" has characters that cannot be printed"},
		{"long id", `{"id": "` + strings.Repeat("é", 129) + `", "prompt": "a"}`, "assay", "x.jsonl:1: column 8: the id is longer than 256 bytes"},
		{"fractional id", `{"id": 1.5, "prompt": "a"}`, "assay", "x.jsonl:1: column 8: the id \"1.5\" is not a whole number"},
		{"tokens as text", `{"prompt": "a", "max_tokens": "5"}`, "assay", "x.jsonl:1: column 31: want a number of tokens, got a string"},
		{"no tokens", `{"prompt": "a", "max_tokens": 0}`, "assay", "x.jsonl:1: column 31: want a whole number of tokens from 1 to 1073741824, got 0"},
		{"too many tokens", `{"prompt": "a", "max_tokens": 1e400}`, "assay", "x.jsonl:1: column 31: want a whole number of tokens from 1 to 1073741824, got 1e400"},
		{"expression", `{"prompt": "a", "max_tokens": __import__('os').system('x')}`, "assay", "x.jsonl:1: column 31: want a number of tokens, got '_'"},
		{"invalid UTF-8", "{\"prompt\": \"a\xe9\"}", "assay", "x.jsonl:1: column 14: byte 0xe9 is not UTF-8\n  hint: convert the file first, for example: iconv -f latin1 -t utf-8"},
		{"half a surrogate pair", `{"prompt": "a\ud83d b"}`, "assay", "x.jsonl:1: column 14: broken \\u escape (half of a surrogate pair, or not four hex digits)"},
		{"low surrogate first", `{"prompt": "\ude00\ud83d"}`, "assay", "x.jsonl:1: column 13: broken \\u escape (half of a surrogate pair, or not four hex digits)"},
		{"unknown escape", `{"prompt": "\x41"}`, "assay", "x.jsonl:1: column 13: unknown escape: backslash and 'x'"},
		{"NUL", "{\"prompt\": \"a\x00b\"}", "assay", "x.jsonl:1: column 14: control character 0x00 inside a string"},
		{"NUL outside", "\x00\x00", "assay", "x.jsonl:1: column 1: want an object, got control character 0x00"},
		{"cut off", `{"prompt": "abc`, "assay", "x.jsonl:1: column 12: string without an end"},
		{"cut off after a backslash", `{"prompt": "abc\`, "assay", "x.jsonl:1: column 16: string without an end"},
		{"no value", `{"prompt": }`, "assay", "x.jsonl:1: column 12: want a string, got '}'"},
		{"comma at the end", `{"prompt": "a",}`, "assay", "x.jsonl:1: column 16: want a key in quotes, got '}'"},
		{"trailing bytes", `{"prompt": "a"} {"prompt": "b"}`, "assay", "x.jsonl:1: column 17: '{' after the end of the object"},
		{"Python", `{'prompt': 'a'}`, "assay", `x.jsonl:1: column 2: want a key in quotes, got '\''`},
		{"leading zero", `{"conversations": [], "x": 01}`, "sharegpt", "x.jsonl:1: column 28: not a number"},
		{"NaN", `{"conversations": [], "x": NaN}`, "sharegpt", "x.jsonl:1: column 28: want a value, got 'N'"},
		{"deep nesting", `{"conversations": [], "x": ` + deep + `}`, "sharegpt", "x.jsonl:1: column 91: nested deeper than 64 levels"},
		{"labels as list", `{"prompt": "a", "labels": ["x"]}`, "assay", "x.jsonl:1: column 27: want an object, got a list"},
		{"label that is a number", `{"prompt": "a", "labels": {"x": 1}}`, "assay", "x.jsonl:1: column 33: want a string, got a number"},
		{"label with a newline", `{"prompt": "a", "labels": {"x": "a\nb"}}`, "assay", "x.jsonl:1: column 33: the label \"x\" is empty, longer than 128 bytes or not printable"},
		{"no messages", `{"messages": []}`, "assay", "x.jsonl:1: the list of messages is empty"},
		{"answer last", `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`, "assay", "x.jsonl:1: the last message is of role \"assistant\"\n  hint: end with the user's message; the right answer goes into \"expect\""},
		{"tool role", `{"messages": [{"role": "tool", "content": "a"}]}`, "openai", "x.jsonl:1: message 1 is of role \"tool\"\n  hint: roles are system, developer, user, assistant"},
		{"tool calls", `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": [1]}]}`, "openai", "x.jsonl:1: message 2 has the key \"tool_calls\"\n  hint: only text is supported: role and content"},
		{"image", `{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}`, "openai", "x.jsonl:1: a content part is of type \"image_url\"\n  hint: only text is supported"},
		{"no content", `{"messages": [{"role": "user"}]}`, "openai", "x.jsonl:1: the last message is empty"},
		{"sharegpt without conversations", `{"id": "a"}`, "sharegpt", "x.jsonl:1: no conversations\n  hint: ShareGPT rows are {\"id\": …, \"conversations\": [{\"from\": \"human\", \"value\": …}, …]}"},
		{"sharegpt without a question", `{"conversations": [{"from": "gpt", "value": "a"}]}`, "sharegpt", "x.jsonl:1: the conversation has no human turn"},
		{"sharegpt with tools", `{"conversations": [{"from": "function_call", "value": "a"}]}`, "sharegpt", "x.jsonl:1: turn 1 is from \"function_call\"\n  hint: turns are from human, gpt or system"},
		{"list with a scalar", "[\n1]", "assay", "x.jsonl:2: want an object as element of the list, got '1'"},
		{"list without end", "[\n{\"prompt\": \"a\"}", "assay", "x.jsonl:2: the list has no end\n  hint: the file is cut off: fetch it again"},
		{"element without end", "[\n{\"prompt\": \"a\"", "assay", "x.jsonl:2: the element has no end\n  hint: the file is cut off: fetch it again"},
		{"list without comma", "[{\"prompt\": \"a\"}\n {\"prompt\": \"b\"}]", "assay", "x.jsonl:2: want ',' or ']' after an element, got '{'"},
		{"after the list", "[{\"prompt\": \"a\"}]\nx", "assay", "x.jsonl:2: 'x' after the end of the list"},
		{"fault inside an element of several lines", "[{\"prompt\":\n \"a\",\n  5}]", "assay", "x.jsonl:3: column 3: want a key in quotes, got a number"},
		{"many keys, one twice", `{"conversations": [], ` + strings.Repeat(" ", 3) + manyKeys(40) + `, "k39": 1}`, "sharegpt", "x.jsonl:1: column 456: key \"k39\" twice"},
		{"too many labels", `{"prompt": "a", "labels": {` + manyKeys(17) + `}}`, "assay", "x.jsonl:1: column 201: more than 16 labels"},
		{"long foreign key", `{"prompt": "a", "` + strings.Repeat("é", 40) + `": 1}`, "assay", "x.jsonl:1: unknown key \"éééééééééééééééééééé\"…\n  hint: keys are id, prompt, messages, max_tokens, expect, labels"},
		{"too many turns", `{"conversations": [` + strings.Repeat(`{"from":"gpt","value":""},`, 10_001) + `{}]}`, "sharegpt", "x.jsonl:1: more than 10000 turns"},
		{"too many messages", `{"messages": [` + strings.Repeat(`{"role":"user","content":""},`, 10_001) + `{}]}`, "openai", "x.jsonl:1: more than 10000 messages"},
		{"openai without messages", `{"model": "m"}`, "openai", "x.jsonl:1: no messages\n  hint: rows are {\"messages\": [{\"role\": \"user\", \"content\": …}]}"},
		{"messages that are no list", `{"messages": {}}`, "openai", "x.jsonl:1: column 14: want a list, got an object"},
		{"a message that is no object", `{"messages": [7]}`, "openai", "x.jsonl:1: column 15: want an object, got a number"},
		{"list without comma inside", `{"conversations": [{"from": "gpt", "value": "a"} 1]}`, "sharegpt", "x.jsonl:1: column 50: want ',' or ']', got a number"},
		{"key without colon", `{"prompt" "a"}`, "assay", "x.jsonl:1: column 11: want ':' after key \"prompt\", got a string"},
		{"number without fraction", `{"conversations": [], "x": 1.}`, "sharegpt", "x.jsonl:1: column 28: not a number"},
		{"number without exponent", `{"conversations": [], "x": 1e+}`, "sharegpt", "x.jsonl:1: column 28: not a number"},
		{"short \\u", `{"prompt": "\u00`, "assay", "x.jsonl:1: column 13: broken \\u escape (half of a surrogate pair, or not four hex digits)"},
		{"\\u without digits", `{"prompt": "\u00zz"}`, "assay", "x.jsonl:1: column 13: broken \\u escape (half of a surrogate pair, or not four hex digits)"},
		{"several bad rows", "{\"prompt\": 1}\n{\"prompt\": 2}\n", "assay", "x.jsonl:1: column 12: want a string, got a number\nx.jsonl:2: column 12: want a string, got a number\nx.jsonl: 2 of the 2 rows read are bad; at most one in 1000 may be"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set, err := Read("x.jsonl", strings.NewReader(tt.in), tt.format)
			if err == nil {
				t.Fatalf("Read gave %d cases, want the error %q", len(set.Cases), tt.want)
			}
			if d := cmp.Diff(tt.want, err.Error()); d != "" {
				t.Errorf("error differs (-want +got):\n%s", d)
			}
			if _, ok := errors.AsType[*Fault](err); !ok {
				t.Errorf("error %T is no *Fault", err)
			}
		})
	}
}

func TestReadToleratesOneBadRowInAThousand(t *testing.T) {
	file := func(rows int, bad ...int) string {
		var b strings.Builder
		for i := range rows {
			if slices.Contains(bad, i) {
				b.WriteString("{\"prompt\": 1}\n")
			} else {
				fmt.Fprintf(&b, "{\"prompt\": \"p%d\"}\n", i)
			}
		}
		return b.String()
	}
	set := read(t, file(2000, 3, 1999), "")
	if len(set.Cases) != 1998 || set.Skipped != 2 || len(set.Faults) != 2 || set.Faults[1].Line != 2000 {
		t.Errorf("got %d cases, %d skipped, faults %v; want 1998, 2, and the second on line 2000", len(set.Cases), set.Skipped, set.Faults)
	}
	if _, err := Read("x.jsonl", strings.NewReader(file(1999, 3, 1998)), ""); err == nil {
		t.Error("2 bad rows of 1999 were tolerated")
	}
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("\"k%d\": \"\"", i)
	}
	return strings.Join(keys, ", ")
}

// endless gives a prefix and then filler for ever, and counts what was taken.
type endless struct {
	head   string
	filler byte
	taken  int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.head)
	e.head = e.head[n:]
	for i := n; i < len(p); i++ {
		p[i] = e.filler
	}
	e.taken += int64(len(p))
	return len(p), nil
}

// TestReadBounds holds small bounds, and with ASSAY_SLOW those of users.
func TestReadBounds(t *testing.T) {
	for name, most := range map[string]bounds{"small": {row: 1 << 20, file: 4 << 20, cases: 20_000}, "default": defaultBounds} {
		t.Run(name, func(t *testing.T) {
			if name == "default" && os.Getenv("ASSAY_SLOW") == "" {
				t.Skip("reads gigabytes: set ASSAY_SLOW=1")
			}
			boundsOfRows(t, most)
			boundsOfFiles(t, most)
		})
	}
}

func boundsOfRows(t *testing.T, most bounds) {
	for _, head := range []string{`{"prompt": "`, `[{"prompt": "`} {
		in := &endless{head: "\n" + head, filler: 'a'}
		_, err := readWithin(most, "x.jsonl", in, "assay")
		want := fmt.Sprintf("x.jsonl:2: the row is longer than %d MiB\n  hint: one case a line, please: is this JSON Lines?", most.row>>20)
		if err == nil || err.Error() != want {
			t.Errorf("a row without end: got %v, want %s", err, want)
		}
		if limit := int64(most.row + 1<<17); in.taken > limit {
			t.Errorf("read %d bytes of a row without end, want at most %d", in.taken, limit)
		}
	}
	head, tail := `{"prompt": "`, "\"}\n"
	text := strings.Repeat("a", most.row-len(head)-len(tail))
	set, err := readWithin(most, "x.jsonl", strings.NewReader(head+text+tail), "")
	if err != nil || set.Cases[0].Prompt != text {
		t.Errorf("a row of just the longest length: %v", err)
	}
}

func boundsOfFiles(t *testing.T, most bounds) {
	_, err := readWithin(most, "x.jsonl", &endless{filler: ' '}, "assay")
	if f, ok := errors.AsType[*Fault](err); !ok || f.What != fmt.Sprintf("the row is longer than %d MiB", most.row>>20) && f.What != fmt.Sprintf("the file is larger than %d MiB", most.file>>20) {
		t.Errorf("a file of blanks: got %v", err)
	}
	_, err = readWithin(most, "x.jsonl", &endless{head: "[", filler: ' '}, "assay")
	if f, ok := errors.AsType[*Fault](err); !ok || f.What != fmt.Sprintf("the file is larger than %d MiB", most.file>>20) {
		t.Errorf("a list of blanks: got %v", err)
	}
	bad := most.cases/tolerance + 1
	_, err = readWithin(most, "x.jsonl", strings.NewReader(strings.Repeat("x\n", 3*bad)), "assay")
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d of the %d rows read are bad", bad, bad)) {
		t.Errorf("a file that is all bad: got %v", err)
	} else if n := strings.Count(err.Error(), "\n"); n > maxFaults {
		t.Errorf("a file that is all bad: the error has %d lines more than one, want at most %d", n, maxFaults)
	}
	var b bytes.Buffer
	for i := range most.cases {
		fmt.Fprintf(&b, "{\"id\": \"case-%d\", \"prompt\": \"What is %d + %d?\", \"max_tokens\": 16}\n", i, i, i)
	}
	full := b.String()
	if set, err := readWithin(most, "x.jsonl", strings.NewReader(full), ""); err != nil || len(set.Cases) != most.cases {
		t.Errorf("%d lines: %v", most.cases, err)
	}
	_, err = readWithin(most, "x.jsonl", strings.NewReader(full+`{"prompt": "a"}`), "")
	if want := fmt.Sprintf("x.jsonl:%d: more than %d cases\n  hint: split the file", most.cases+1, most.cases); err == nil || err.Error() != want {
		t.Errorf("one line more: got %v, want %s", err, want)
	}
}

func TestReadTakesLinearTimeForManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"conversations": [{"from": "human", "value": "Hi"}]`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `, "k%d": %d`, i, i)
	}
	// Quadratic time would be minutes.
	if set := read(t, b.String()+"}", "sharegpt"); len(set.Cases) != 1 {
		t.Errorf("got %d cases, want 1", len(set.Cases))
	}
}

func TestReadDoesNotDependOnReadSizes(t *testing.T) {
	in := "\ufeff[\r\n{\"prompt\": \"a\\\"}b\"},\n{\"prompt\": \"é😀\"}\n]\n"
	want := read(t, in, "").Digest
	for name, r := range map[string]io.Reader{
		"one byte": iotest.OneByteReader(strings.NewReader(in)),
		"half":     iotest.HalfReader(strings.NewReader(in)),
		"data+EOF": iotest.DataErrReader(strings.NewReader(in)),
	} {
		set, err := Read("x.jsonl", r, "")
		if err != nil || set.Digest != want {
			t.Errorf("%s: got %v, %v", name, set, err)
		}
	}
}

func TestReadReturnsErrorsOfItsReader(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, head := range []string{"", "{\"prompt\": \"a\"}\n", "[{\"prompt\": \"a\"}", "[{\"prompt\"", "["} {
		_, err := Read("x.jsonl", io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), "")
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "reading x.jsonl: ") {
			t.Errorf("after %q: got %v", head, err)
		}
	}
}

func TestDigestIsOfTheContent(t *testing.T) {
	base := `{"id": "a", "prompt": "ab", "max_tokens": 7, "expect": "x", "labels": {"k": "v"}}`
	want := read(t, base, "").Digest
	const golden = "2dd1b0573a225714e09bc0c7210aff84b808e472de33faebf0fadec7019fda38"
	if want != golden {
		t.Errorf("digest = %s, want %s: digests outlive the program, do not change them", want, golden)
	}
	same, err := Read("other-name", strings.NewReader("[ "+strings.ReplaceAll(base, ": ", ":  ")+"]"), "assay")
	if err != nil || same.Digest != want {
		t.Errorf("the same case in another file has digest %v, %v", same, err)
	}
	for _, other := range []string{
		`{"id": "b", "prompt": "ab", "max_tokens": 7, "expect": "x", "labels": {"k": "v"}}`,
		`{"id": "a", "prompt": "a", "max_tokens": 7, "expect": "bx", "labels": {"k": "v"}}`,
		`{"id": "a", "prompt": "ab", "max_tokens": 8, "expect": "x", "labels": {"k": "v"}}`,
		`{"id": "a", "prompt": "ab", "max_tokens": 7, "expect": "x", "labels": {"kv": ""}}`,
		`{"id": "a", "prompt": "ab", "max_tokens": 7, "expect": "x"}`,
		`{"id": "a", "messages": [{"role": "user", "content": "ab"}], "max_tokens": 7, "expect": "x", "labels": {"k": "v"}}`,
		base + "\n" + `{"prompt": "c"}`,
	} {
		if got := read(t, other, "assay").Digest; got == want {
			t.Errorf("digest of %s is the same", other)
		}
	}
	if a, b := read(t, "{\"id\":\"1\",\"prompt\":\"a\"}\n{\"id\":\"2\",\"prompt\":\"b\"}", ""), read(t, "{\"id\":\"2\",\"prompt\":\"b\"}\n{\"id\":\"1\",\"prompt\":\"a\"}", ""); a.Digest == b.Digest {
		t.Error("the order of cases does not count")
	}
}

// TestReadPublicSets holds the reader to files that people have.
func TestReadPublicSets(t *testing.T) {
	const dir = "../../shared/data/"
	f, err := os.Open(dir + "gsm8k/gsm8k_test.jsonl")
	if err != nil {
		t.Skipf("public data sets are not here: %v", err)
	}
	defer f.Close()
	raw, err := Read("gsm8k_test.jsonl", f, "")
	if err != nil || raw.Format != "qa" || len(raw.Cases) != 1319 || raw.Cases[0].Expect != "18" || len(raw.Faults) != 0 {
		t.Errorf("raw GSM8K: %v; want 1,319 cases of format qa, of which the first expects 18", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var ours bytes.Buffer
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var row struct{ Question, Answer string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		line, _ := json.Marshal(map[string]any{"prompt": row.Question, "expect": row.Answer})
		ours.Write(append(line, '\n'))
	}
	set, err := Read("gsm8k.jsonl", &ours, "")
	if err != nil || len(set.Cases) != 1319 || set.Skipped != 0 || !strings.HasSuffix(set.Cases[0].Expect, "#### 18") {
		t.Errorf("GSM8K in our format: %v", err)
	}
}

func TestReadSkipsMemoryOfBadRows(t *testing.T) {
	// A hostile row must not cost more than a small multiple of its bytes.
	row := `{"conversations": [` + strings.TrimSuffix(strings.Repeat(`{"from":"gpt","value":"a"},`, maxMessages), ",") + `]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Read("x.jsonl", strings.NewReader(row), "sharegpt")
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Fatal("a conversation without a question was read")
	}
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(16*len(row)+1<<20); got > most {
		t.Errorf("allocated %d bytes for a row of %d, want at most %d", got, len(row), most)
	}
}

func BenchmarkRead(b *testing.B) {
	var in bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&in, "{\"id\": \"case-%d\", \"prompt\": \"What is %d + %d? Answer with the number alone.\", \"max_tokens\": 16}\n", i, i, i)
	}
	b.SetBytes(int64(in.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read("x.jsonl", bytes.NewReader(in.Bytes()), ""); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(10_000*float64(b.N)/b.Elapsed().Seconds(), "cases/s")
}
