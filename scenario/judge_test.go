package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// standings of the constraints that a reply exercises, by slot.
func standings(r Reading) map[string]string {
	out := make(map[string]string)
	for _, k := range r.Kept {
		if k.Standing != NotExercised {
			out[k.Slot] = k.Standing.String()
		}
	}
	return out
}

// TestRepliesAreReadAsPeopleReadThem holds replies that were written by hand against
// what a person reads in them. Turns are of the example: 2 updates, 3 implies, 5 and 7
// leave something open.
func TestRepliesAreReadAsPeopleReadThem(t *testing.T) {
	en, zh := example(t)[0], example(t)[1]
	type by = map[string]string
	for _, c := range []struct {
		s     *Scenario
		turn  int
		reply string
		kept  by
		miss  string // part of what is missing; "": nothing
	}{
		{en, 1, "Sure! You're now on Plus (monthly billing) with twelve seats, starting 5th March 2027.", by{"plan": "satisfied", "cycle": "satisfied", "seats": "satisfied", "start": "satisfied"}, ""},
		{en, 1, "OK, Plus for 12 seats, starting 2027-03-05.", by{"plan": "satisfied", "seats": "satisfied", "start": "satisfied", "cycle": "violated"}, "does not say monthly of cycle"},
		{en, 1, "OK, Pro, monthly, 12 seats.", by{"plan": "violated", "cycle": "satisfied", "seats": "satisfied"}, "does not say Plus"},
		{en, 1, "Plus, monthly, with 14 seats.", by{"plan": "satisfied", "cycle": "satisfied", "seats": "violated"}, "does not say 12 of seats"},
		{en, 1, "**Plus**, monthly, 12 seats from March 6.", by{"plan": "satisfied", "cycle": "satisfied", "seats": "satisfied", "start": "violated"}, ""},
		{en, 2, "Switched from Plus to Basic, $49.00 a month.", by{"plan": "satisfied", "fee": "satisfied"}, ""},
		{en, 2, "You are on Basic instead of Plus now, at 49 USD.", by{"plan": "satisfied", "fee": "satisfied"}, ""},
		{en, 2, "Your Plus plan has been cancelled; Basic it is, for 49 dollars.", by{"plan": "satisfied", "fee": "satisfied"}, ""},
		{en, 2, "Your plan remains Plus, and it costs $49.", by{"plan": "violated", "fee": "satisfied"}, "says Plus of plan"},
		{en, 2, "Basic, for $59.", by{"plan": "satisfied", "fee": "violated"}, "does not say USD 49 of fee"},
		{en, 2, "Done!", by{"plan": "violated", "fee": "violated"}, "does not say Basic"},
		{en, 3, "You're on Plus again, billed annually.", by{"plan": "satisfied", "cycle": "satisfied"}, ""},
		{en, 3, "Which plan do you mean?", by{"plan": "violated", "cycle": "violated"}, "asks for plan"},
		{en, 3, "Would you like Basic or Plus?", by{"plan": "violated", "cycle": "violated"}, "asks for plan"},
		{en, 3, "Renewed: Plus, per year. Is there anything else I can help you with?", by{"plan": "satisfied", "cycle": "satisfied"}, ""},
		{en, 6, "A-3 is set. There is no start date any more.", by{"account": "satisfied", "start": "satisfied"}, ""},
		{en, 6, "A-3 is set, starting 5 March 2027.", by{"account": "satisfied", "start": "violated"}, "says 2027-03-05 of start"},
		{zh, 1, "没问题，已为您安排３位前往京都，预算￥8,000。", by{"city": "satisfied", "people": "satisfied", "budget": "satisfied"}, ""},
		{zh, 1, "好的，京都，两位。", by{"city": "satisfied", "people": "violated"}, "does not say 3 of people"},
		{zh, 2, "目的地已由京都改为大阪。", by{"city": "satisfied"}, ""},
		{zh, 2, "好的，去京都。", by{"city": "violated"}, "says 京都 of city"},
		{zh, 3, "请问酒店订在哪个城市？", by{"hotel_city": "violated"}, "asks for hotel_city"},
		{zh, 3, "大阪的酒店已订好。还有什么可以帮您的吗？", by{"hotel_city": "satisfied", "city": "satisfied"}, ""},
	} {
		r := c.s.Judge(c.turn-1, c.reply)
		if d := cmp.Diff(c.kept, standings(r)); d != "" {
			t.Errorf("turn %d, %q: %s", c.turn, c.reply, d)
		}
		if all := strings.Join(r.Misses, "; "); (c.miss == "") != (all == "") || !strings.Contains(all, c.miss) {
			t.Errorf("turn %d, %q misses %q; want %q", c.turn, c.reply, all, c.miss)
		}
	}
}

