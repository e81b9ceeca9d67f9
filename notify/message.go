package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/report"
)

// HoldSchema names the version of what a pause hook gets.
const HoldSchema = "assay.hold/1"

// Links are the pages that a message points to. An empty one is left out.
type Links struct {
	Diff   string // what changed
	Report string // the report, or the job that keeps it
}

// Validate reports links that are no absolute http or https address.
func (l Links) Validate() error {
	for name, link := range map[string]string{"diff": l.Diff, "report": l.Report} {
		u, err := url.Parse(link)
		if link != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(link, "<>| \t\r\n")) {
			return fmt.Errorf("the link to the %s is no http(s) address without a password\n  hint: write such as https://example.com/page", name)
		}
	}
	return nil
}

// The bounds of Slack's blocks, in characters.
const (
	longestHeader  = 150
	longestSection = 3000
	longestField   = 2000
	mostFields     = 10
)

type block struct {
	Type     string  `json:"type"`
	Text     *text   `json:"text,omitempty"`
	Fields   []*text `json:"fields,omitempty"`
	Elements []*text `json:"elements,omitempty"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func plain(s string, most int) *text  { return &text{"plain_text", cut(s, most)} }
func markup(s string, most int) *text { return &text{"mrkdwn", cut(s, most)} }

// cut shortens a text to most characters. Escapes may be cut through, which shows
// as an ampersand too many and is harmless.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// literal escapes the three characters that Slack reads as markup of mentions and
// links, and breaks the marks of emphasis and code, and the at signs by which
// Mattermost mentions people.
func literal(s string) string {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(strings.Join(strings.Fields(s), " "))
	return strings.NewReplacer("*", "∗", "_", "_\u200b", "~", "∼", "`", "ʼ", "@", "@\u200b").Replace(s)
}

// Message is the verdict for a Slack-compatible webhook: the grade and the run, the
// reason, each clause that did not pass, and the links.
func Message(d *report.Document, l Links) ([]byte, error) {
	title := strings.ToUpper(grade(d)) + ": " + name(d)
	blocks := []block{
		{Type: "header", Text: plain(title, longestHeader)},
		{Type: "section", Text: markup(literal(d.Reason), longestSection)},
	}
	var fields []*text
	for _, c := range open(d) {
		if len(fields) == mostFields-1 {
			fields = append(fields, markup("and more: see the report", longestField))
			break
		}
		fields = append(fields, markup("*"+literal(c.ID)+"* "+c.Grade.String()+"\n"+literal(c.Reason), longestField))
	}
	if len(fields) > 0 {
		blocks = append(blocks, block{Type: "section", Fields: fields})
	}
	var links []string
	for _, x := range []struct{ name, to string }{{"diff", l.Diff}, {"report", l.Report}} {
		if x.to != "" {
			links = append(links, "<"+strings.ReplaceAll(x.to, "&", "&amp;")+"|"+x.name+">")
		}
	}
	if len(links) > 0 {
		blocks = append(blocks, block{Type: "section", Text: markup(strings.Join(links, " · "), longestSection)})
	}
	about := fmt.Sprintf("run %s · seed %d · assay %s", literal(d.Run.ID), d.Run.Seed, literal(d.Run.Assay))
	blocks = append(blocks, block{Type: "context", Elements: []*text{markup(about, longestSection)}})
	return json.Marshal(struct {
		Text   string  `json:"text"` // for notifications, and for receivers that know no blocks
		Blocks []block `json:"blocks"`
	}{cut(literal(title)+": "+literal(d.Reason), longestSection), blocks})
}

// hold is what a pause hook gets.
type hold struct {
	Schema  string   `json:"schema"`
	Run     string   `json:"run"`
	Name    string   `json:"name"`
	Grade   string   `json:"grade"`
	Reason  string   `json:"reason"`
	Clauses []string `json:"clauses"` // that did not pass
	Diff    string   `json:"diff,omitempty"`
	Report  string   `json:"report,omitempty"`
}

// Hold asks the following stages of a pipeline to wait.
func Hold(d *report.Document, l Links) ([]byte, error) {
	h := hold{HoldSchema, d.Run.ID, name(d), grade(d), d.Reason, []string{}, l.Diff, l.Report}
	for _, c := range open(d) {
		h.Clauses = append(h.Clauses, c.ID)
	}
	return json.Marshal(h)
}

// grade is the verdict's; a run without a contract is never a pass.
func grade(d *report.Document) string {
	if d.Verdict == nil {
		return contract.Inconclusive.String()
	}
	return d.Verdict.Grade.String()
}

func name(d *report.Document) string {
	if d.Run.Name == "" {
		return "run"
	}
	return d.Run.Name
}

// open lists the clauses that did not pass.
func open(d *report.Document) (all []contract.Result) {
	if d.Verdict == nil {
		return nil
	}
	for _, c := range d.Verdict.Clauses {
		if c.Grade != contract.Pass {
			all = append(all, c)
		}
	}
	return all
}

// Key names a message of a run: the same for every try and for a job that runs
// again over the same verdict, another for another receiver or another verdict.
func Key(address string, d *report.Document, body []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(address), []byte(d.Run.ID), body} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
