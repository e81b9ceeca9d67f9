package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/assay-llm/assay/record"
)

// attacks are texts that some reader of some format would obey.
var attacks = []string{
	`<script>document.title='pwned'</script>`,
	`"><img src=x onerror="document.title='pwned'">`,
	`<svg onload=document.title='pwned'><title>x`,
	`</style><script>document.title='pwned'</script>`,
	`</title></pre></svg><iframe src="http://canary.invalid/">`,
	`]]><failure/><![CDATA[`,
	`--><!-- -- -->`,
	"\x1b[31mred\x1b[0m \x1b]0;title\a\x1b]8;;http://canary.invalid\x1b\\link\x1b]8;;\x1b\\ \x9b31m \u009b2J",
	"a\x00b\x01c\x7fd\u0085e\u2028f",
	"\u202egnp.exe\u2066 \u200b\u200d\u2060\ufeff\U000E0041",
	"line\nanother: line\r\nPASS  all 5 clauses pass\r",
	"![x](http://canary.invalid/i.png) [l](javascript:alert(1)) **b** `c` @everyone #123 http://canary.invalid www.canary.invalid www.4.canary.invalid a@canary.invalid",
	"a | b | c \\| d",
	"| --- | --- |",
	"{{.Doc}} {{template \"page\"}} ${7*7} <%= 1 %>",
	"javascript:alert(1)",
	"' onmouseover='alert(1)",
	"\xff\xfe invalid \xc3",
	"&lt;script&gt; &amp; &#x3c;",
	"\U0001F468\u200d\U0001F469 漢字 wide",
	strings.Repeat("long", 200),
}

// hostile is a run in which every text is the attack.
func hostile(t testing.TB, attack string) (*Document, *Comparison) {
	t.Helper()
	s := usual()
	s.requests, s.failing = 80, .1
	m, records := s.build()
	m.Name, m.ID, m.Assay, m.Salt, m.State, m.SuiteFile, m.Digest = attack, attack, attack, attack, attack, attack, attack
	m.Suite = "version: 1\n# " + attack + "\n"
	m.Host = map[string]string{attack: attack}
	m.Notes = []string{attack}
	m.Client.Fit, m.Client.Reasons = false, []string{attack, attack}
	for i := range m.Variants {
		v := &m.Variants[i]
		v.Name, v.URL, v.Model, v.API, v.Protocol = attack+v.Name, attack, attack, attack, attack
		v.Engine = map[string]string{attack: attack, "config": attack + "\n" + attack}
	}
	for i := range m.Windows {
		m.Windows[i].Variant, m.Windows[i].Workload = attack+m.Windows[i].Variant, attack
	}
	for i := range m.Workloads {
		m.Workloads[i].Name, m.Workloads[i].Arrivals = attack, attack
	}
	for i := range records {
		r := &records[i]
		r.Variant, r.Workload, r.Detail, r.Code = attack+r.Variant, attack, attack, attack
		if !r.Success() {
			r.Outcome = record.Outcome(attack)
		}
	}
	m.Ledger = record.Ledger(records)
	v := judged(t, m, records)
	v.Clauses[0].ID, v.Clauses[0].Need, v.Clauses[0].Severity = attack, attack, attack
	v.Clauses[1].Notes = []string{attack}
	a, b := Side{attack, m, records, m.Variants[0].Name}, Side{attack, m, records, m.Variants[1].Name}
	return Build(m, records, v), Compare(a, b)
}

func TestHostileText(t *testing.T) {
	for _, attack := range attacks {
		d, c := hostile(t, attack)
		for _, width := range []int{20, 60, 130} {
			o := TextOptions{Width: width}
			text := render(t, func(w io.Writer, d *Document) error { return Text(w, d, o) }, d)
			checkText(t, attack, text)
			for _, l := range strings.Split(string(text), "\n") {
				if n := columns(l); width >= 60 && n > width {
					t.Errorf("%.40q: at width %d a line of %d: %q", attack, width, n, l)
				}
			}
			checkText(t, attack, render(t, func(w io.Writer, c *Comparison) error { return CompareText(w, c, o) }, c))
		}
		coloured := render(t, renderers["colour.txt"], d)
		checkText(t, attack, regexp.MustCompile("\x1b\\[[0-9;]+m").ReplaceAll(coloured, nil))
		checkMarkdown(t, attack, string(render(t, Markdown, d)))
		checkMarkdown(t, attack, string(render(t, CompareMarkdown, c)))
		checkXML(t, render(t, JUnit, d))
		checkPage(t, attack, string(render(t, HTML, d)))
		for _, j := range [][]byte{render(t, JSON, d), render(t, CompareJSON, c)} {
			if !json.Valid(j) || bytes.Count(j, []byte("\n")) != 1 {
				t.Errorf("%q: the JSON is not one valid line", attack)
			}
		}
	}
}

