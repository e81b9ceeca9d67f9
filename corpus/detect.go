package corpus

import (
	"errors"
	"slices"
	"strings"
)

// How far detection looks into a file. The bytes bound what is held, not what a
// row may have.
const (
	seenRows  = 20
	seenBytes = 1 << 20
)

// seenRow is a row that detection has read ahead.
type seenRow struct {
	text []byte
	line int
}

// ahead gives the rows of a file, those that detection has seen among them.
type ahead struct {
	rows *rows
	seen []seenRow
	err  error // of the row after those seen
}

// look reads the rows that detection goes by.
func (a *ahead) look() {
	for size := 0; len(a.seen) < seenRows && size < seenBytes; {
		row, line, err := a.rows.next()
		if err != nil {
			a.err = err
			return
		}
		a.seen = append(a.seen, seenRow{slices.Clone(row), line})
		size += len(row)
	}
}

// next is that of rows.
func (a *ahead) next() ([]byte, int, error) {
	if len(a.seen) > 0 {
		first := a.seen[0]
		a.seen = a.seen[1:]
		return first.text, first.line, nil
	}
	if a.err != nil {
		return nil, 0, a.err
	}
	return a.rows.next()
}

// kinds of rows beside the names of formats.
const (
	unknownKind = ""
	either      = "assay or openai" // messages, and no key that only one of them has
)

// detect names the format of a file by the keys of its first rows. Messages
// alone say too little: they stand in sets of ours, too, beside rows that have a
// prompt. The error is that of the first row.
func detect(seen []seenRow) (string, error) {
	named := false // a row has an id
	for i, row := range seen {
		kind, id, err := kindOf(row.text)
		switch {
		case err != nil && i == 0:
			return "", err
		case err != nil: // it is a fault in any format
		case kind != either:
			return kind, nil
		}
		named = named || id
	}
	if !named {
		return "openai", nil
	}
	for _, row := range seen {
		c := &cursor{data: row.text}
		if _, err := assayCase(c); err != nil {
			return "openai", nil // such as one that ends with the answer
		}
	}
	return "assay", nil
}

// kindOf names the format of a row by its keys, or either. An error says that
// the row is broken, or of no format.
func kindOf(row []byte) (kind string, id bool, err error) {
	c := &cursor{data: row}
	has := map[string]bool{}
	var names []string
	err = c.object(func(key string) error {
		has[key] = true
		if len(names) < 8 {
			names = append(names, quote(key))
		}
		return c.skip()
	})
	switch {
	case err != nil:
		return unknownKind, false, err
	case has["conversations"]:
		return "sharegpt", false, nil
	case has["prompt"] && has["instruction_id_list"]:
		return "ifeval", false, nil
	case has["question"] && has["answer"]:
		return "qa", false, nil
	case has["prompt"], has["messages"] && (has["expect"] || has["labels"]):
		return "assay", false, nil
	case has["body"], has["messages"] && (has["model"] || has["custom_id"]):
		return "openai", false, nil
	case has["messages"]:
		return either, has["id"], nil
	}
	return unknownKind, false, &syntaxError{
		at: -1, what: "unknown kind of row: its keys are " + strings.Join(names, ", "),
		hint: `a row needs "prompt" or "messages" (assay), "conversations" (sharegpt), "messages" (openai), "question" and "answer" (qa) or "instruction_id_list" (ifeval)`,
	}
}

// doubt adds to what is wrong with the shape of a row that nobody said which
// shape it should have. What is wrong within a value is wrong in any format.
func doubt(guessed string, err error) error {
	s, ok := errors.AsType[*syntaxError](err)
	if !ok || s.at >= 0 {
		return err
	}
	other := "assay"
	if guessed == other {
		other = "openai"
	}
	told := *s
	told.what += " (read as " + guessed + ", by the look of the first rows)"
	told.hint = strings.TrimPrefix(s.hint+"; or say which format it is: format: "+other, "; or ")
	return &told
}
