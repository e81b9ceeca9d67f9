package workload

import (
	"slices"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// Dialogue is what was said in a session so far, for whoever asks its turns: turn
// k carries what was said before it, and is asked unless an answer did not come
// whole or the dialogue is full. The zero Dialogue is one that has not begun. It
// belongs to one goroutine at a time.
type Dialogue struct {
	said   []corpus.Message
	tokens int64 // of what was said, as the server counted where it did
	failed bool  // the last turn had no good end
	mute   bool  // its answer is no text to go on with
}

// Reply is how a turn ended.
type Reply struct {
	Outcome record.Outcome
	Text    string // of the answer, without reasoning, which applications do not send back
	Partial bool   // the text is not all that was answered
	Tokens  int64  // of prompt and answer as the server counted; −1: it did not
}

// Hindrance is why the next turn of a session cannot be asked.
type Hindrance uint8

// The hindrances.
const (
	Unhindered  Hindrance = iota
	NoAnswer              // an earlier turn failed, or gave no whole text to go on with
	FullContext           // the dialogue reached its limit of tokens
)

// bytesPerToken is what text is taken for whose tokens nobody has counted.
const bytesPerToken = 4

func textTokens(messages []corpus.Message) int64 {
	n := 0
	for i := range messages {
		n += len(messages[i].Content)
	}
	return int64(n+bytesPerToken-1) / bytesPerToken
}

// Join puts the dialogue before what a turn adds to it. A question without an
// answer and the one that follows become one message: the roles of a dialogue take
// turns, as most templates of chats demand.
func (d *Dialogue) Join(s *Shot) {
	if !s.History {
		return
	}
	before, added := d.said, s.Messages
	if n := len(before); n > 0 && len(added) > 0 && before[n-1].Role == "user" && added[0].Role == "user" {
		both := before[n-1].Content + "\n" + added[0].Content
		before, added = slices.Concat(before[:n-1], []corpus.Message{{Role: "user", Content: both}}), added[1:]
	}
	s.Messages = slices.Concat(before, added)
}

// Take enters the answer to a turn that was joined. A whole one goes on with the
// dialogue; so does what a user had read who interrupted it, if anything. Anything
// else ends the session.
func (d *Dialogue) Take(asked *Shot, r Reply) {
	switch {
	case r.Outcome == record.ClientCancelled && r.Text == "":
		d.said, d.mute = asked.Messages, false
		d.tokens = textTokens(d.said)
		return
	case r.Outcome != record.OK && r.Outcome != record.ClientCancelled:
		d.failed = true
		return
	}
	d.mute = r.Text == "" || r.Partial
	d.said = append(slices.Clip(asked.Messages), corpus.Message{Role: "assistant", Content: r.Text})
	if d.tokens = r.Tokens; d.tokens < 0 {
		d.tokens = textTokens(d.said)
	}
}

// Hindrance says whether the next turn of a session of the plan can be asked.
func (p *Plan) Hindrance(d *Dialogue, next *Shot) Hindrance {
	most := int64(p.spec.Sessions.Context)
	if most == 0 {
		most = MaxTokens
	}
	switch {
	case d.failed || d.mute && next.History:
		return NoAnswer
	case next.History && d.tokens+textTokens(next.Messages)+next.MaxTokens > most:
		return FullContext
	}
	return Unhindered
}
