package perturb

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// texts are requests of all kinds, with what must not change in them.
var texts = []string{
	"Please help me to buy a big car for $300. I lost my credit card in Berlin yesterday. If I cancel the order, what happens to my refund?",
	"我想查询我的信用卡余额，请问如何办理？如果现在还款500元，可以马上恢复吗？没有收到短信，不能登录。",
	"The customer wants to return an unopened item after 12 days. It is not clear whether the shop allows it.",
	"Where is my parcel? The order A-1734 was paid on 2024-05-03, see https://shop.example/orders/A-1734 or `status --id 7`.",
	"- tell me the price\n- tell me the delivery date\n- tell me the address of the company",
	"轉帳的手續費是多少？請幫我查詢，謝謝。",
	"您好，麻烦您帮我把套餐改成流量更大的，谢谢！我的号码是１３８。",
	"Hi, I can't open {attachment}; it's two pages from \"Annual Report\". Thanks a lot!",
	"You shouldn't note that. They quite often choose a difficult method, but we are happy to assist.",
	"Goods: apples, pears and plums. 水果：苹果、梨子、香蕉。",
	"I", "", "不", "7", "HELLO WORLD", "a big error", "\xff broken",
}

func TestApply(t *testing.T) {
	for _, tc := range []struct {
		family Family
		clean  string
		want   string // a regular expression; "": there is no valid result
	}{
		{Synonym, "They need a big box.", `^They require a (?:big|large) box\.$|^They need a large box\.$`},
		{Synonym, "It was an error of the client.", `^It was an? (?:mistake|fault|error) of the (?:client|customer)\.$`},
		{Synonym, "What is big data?", ""},
		{Synonym, "The fee is due. Can you charge the fee?", ""}, // the charge is another word here
		{Synonym, "客户和顾客", ""},
		{Synonym, "Need is a noun here, and the shop window too.", ""},
		{Synonym, "请问如何退还商品？", `^(?:请问|想请教)(?:如何|怎样)(?:退还|返还)(?:商品|货品)？$`},
		{Reorder, "If the parcel is late, you can write to the shop.", `^You can write to the shop if the parcel is late\.$`},
		{Reorder, "The shop opens at nine. Parking costs two euros.", `^Parking costs two euros\. The shop opens at nine\.$`},
		{Reorder, "First open the box. Next remove the tape.", ""},
		{Reorder, "The box is red. It is heavy.", ""},
		{Politeness, "Where is my order?", `^(?:[A-Z][a-z ]+[.!] )?Where is my order\?(?: .*(?:Thank|thanks).*)?`},
		{Politeness, "我的订单在哪里？", `^(?:[您你]好[，！])?我的订单在哪里？`},
		{Typos, "Where is it?", `^W[a-z]{3,5} is it\?$`},
		{Typos, "Is it on or off? It is", ""},
		{Misspelling, "I did not receive it.", `^I did not recieve it\.$`},
		{Misspelling, "RECEIVE it", ""}, // in capitals it may be a name
		{Case, "The box is red.", `^the box is red\.$|[A-Z]{3}`},
		{Spacing, "Yes, it is.", `^Yes,it is\.$|  | ,`},
		{Contraction, "It is late.", `^It's late\.$`},
		{Contraction, "I'm late.", `^I am late\.$`},
		{Contraction, "It's been lost.", ""}, // it has
		{Contraction, "I do not know what it is.", ""},
		{Homophone, "Is their car red?", `^Is (?:there|they're) car red\?$`},
		{Homophone, "办理", `^[^办].$|^.[^理]$`},
		{Homophone, "25个月", ""},
		{Shape, "请问", `^清问$|^情问$|^晴问$|^请间$`},
		{Particle, "漂亮的花", `^漂亮[地得]花$`},
		{Particle, "目的地地址", ""},
		{Script, "办理转账", `^辦理轉賬$`},
		{Script, "辦理轉賬", `^办理转账$`},
		{Width, "收12元，好吗", `１２|,`},
		{Width, "It costs 12 euros, right?", ""},
		{Term, "Block my credit card.", `^Block my kredit kard\.$`},
		{Term, "查余额", `^查鱼额$`},
		{"none", "text", ""},
	} {
		r := Apply(tc.family, tc.clean, 3, "case", Options{})
		if tc.want == "" {
			if r.Valid || r.Text != tc.clean || r.Why == "" {
				t.Errorf("%s of %q: %+v; want that it is not valid, and why", tc.family, tc.clean, r)
			}
			continue
		}
		if !r.Valid || !regexp.MustCompile(tc.want).MatchString(r.Text) {
			t.Errorf("%s of %q: %q, valid %v (%s); want %s", tc.family, tc.clean, r.Text, r.Valid, r.Why, tc.want)
		}
	}
}

