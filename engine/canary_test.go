package engine

import (
	"strings"
	"testing"

	"github.com/assay-llm/assay/record"
)

func TestJudge(t *testing.T) {
	probe := func(cached, counted int64) record.CacheProbe {
		return record.CacheProbe{Outcome: record.OK, Prompt: record.Tokens(550), Cached: record.Tokens(cached), Counted: record.Tokens(counted)}
	}
	const no = -1 // not told
	for name, c := range map[string]struct {
		again, after record.CacheProbe
		state, why   string
	}{
		"cold, both accounts":       {probe(544, 544), probe(0, 0), Cold, "544 of the canary's 550"},
		"cold, usage only":          {probe(544, no), probe(0, no), Cold, "544"},
		"cold, counter only":        {probe(no, 544), probe(no, 0), Cold, "544"},
		"warm":                      {probe(544, 544), probe(544, 544), Warm, "still 544"},
		"a part is warm":            {probe(544, 544), probe(16, 16), Warm, "still 16"},
		"hits are never told":       {probe(no, no), probe(no, no), Unknown, "neither"},
		"told before, not behind":   {probe(544, no), probe(no, no), Unknown, "neither"},
		"always 0":                  {probe(0, 0), probe(0, 0), Unknown, "it is off"},
		"usage 0, counter counts":   {probe(0, 544), probe(0, 0), Unknown, "do not agree"},
		"usage 0 behind, counter 5": {probe(544, 544), probe(0, 5), Unknown, "do not agree"},
		"too few hits to show":      {probe(100, 100), probe(0, 0), Unknown, "it is off"},
		"length is not told":        {record.CacheProbe{Outcome: record.OK, Cached: record.Tokens(5)}, probe(0, 0), Unknown, "how long"},
		"failed":                    {record.CacheProbe{Outcome: record.HTTP4xx}, probe(0, 0), Unknown, "not answered: http_4xx"},
		"failed behind":             {probe(544, 544), record.CacheProbe{Outcome: record.ResetMid}, Unknown, "not answered: reset_mid_stream"},
		"never ended":               {probe(544, 544), record.CacheProbe{}, Unknown, "not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			p := record.CacheProof{First: probe(0, 0), Again: c.again, After: c.after}
			Judge(&p)
			if p.State != c.state || !strings.Contains(p.Why, c.why) {
				t.Errorf("%s: %s, want %s: %s", p.State, p.Why, c.state, c.why)
			}
		})
	}
}