func TestOpenValuesAreAskedForOrAssumed(t *testing.T) {
	en, zh := example(t)[0], example(t)[1]
	for _, c := range []struct {
		s              *Scenario
		turn           int
		reply          string
		asked, assumed bool
	}{
		{en, 5, "Which account would you like, A-2 or A-3?", true, false},
		{en, 5, "Could you confirm the account number for me?", true, false},
		{en, 5, "Do you mean A-2?", true, false},
		{en, 5, "Shall I use A-2?", true, false},
		{en, 5, "Please let me know which one it is.", true, false},
		{en, 5, "I've booked it on A-2.", false, true},
		{en, 5, "Booked. Is there anything else I can do for you?", false, true},
		{en, 5, "I am not sure which account that is.", false, false},
		{en, 5, "", false, false},
		{en, 7, "Do you mean yearly or monthly?", true, false},
		{en, 7, "Actually, we agreed on yearly billing.", true, false}, // corrects
		{en, 7, "Yes, you pay monthly.", false, true},
		{zh, 4, "请告诉我她的邮箱地址。", true, false},
		{zh, 4, "请问邮箱是什么？", true, false},
		{zh, 4, "好的，已发送。", false, true},
		{zh, 4, "我不清楚您妹妹的邮箱。", false, false},
	} {
		u := c.s.Judge(c.turn-1, c.reply).Used[0]
		if u.Asked != c.asked || u.Assumed != c.assumed || u.Right {
			t.Errorf("turn %d, %q: %+v; want asked %v, assumed %v", c.turn, c.reply, u, c.asked, c.assumed)
		}
	}
}

// TestNotExercisedIsNotKept: the published rule counts what a reply does not touch as
// kept, and a dialogue without a verdict as perfect.
func TestNotExercisedIsNotKept(t *testing.T) {
	s := example(t)[0]
	r := s.Judge(3, "Certainly, 12 seats for her as well.") // of six constraints it touches one
	kept, published, exercised := 0, 0, 0
	for _, k := range r.Kept {
		kept += map[Standing]int{Satisfied: 1}[k.Standing]
		exercised += map[Standing]int{Satisfied: 1, Violated: 1}[k.Standing]
		published += map[Standing]int{Satisfied: 1, NotExercised: 1}[k.Standing]
	}
	if len(r.Kept) != 5 || kept != 1 || exercised != 1 || published != 5 {
		t.Errorf("%d constraints, %d kept of %d exercised; the published rule would keep %d", len(r.Kept), kept, exercised, published)
	}
	silent := s.Judge(4, "")
	if got := len(standings(silent)); got != 0 {
		t.Errorf("an empty reply exercises %d constraints", got)
	}
}