// TestWhatMustStayStays holds the rules of validity for every family, many draws
// and the largest rate.
func TestWhatMustStayStays(t *testing.T) {
	valid := make(map[Family]int)
	for _, f := range Families() {
		for _, s := range slices.Concat(texts, public(t)) {
			for seed := range uint64(5) {
				o := Options{Protect: []string{"parcel", "信用"}}
				if seed == 4 {
					o.Rate = 1
				}
				r := Apply(f, s, seed, "id", o)
				hold(t, f, s, r, o)
				if r.Valid {
					valid[f]++
				}
				if again := Apply(f, s, seed, "id", o); again.Text != r.Text {
					t.Fatalf("%s of %q gave %q and %q", f, s, r.Text, again.Text)
				}
			}
		}
	}
	for _, f := range Families() {
		if valid[f] < 5 {
			t.Errorf("%s has %d valid results of all these texts; the rules leave it nothing", f, valid[f])
		}
	}
}

// hold is what is promised of a result.
func hold(t *testing.T, f Family, clean string, r Result, o Options) {
	t.Helper()
	if !r.Valid {
		if r.Text != clean || r.Why == "" || len(r.Changes) > 0 {
			t.Fatalf("%s of %q is not valid, and changed something or says not why: %+v", f, clean, r)
		}
		return
	}
	switch {
	case r.Text == clean || len(r.Changes) == 0 || r.Why != "":
		t.Fatalf("%s of %q is valid without a change: %+v", f, clean, r)
	case !utf8.ValidString(r.Text):
		t.Fatalf("%s of %q is not UTF-8: %q", f, clean, r.Text)
	case utf8.RuneCountInString(r.Text) > 2*utf8.RuneCountInString(clean)+64:
		t.Fatalf("%s of %q is too long: %q", f, clean, r.Text)
	}
	if a, b := digits(clean), digits(r.Text); a != b {
		t.Fatalf("%s of %q has the digits %q; want %q", f, clean, b, a)
	}
	if a, b := negationRE.FindAllString(clean, -1), negationRE.FindAllString(r.Text, -1); len(a) != len(b) {
		t.Fatalf("%s of %q has the negations %q; want %q", f, clean, b, a)
	}
	for _, p := range o.Protect {
		if strings.Count(clean, p) > strings.Count(r.Text, p) {
			t.Fatalf("%s of %q lost %q: %q", f, clean, p, r.Text)
		}
	}
	at := 0
	for _, c := range r.Changes {
		if c.Start < at || c.End < c.Start || clean[c.Start:c.End] != c.Was || c.Was == c.Is {
			t.Fatalf("%s of %q has the change %+v", f, clean, c)
		}
		at = c.End
	}
}

