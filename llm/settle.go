package llm

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assay-llm/assay/record"
)

// onUsage takes over the token counts of a chunk. A later count replaces an
// earlier one, field by field: the last is the whole.
func (t *tally) onUsage(c *chunk) {
	if c.has&hasUsage == 0 {
		return
	}
	t.badUsage = t.badUsage || c.has&hasBadUsage != 0
	take := func(to *int64, n int64) {
		if n < -1 {
			t.badUsage = true
		} else if n >= 0 {
			*to = n
		}
	}
	take(&t.usage.prompt, c.usage.prompt)
	take(&t.usage.output, c.usage.output)
	take(&t.usage.total, c.usage.total)
	take(&t.usage.cached, c.usage.cached)
	take(&t.usage.reasoning, c.usage.reasoning)
	take(&t.usage.fresh, c.usage.fresh)
	take(&t.usage.written, c.usage.written)
	switch {
	case c.usage.output < 0:
	case c.payload == 0 || c.lax: // only OpenAI's chunks have running counts
		t.usageOnly = c.usage.output
	default:
		for len(t.counts) < t.payloads {
			t.counts = append(t.counts, -1)
		}
		t.counts = append(t.counts, c.usage.output)
		t.countsSent++
	}
}

// settleCounts reads the counts on payload events, which are the tokens so far
// (vLLM's continuous_usage_stats) or, from some servers, those of the event: a
// count that falls, or that stays below the number of events, is no running
// total, unless the closing usage says so.
func (t *tally) settleCounts() {
	if t.countsSent == 0 {
		return
	}
	var last, sum int64
	rising := true
	for _, n := range t.counts {
		if n >= 0 {
			rising = rising && n >= last
			last = n
			sum += n
		}
	}
	each := !rising || last < int64(t.countsSent) && sum > last
	if t.usageOnly >= 0 && sum != last {
		each = each && last != t.usageOnly || sum == t.usageOnly
	}
	if each && t.usageOnly < 0 {
		t.usage.output = sum
	}
	i, before := 0, int64(0)
	for j := range t.rec.Events {
		e := &t.rec.Events[j]
		if !e.Kind.Payload() || i == len(t.counts) {
			continue
		}
		n := t.counts[i]
		i++
		switch {
		case n >= 0 && each:
			e.Tokens = record.Tokens(n)
		case n >= 0 && before >= 0 && n >= before:
			e.Tokens = record.Tokens(n - before)
		}
		before = n
	}
}

// hiddenTokens is how many more tokens than bytes an answer may have: the end of
// text, template marks.
const hiddenTokens = 8

// settleUsage puts the token counts on the record, each only as far as it can be
// true.
func (t *tally) settleUsage() {
	t.settleCounts()
	u, r := t.usage, t.rec
	if u.fresh >= 0 {
		u.prompt = u.fresh + max(u.written, 0) + max(u.cached, 0)
	}
	odd := t.badUsage
	distrust := func(n *int64, when bool) {
		if when {
			*n, odd = -1, true
		}
	}
	output := t.payloads > 0
	distrust(&u.prompt, u.prompt == 0 && (output || u.output > 0))
	distrust(&u.output, u.output == 0 && output)
	distrust(&u.cached, u.cached > u.prompt)
	distrust(&u.reasoning, u.reasoning > u.output)
	if output && len(t.tools) == 0 && t.seen&(t.seen-1) == 0 {
		// Held-back text may come in one event more than there are tokens, and a
		// token is a byte of text at least, but for a few that are never shown.
		distrust(&u.output, u.output >= 0 && int64(t.payloads) > u.output+1)
		distrust(&u.output, !t.hidden && u.output-max(u.reasoning, 0) > r.OutputBytes+hiddenTokens)
	}
	odd = odd || u.total >= 0 && u.prompt >= 0 && u.output >= 0 && u.total != u.prompt+u.output
	r.Prompt, r.Output = record.Tokens(u.prompt), record.Tokens(u.output)
	r.Cached, r.Reasoning = record.Tokens(u.cached), record.Tokens(u.reasoning)
	if odd {
		r.Flags |= record.FlagUsageInconsistent
	}
	if t.usage == noUsage && r.Status/100 == 2 {
		r.Flags |= record.FlagUsageMissing
	}
	if !r.Output.Known() && t.t.TokensFromEvents && t.req.Stream && output {
		r.Output = record.Tokens(int64(t.payloads))
		r.Flags |= record.FlagTokensFromEvents
	}
	if !t.req.Stream && len(r.Events) == 1 && r.Events[0].Kind.Payload() {
		r.Events[0].Tokens = r.Output
	}
}

// finish gives the request its outcome. Err is what ended it too early.
func (t *tally) finish(ctx context.Context, err error) {
	r := t.rec
	t.settleUsage()
	r.Server = timingsOf(t.timings)
	for _, s := range t.spent {
		if r.Server == nil {
			r.Server = make(map[string]time.Duration)
		}
		r.Server[s.name] = s.time
	}
	if r.OutputBytes > 0 {
		sum := t.digest.Sum(t.digestSum[:0])
		r.Body = string(hex.AppendEncode(t.digestText[:0], sum))
	}
	if !r.EOF.Set() {
		r.EOF = t.q.instant(time.Now())
	}
	if err == nil {
		err = t.judge()
	}
	r.Outcome = record.OK
	if err != nil {
		r.Outcome = outcomeOf(ctx, err, t.payloads > 0)
		if r.Detail == "" {
			r.Detail = err.Error()
		}
		if r.Outcome.Group() == record.GroupDropped && ctx.Err() != nil {
			r.Detail = context.Cause(ctx).Error()
		}
	}
	r.Detail, r.Code = t.clean(r.Detail), t.clean(r.Code)
}