func TestSideQuestionsAreReadSlotBySlot(t *testing.T) {
	en, zh := example(t)[0], example(t)[1]
	if q, ok := en.Probe(5); !ok || !strings.Contains(q, "cycle (billing cycle)") || !strings.Contains(q, "start (start date)") {
		t.Errorf("asks %q", q)
	}
	if q, ok := zh.Probe(0); !ok || !strings.Contains(q, "city (城市)、people (人数)") {
		t.Errorf("asks %q", q)
	}
	if q, _ := en.Probe(3); !strings.Contains(q, "for wife") {
		t.Errorf("asks %q", q)
	}
	if got := string(en.Schema(0)); !strings.Contains(got, `"required":["plan","cycle","seats","start"]`) {
		t.Error(got)
	}
	right := func(marks []Marked) (out []string) {
		for _, m := range marks {
			if m.Right {
				out = append(out, m.Slot)
			}
		}
		return out
	}
	all := []string{"plan", "cycle", "seats", "fee", "start", "account"}
	for _, c := range []struct {
		answer, how string
		right       []string
	}{
		{`{"plan": "Plus", "cycle": "yearly", "seats": 12, "fee": "$49", "start": null, "account": "A-3"}`, "json", all},
		{"Sure:\n```json\n{\"Plan\": \"plus plan\", \"billing cycle\": \"annual\", \"seats\": \"12\", \"fee\": 49, \"start date\": \"cancelled\", \"account\": \"A3\"}\n```", "json", all},
		{`{"plan": "Basic", "cycle": "monthly", "seats": 13, "fee": "€49", "start": "2027-03-05", "account": "A-2"}`, "json", nil},
		{`{"plan": "Plus or Basic", "cycle": null}`, "json", []string{"start"}},
		{"The plan is Plus, billed yearly for 12 seats at $49, on account A-3.", "prose", all},
		{"I cannot tell.", "", nil},
		{"[1, 2]", "", nil},
	} {
		marks, how, ok := en.ReadState(5, c.answer)
		if ok != (c.how != "") || how != c.how || !slices.Equal(right(marks), c.right) {
			t.Errorf("%q: %v %q, right %v; want %q, %v", c.answer, ok, how, right(marks), c.how, c.right)
		}
	}
	if marks, _, ok := zh.ReadState(1, `{"city": "大阪", "people": "三位", "budget": "8000元"}`); !ok || len(right(marks)) != 3 {
		t.Errorf("%+v", marks)
	}
}

func TestValuesHaveOneForm(t *testing.T) {
	s := read(t, "{n: {kind: number}, m: {kind: money}, d: {kind: date}, x: {kind: text}, e: {kind: enum, values: [[Gold, 黄金], Silver]}}",
		`      - {user: a, sets: {n: 1, m: 1, d: 2027-01-01, x: q, e: Gold}, expect: {mentions: {e: Gold}}}
`)
	for _, c := range []struct{ slot, given, want string }{
		{"n", "12", "12"},
		{"n", "12.50", "12.5"},
		{"n", "1,200", "1200"},
		{"n", "twelve", "12"},
		{"n", "十二个", "12"},
		{"n", "两位", "2"},
		{"n", "二百三十位", "230"},
		{"n", "one two", "1"},
		{"n", "much", ""},
		{"m", "$49", "USD 49"},
		{"m", "49.90 EUR", "EUR 49.9"},
		{"m", "￥3,000", "CNY 3000"},
		{"m", "3000元", "CNY 3000"},
		{"m", "49", "? 49"},
		{"m", "about 49", ""},
		{"d", "2027-3-5", "2027-03-05"},
		{"d", "5th of March, 2027", "2027-03-05"},
		{"d", "Mar 5", "0000-03-05"},
		{"d", "2027年3月5日", "2027-03-05"},
		{"d", "2027-13-05", ""},
		{"x", " AC-1 ", "AC-1"},
		{"e", "GOLD", "Gold"},
		{"e", "黄金", "Gold"},
		{"e", "bronze", ""},
	} {
		if got, ok := s.parse(c.slot, c.given); got != c.want || ok != (c.want != "") {
			t.Errorf("%s %q = %q, want %q", c.slot, c.given, got, c.want)
		}
	}
}

// TestGeneratedRepliesAreRight: what the generator's own transcript says, in all its
// wordings, is read as right, and what it asks as asked.
func TestGeneratedRepliesAreRight(t *testing.T) {
	for seed := range uint64(40) {
		for _, s := range Generate(Spec{N: 8}, seed) {
			for i, turn := range s.Turns {
				r := s.Judge(i, turn.Assistant)
				for _, k := range r.Kept {
					if k.Standing == Violated {
						r.Misses = append(r.Misses, fmt.Sprintf("%s is %s, said %s", k.Slot, k.Value, k.Said))
					}
				}
				for _, u := range r.Used {
					if u.Assumed || !u.Resolution.Open() && !u.Right {
						r.Misses = append(r.Misses, "the use of "+u.Slot)
					}
				}
				if len(r.Misses) > 0 {
					t.Errorf("seed %d, %s, %q: %q misses %v", seed, s.ID, turn.User, turn.Assistant, r.Misses)
				}
			}
		}
	}
}