// digits are those of a text, sorted and of half width.
func digits(s string) string {
	var out []rune
	for _, r := range narrow(s) {
		if unicode.IsDigit(r) {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return string(out)
}

// public are questions that people wrote, where the shared data is.
func public(t *testing.T) (out []string) {
	b, err := os.ReadFile("../../shared/data/zh/safetybench_test_zh_subset.json")
	if err != nil {
		return nil
	}
	var rows []struct{ Question string }
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(rows); i += 100 {
		out = append(out, rows[i].Question)
	}
	if b, err = os.ReadFile("../../shared/data/safety/xstest_prompts.csv"); err == nil {
		for i, line := range strings.Split(string(b), "\n") {
			if i%25 == 1 {
				out = append(out, line)
			}
		}
	}
	return out
}

func TestRateSaysHowMuch(t *testing.T) {
	clean := strings.Repeat("Several people ordered another parcel yesterday evening. ", 20)
	few, many := Apply(Typos, clean, 1, "a", Options{Rate: 0.05}), Apply(Typos, clean, 1, "a", Options{Rate: 0.8})
	if n, m := len(few.Changes), len(many.Changes); n < 5 || n > 9 || m < 90 {
		t.Errorf("5 and 80 %% of about 120 words: %d and %d were changed", n, m)
	}
	if r := Apply(Typos, clean, 1, "a", Options{Rate: 2}); r.Valid || !strings.Contains(r.Why, "rate") {
		t.Errorf("a rate of 2: %+v; want that it is none", r.Why)
	}
	one, two := Apply(Typos, clean, 1, "a", Options{}), Apply(Typos, clean, 1, "b", Options{})
	if one.Text == two.Text {
		t.Error("two cases had the same errors")
	}
}

// TestTables holds what the tables promise of themselves.
func TestTables(t *testing.T) {
	for name, table := range map[string]map[rune][]rune{"homophones": soundZh(), "shapes": lookalike()} {
		for r, group := range table {
			for _, c := range append([]rune{r}, group...) {
				if s := string(c); len(facts(s)) > 0 || logicRE.MatchString(s) || !isHan(c) {
					t.Errorf("%s has %s, which must not change", name, s)
				}
			}
			if slices.Contains(group, '买') || slices.Contains(group, '卖') && r == '买' {
				t.Errorf("%s turns buying into selling", name)
			}
		}
	}
	for name, table := range map[string]map[string][]string{"misspellings": misspelt(), "sounds": sounds()} {
		for w, with := range table {
			if len(with) == 0 || slices.Contains(with, w) || w != strings.ToLower(w) {
				t.Errorf("%s has %q for %q", name, with, w)
			}
		}
	}
	for w, with := range misheard() {
		if with == "" || with == w {
			t.Errorf("terms has %q for %q", with, w)
		}
	}
	for from, to := range traditional() {
		if simplified()[to] != from {
			t.Errorf("scripts has %c and %c one way only", from, to)
		}
	}
	for _, f := range Families() {
		if f.Doc() == "" {
			t.Errorf("%s says not what it does", f)
		}
	}
}

func TestInflection(t *testing.T) {
	for _, tc := range []struct {
		kind  byte
		entry string
		want  string
	}{
		{'v', "buy:bought", "buy buys buying bought bought"},
		{'v', "begin:began:begun+", "begin begins beginning began begun"},
		{'v', "modify", "modify modifies modifying modified modified"},
		{'v', "choose:chose:chosen", "choose chooses choosing chose chosen"},
		{'n', "company", "company companies"},
		{'n', "box", "box boxes"},
	} {
		if got := strings.Join(forms(tc.kind, tc.entry), " "); got != tc.want {
			t.Errorf("forms of %s: %s; want %s", tc.entry, got, tc.want)
		}
	}
}

func FuzzApply(f *testing.F) {
	for i, s := range texts {
		f.Add(i, s, "parcel", uint64(i))
	}
	f.Fuzz(func(t *testing.T, i int, s, protect string, seed uint64) {
		all := Families()
		o := Options{Protect: []string{protect}}
		k := all[(i%len(all)+len(all))%len(all)]
		r := Apply(k, s, seed, "x", o)
		o.Protect = nil // its occurrences may overlap with what is made of others
		hold(t, k, s, r, o)
	})
}
