package check

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	"github.com/assay-llm/assay/record"
)

// compareTrials orders trials by what was asked.
func compareTrials(a, b *Trial) int {
	if c := cmp.Or(cmp.Compare(a.Shot.Case, b.Shot.Case), cmp.Compare(a.Shot.Turn, b.Shot.Turn), cmp.Compare(a.Shot.Question.Replicate, b.Shot.Question.Replicate)); c != 0 {
		return c
	}
	if c := slices.Compare(flat(a.Shot.Labels), flat(b.Shot.Labels)); c != 0 {
		return c
	}
	return cmp.Compare(Key("", &a.Shot.Question), Key("", &b.Shot.Question)) // hashes whole prompts
}

func flat(labels map[string]string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, k, labels[k])
	}
	return out
}

// record says what became of the question to one variant. It has no times: how
// long an answer of a check takes is no measurement, since checks ask as fast as
// they may and take from what was answered before.
func (t *Trial) record(a *Answer) record.Record {
	s := &t.Shot
	r := record.Record{
		Case: s.Case, Session: cmp.Or(s.Cluster, s.Case), Turn: s.Turn, MaxTokens: s.Question.MaxTokens, Labels: maps.Clone(s.Labels),
		PromptBytes: s.Question.bytes(), Outcome: a.Outcome, Status: a.Status, Detail: a.Detail, Finish: a.Finish,
		Prompt: a.Prompt, Output: a.Output, OutputBytes: int64(len(a.Text)),
	}
	if s.Question.Private && r.Detail != "" {
		r.Detail = "withheld: it may quote what was asked"
	}
	if n := s.Question.Replicate; n > 0 {
		if r.Labels == nil {
			r.Labels = make(map[string]string)
		}
		r.Labels["replicate"] = strconv.Itoa(n)
	}
	if a.Text != "" {
		sum := sha256.Sum256([]byte(a.Text))
		r.Body = hex.EncodeToString(sum[:])
	}
	return r
}

// bytes is the size of the prompt.
func (q *Question) bytes() int64 {
	n := len(q.Prompt)
	for _, m := range q.Messages {
		n += len(m.Content)
	}
	return int64(n)
}
