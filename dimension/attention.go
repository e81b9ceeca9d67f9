package dimension

import (
	"context"
	"fmt"

	"github.com/assay-llm/assay/attention"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
)

// AttentionConfig is the configuration of Attention.
type AttentionConfig struct {
	File    check.FileRef `yaml:"file,required" doc:"dump of attention weights, NDJSON: a row a query with layer, head, query and weights, or top and keys"`
	Against check.FileRef `yaml:"against" doc:"dump of the baseline on the same text, to stand beside it"`
	Sinks   int           `yaml:"sinks" min:"-1" max:"4096" doc:"first tokens whose attention is left out; 4 if left out, -1 for none"`
	Needle  NeedleConfig  `yaml:"needle" doc:"the tokens that matter: heads that look at them are told apart"`
}

// NeedleConfig is a stretch of tokens.
type NeedleConfig struct {
	From int `yaml:"from" min:"0" max:"16777216" doc:"first token"`
	To   int `yaml:"to" min:"0" max:"16777216" doc:"token behind the last"`
}

// CheckConfig reports a needle without tokens.
func (c *AttentionConfig) CheckConfig(n *config.Node) {
	if c.Needle != (NeedleConfig{}) && c.Needle.From >= c.Needle.To {
		n.Fault(fmt.Sprintf("has a needle from token %d to %d, which is empty", c.Needle.From, c.Needle.To), "write needle: {from: 100, to: 120}")
	}
}

// Attention reads a dump of attention weights. It asks nobody.
var Attention = &check.Check{
	Name:    "attention",
	Doc:     "where a model looks, by a dump of its attention weights: how evenly and how far, and from which position on that changes",
	Config:  func() any { return new(AttentionConfig) },
	Values:  func(any) []check.Value { return nil },
	Offline: true,
	Run:     runAttention,
}

// mostHeads bounds the heads that are published.
const mostHeads = 256

func runAttention(_ context.Context, p *check.Pass) error {
	conf := p.Config.(*AttentionConfig)
	figure := check.Figure{
		Title: "Evenness of attention", About: "Entropy of attention divided by its greatest, without sinks, by position; of retrieval heads, or of all heads if there are none.",
		X: "position, tokens", Y: "evenness",
	}
	published := make(map[string]*attention.Dump)
	for _, file := range []check.FileRef{conf.File, conf.Against} {
		if file.IsZero() {
			continue
		}
		data, err := p.File(file)
		if err != nil {
			return err
		}
		d, err := attention.Read(data, attention.Options{Sinks: conf.Sinks, Needle: attention.Span(conf.Needle)})
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		curve := check.Curve{Name: string(file)}
		for _, x := range d.Course {
			curve.Points = append(curve.Points, check.Point{X: float64(x.Query), Y: x.Evenness})
		}
		if len(curve.Points) > 0 {
			figure.Curves = append(figure.Curves, curve)
		}
		published[string(file)] = reportAttention(p, string(file), d)
	}
	if len(figure.Curves) > 0 {
		p.Draw(figure)
	}
	p.Publish(published)
	return nil
}

// reportAttention tells a reader of one dump, and returns what is published of it.
func reportAttention(p *check.Pass, file string, d *attention.Dump) *attention.Dump {
	retrieval, rows, narrow := 0, 0, 0
	for _, h := range d.Heads {
		rows, narrow = rows+h.Rows, narrow+h.Narrow
		if h.Retrieval {
			retrieval++
		}
	}
	p.Note("%s: %d rows of %d heads, of which %d look at the needle; a course of %d positions", file, rows, len(d.Heads), retrieval, len(d.Course))
	if narrow > 0 {
		p.Note("%s: %d rows list too few weights to tell how even they are, and are left out", file, narrow)
	}
	for _, at := range d.Breaks {
		before, after := around(d.Course, at)
		p.Report(check.Finding{
			Severity: check.Warning, Code: "attention_break",
			Text:    fmt.Sprintf("%s: from position %d on attention is spread otherwise: its evenness goes from %.2f to %.2f", file, at, before, after),
			Hint:    "look whether the answers change at this length, too, with the check context",
			Figures: map[string]float64{"position": float64(at), "before": before, "after": after},
		})
	}
	if len(d.Heads) > mostHeads {
		p.Note("%s: the %d heads beyond the first %d are not listed", file, len(d.Heads)-mostHeads, mostHeads)
		d.Heads = d.Heads[:mostHeads]
	}
	return d
}

// around is the mean evenness of up to eight positions before and after a break.
func around(course []attention.Point, at int) (before, after float64) {
	const side = 8
	for i, x := range course {
		if x.Query != at {
			continue
		}
		from, to := max(i-side, 0), min(i+side, len(course))
		for _, y := range course[from:i] {
			before += y.Evenness / float64(i-from)
		}
		for _, y := range course[i:to] {
			after += y.Evenness / float64(to-i)
		}
	}
	return before, after
}
