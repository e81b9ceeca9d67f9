package check

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// An Asker answers questions. It is safe for concurrent use.
type Asker interface {
	// Ask returns what became of q. Its error is of the asking, not of the answer:
	// the context ended or the budget is spent. A request that failed is an Answer
	// whose Outcome says how.
	Ask(ctx context.Context, q *Question) (*Answer, error)
}

// An Embedder turns texts into vectors. It is safe for concurrent use.
type Embedder interface {
	// Embed returns one vector for each text, in their order, all of one length. An
	// error means that none can be relied on.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Question is one request of a check. Fields at their zero value are left to the
// server.
type Question struct {
	Messages    []corpus.Message
	Prompt      string // of a completion; exclusive with Messages
	MaxTokens   int64
	Temperature *float64
	TopP        *float64
	Seed        *int64
	Stop        []string
	TopLogprobs int             // alternatives wanted at each token; 0: no log-probabilities at all
	Schema      json.RawMessage // JSON Schema that the answer has to obey; nil: free text
	Score       bool            // log-probabilities of the prompt's own tokens, of which TopLogprobs are then the alternatives; see Answer.Scored
	Replicate   int             // which repetition of an otherwise equal question, from 0; equal questions of different replicates are asked anew
	Private     bool            // its answer may do harm to who reads it: it is kept sealed or not at all, see Config.Private
}

// Answer is what became of a Question.
type Answer struct {
	Outcome record.Outcome // record.OK, or why there is no answer
	Status  int            // of HTTP; 0: no answer, or not of HTTP
	Detail  string         // what went wrong, printable; "": nothing
	Text    string
	Refusal string // what the API's own refusal field says; "": it is not used
	Finish  string // why the answer ended: stop, length, content_filter …
	Tokens  []Token
	Scored  []Scored     // of a Question with Score: the prompt's tokens, in order, without those that have no log-probability, such as the first; nil: none came
	Prompt  record.Count // tokens, as the server counts them
	Output  record.Count
	Retries int // how often it was asked for in vain before

	Model       string // as the server names itself; "": it does not
	Fingerprint string // system_fingerprint; "": none

	Sealed []byte `json:",omitempty"` // of a private answer that was kept: all of it but Outcome, see Seal; a check never sees one
}

// Answered reports whether the endpoint gave an answer of its own, be it empty,
// cut or refused: one to be judged. Else nothing is known of what it would say.
func (a *Answer) Answered() bool {
	return a.Outcome == record.OK || a.Outcome == record.EmptyOutput || a.Outcome == record.Filtered
}

// Refused reports whether the API itself says that an answer was refused, by its
// refusal field or by a filter. What a text says is not looked at.
func (a *Answer) Refused() bool { return a.Refusal != "" || a.Outcome == record.Filtered }

// FailureError is the error of an Embedder whose endpoint failed; the driver
// tries again what may be worth it.
type FailureError struct {
	Endpoint string
	Outcome  record.Outcome
	Status   int // of HTTP; 0: none
	Detail   string
}

// Error says what became of the request.
func (e *FailureError) Error() string {
	return fmt.Sprintf("asking %s: %s: %s", e.Endpoint, e.Outcome, e.Detail)
}

// Token is one token of an answer with its log-probability.
type Token struct {
	Text    string
	Logprob float64 // natural logarithm
	Top     []Alternative
}

// Scored is a token of a prompt with its log-probability after all that stands
// before it.
type Scored struct {
	At int // where its text begins in Question.Prompt, in bytes
	Token
}

// Alternative is a token that could have come instead, or the one that came.
type Alternative struct {
	Text    string
	Logprob float64
}