// judge decides about an answer that was read to its end.
func (t *tally) judge() error {
	r := t.rec
	streamed := len(t.body) == 0
	switch {
	case t.failed:
		return &failure{record.ErrorEvent, errors.New(r.Detail)}
	case streamed && !t.done && (t.seen == 0 || t.finished != t.seen):
		return fail(record.Truncated, "the stream ended without finish_reason or [DONE], after %d events of output", t.payloads)
	case streamed && t.strange > 0 && (t.seen == 0 || t.finished != t.seen):
		return fail(record.ErrorEvent, "the stream ended without finish_reason after %d events that are no part of an answer", t.strange)
	case t.early():
		return fail(record.Malformed, "the answer came before the request was sent")
	case r.Finish == "error" || r.Finish == "abort":
		r.Code = "finish_reason"
		return fail(record.ErrorEvent, "the server gave up: finish_reason %s", r.Finish)
	}
	// A whole answer is as complete as its JSON, also without a finish_reason.
	if !t.done && (streamed || t.finished != t.seen) {
		r.Flags |= record.FlagNoDone
	}
	if t.payloads == 0 { // also when the usage owns up to it: nobody asks for nothing
		return fail(record.EmptyOutput, "finished without output")
	}
	if t.d.check != nil {
		if err := t.d.check(t); err != nil {
			return err
		}
	}
	if err := t.checkTools(); err != nil {
		return err
	}
	n, known := r.Output.N()
	asked := t.req.MaxTokens
	if !known || asked <= 0 || t.seen&(t.seen-1) != 0 {
		return nil
	}
	if n > asked+1 && r.Flags&record.FlagTokensFromEvents == 0 { // some count the end of text
		return fail(record.LengthMismatch, "%d tokens by the server's count, %d were asked at most", n, asked)
	}
	if r.Finish == "length" && n != asked && r.Flags&record.FlagTokensFromEvents == 0 {
		return fail(record.LengthMismatch, "finish_reason length after %d tokens, %d were asked; is the model's context too short?", n, asked)
	}
	if t.req.IgnoreEOS && n < asked {
		r.Flags |= record.FlagShortOutput
	}
	return nil
}

// early reports whether the first event reached the kernel before the request
// left: it was no answer to it. Two clocks are read, which may differ a little.
func (t *tally) early() bool {
	if len(t.rec.Events) == 0 || t.rec.Events[0].Lag < 0 {
		return false
	}
	first := &t.rec.Events[0]
	since, ok := first.At.Sub(t.rec.Send)
	return ok && since-first.Lag < -time.Millisecond
}

// checkTools demands that the arguments of tool calls are JSON, unless the token
// limit cut them.
func (t *tally) checkTools() error {
	if t.rec.Finish == "length" || t.clipped {
		return nil
	}
	for i := range t.tools {
		if a := t.tools[i].args; len(a) > 0 && !json.Valid(a) {
			t.rec.Code = "tool_args_invalid"
			return fail(record.Malformed, "the arguments of tool call %d are not JSON", i)
		}
	}
	return nil
}

// clean makes text that may come from a server fit for a record: without the
// key, without the prompt, bounded, printable.
func (t *tally) clean(s string) string {
	if s == "" {
		return ""
	}
	const most = 8 << 10
	if len(s) > most {
		s = s[:most]
	}
	if t.req.quotes(s) {
		return fmt.Sprintf("HTTP %d: (the message quotes the prompt and is left out)", t.rec.Status)
	}
	return printable(t.t.redact(s))
}

// redact replaces what the target keeps secret.
func (t *Target) redact(s string) string {
	if t.Key != "" {
		s = strings.ReplaceAll(s, t.Key, "[key]")
	}
	for name, value := range t.Headers {
		if len(value) >= 4 && secretName.MatchString(name) {
			s = strings.ReplaceAll(s, value, "[secret]")
		}
	}
	return s
}

// said returns a JSON string of the server as text fit to be shown.
func (t *tally) said(raw []byte) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return t.clean(s)
}

// answer copies the output out of the pooled buffers.
func (t *tally) answer() Answer {
	u := t.usage
	if u.fresh >= 0 {
		u.prompt = u.fresh + max(u.written, 0) + max(u.cached, 0)
	}
	a := Answer{
		Text: string(t.text), Reasoning: string(t.reasoning), Clipped: t.clipped,
		Claimed: Claim{record.Tokens(u.prompt), record.Tokens(u.output), record.Tokens(u.cached), record.Tokens(u.reasoning)},
		Choices: bits.OnesCount64(t.seen), Model: t.said(t.model), Fingerprint: t.said(t.print),
	}
	if t.req.KeepBody {
		a.Body = bytes.Clone(t.body)
	}
	for i := range t.tools {
		c := &t.tools[i]
		a.Tools = append(a.Tools, Tool{ID: c.id, Name: c.name, Arguments: string(c.args)})
	}
	return a
}

// validEnd reports whether text ends in a whole character.
func validEnd(b []byte) bool {
	r, size := utf8.DecodeLastRune(b)
	return r != utf8.RuneError || size != 1
}