// checkText demands that a terminal can only print.
func checkText(t *testing.T, attack string, out []byte) {
	t.Helper()
	if !utf8.Valid(out) {
		t.Errorf("%q: invalid UTF-8", attack)
	}
	for _, r := range string(out) {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029') {
			t.Fatalf("%q: %U reached the terminal", attack, r)
		}
	}
	for _, l := range strings.Split(string(out), "\n") {
		if strings.HasPrefix(l, "PASS") {
			t.Errorf("%q: a line that looks like the verdict: %q", attack, l)
		}
	}
}

var unescapedPipe = regexp.MustCompile(`(^|[^\\])\|`)

func checkMarkdown(t *testing.T, attack, out string) {
	t.Helper()
	literal := regexp.MustCompile(`\\.`).ReplaceAllString(out, "")
	for _, bad := range []string{"<", ">", "@", "://", "www.", "![", "](", "`"} {
		if strings.Contains(literal, bad) {
			t.Errorf("%q: %q reached the Markdown", attack, bad)
		}
	}
	want := 0
	for _, l := range strings.Split(out, "\n") {
		if !strings.HasPrefix(l, "|") {
			want = 0
			continue
		}
		n := len(unescapedPipe.FindAllString(strings.ReplaceAll(l, `\\`, ""), -1))
		if want != 0 && n != want {
			t.Errorf("%q: a table of %d bars has a row of %d: %s", attack, want, n, l)
		}
		want = n
	}
}

func checkXML(t *testing.T, out []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(out))
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the XML is not well formed: %v", err)
		}
	}
}

var (
	anyTag  = regexp.MustCompile(`<(/?[a-zA-Z!][a-zA-Z0-9]*)([^>]*)>`)
	anyAttr = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9:-]*)="([^"]*)"`)
	ownTags = strings.Fields("!doctype html head meta link title style body main header h1 h2 h3 p span section strong code ul ol li dl dt dd div table thead tbody tr th td sup a br svg text line path rect circle figure figcaption details summary pre footer")
	ownAttr = strings.Fields("lang charset http-equiv content name class viewBox aria-hidden aria-label role d x y x1 x2 y1 y2 width height text-anchor cx cy r title data-of href rel id colspan")
)

// checkPage demands that the page holds no element and no attribute but its
// own, and refers to nothing but itself.
func checkPage(t *testing.T, attack, page string) {
	t.Helper()
	for _, m := range anyTag.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(ownTags, strings.ToLower(strings.TrimPrefix(m[1], "/"))) {
			t.Fatalf("%q: foreign element %s", attack, m[0])
		}
		rest := anyAttr.ReplaceAllString(m[2], "")
		if strings.ContainsAny(rest, `="'`) {
			t.Fatalf("%q: an attribute that is not quoted: %s", attack, m[0])
		}
		for _, a := range anyAttr.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(ownAttr, a[1]) {
				t.Fatalf("%q: foreign attribute %s in %s", attack, a[1], m[0])
			}
			if a[1] == "href" && !strings.HasPrefix(a[2], "#note-") && m[0] != `<link rel="icon" href="data:,">` {
				t.Fatalf("%q: a link that leaves the page: %s", attack, m[0])
			}
		}
	}
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	for _, bad := range []string{"url(", "@import", "@font-face", "expression"} {
		if strings.Contains(style, bad) {
			t.Errorf("the style holds %s", bad)
		}
	}
	sum := sha256.Sum256([]byte(style))
	if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(page, want) {
		t.Errorf("the policy of the page does not allow its own style: want %s", want)
	}
	if !strings.Contains(page, `content="default-src 'none';`) {
		t.Error("the page has no policy")
	}
}

func TestBuildLeavesItsInputAlone(t *testing.T) {
	m, records := usual().build()
	m.Name = "\x1b[31mname"
	v := judged(t, m, records)
	v.Clauses[0].Reason = "a\x00b"
	Build(m, records, v)
	if m.Name != "\x1b[31mname" || v.Clauses[0].Reason != "a\x00b" {
		t.Error("Build changed the manifest or the verdict that it was given")
	}
}

// liveMarkup is what Markdown would not take literally.
var liveMarkup = regexp.MustCompile(`[<>@]|://|www\.\S`)

func FuzzClean(f *testing.F) {
	for _, a := range attacks {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, lines := range []bool{false, true} {
			got := clean(s, lines)
			if !utf8.ValidString(got) {
				t.Fatalf("clean(%q) = %q is not UTF-8", s, got)
			}
			for _, r := range got {
				if hidden(r) && (r != '\n' || !lines) {
					t.Fatalf("clean(%q) = %q keeps %U", s, got, r)
				}
			}
			if again := clean(got, lines); again != got {
				t.Fatalf("clean is not idempotent on %q: %q, then %q", s, got, again)
			}
		}
		md := escape(clean(s, false))
		if bad := liveMarkup.FindString(md); bad != "" {
			t.Fatalf("escape(%q) = %q keeps %s", s, md, bad)
		}
	})
}
