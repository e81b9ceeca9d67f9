package quiz

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Inquiry is a question about a passage of its own, so that no two depend on each
// other.
type Inquiry struct {
	ID       string // unique among those that were made together
	Language string // en or zh
	Source   string // the passage
	Prompt   string // the passage, the question, and what to do if it does not say
	Expect   string // the detail that answers it; "": the passage does not say
}

// detail is one thing that a passage may say of a place.
type detail struct {
	says  [2]string // two wordings, with the value in the place of %s
	asks  string
	value func(r *rand.Rand) string
}

var monthNames = strings.Fields("January February March April May June July August September October November December")

// places have a wording of their own in each language: what is invented, what is said
// of it, and how it is asked about.
var places = map[string]struct {
	kinds, names []string
	join         string // of a name and a kind
	details      []detail
	prompt       string
}{
	"en": {
		kinds: []string{"Museum", "Lighthouse", "Observatory", "Castle", "Garden"},
		names: strings.Fields("Velsar Tormund Ilkova Brenthal Osmiry Calderun Pethwick Yarrowin Dunmarra Sollentz"), join: " ",
		prompt: "Read the passage and answer the question in one short sentence, from the passage alone. If the passage does not say, write: The passage does not say.\n\nPassage: %s\n\nQuestion: %s",
		details: []detail{
			{[2]string{"It opened on %s.", "Its doors have been open since %s."}, "On what date did the %s open?", func(r *rand.Rand) string {
				return fmt.Sprintf("%d %s %d", 1+r.IntN(28), pick(r, monthNames), 1850+r.IntN(150))
			}},
			{[2]string{"It is run by %s.", "%s has been its director for some years."}, "Who runs the %s?", func(r *rand.Rand) string {
				return pick(r, []string{"Marta", "Edgar", "Lucia", "Viktor", "Selma", "Ronan"}) + " " + pick(r, []string{"Kolve", "Abrahams", "Winterbourne", "Ostrander", "Pellegrin", "Thackeray"})
			}},
			{[2]string{"It employs %s people.", "There are %s people on its staff."}, "How many people work at the %s?", func(r *rand.Rand) string { return fmt.Sprint(13 + r.IntN(180)) }},
			{[2]string{"A day ticket costs %s.", "Visitors pay %s for a day ticket."}, "What does a day ticket of the %s cost?", func(r *rand.Rand) string { return fmt.Sprintf("$%d.%d0", 5+r.IntN(30), r.IntN(10)) }},
			{[2]string{"It lies %s from the railway station.", "The railway station is %s away."}, "How far is the %s from the railway station?", func(r *rand.Rand) string { return fmt.Sprintf("%d.%d km", 1+r.IntN(9), 1+r.IntN(9)) }},
			{[2]string{"The guided tour takes %s.", "A guided tour of %s is offered every day."}, "How long does the guided tour of the %s take?", func(r *rand.Rand) string { return fmt.Sprintf("%d minutes", 35+5*r.IntN(20)) }},
			{[2]string{"Its main tower is %s high.", "The main tower rises to %s."}, "How high is the main tower of the %s?", func(r *rand.Rand) string { return fmt.Sprintf("%d m", 17+r.IntN(70)) }},
			{[2]string{"Groups book it with the code %s.", "The code for bookings by groups is %s."}, "With which code do groups book the %s?", func(r *rand.Rand) string {
				return fmt.Sprintf("%c%c-%d", 'A'+rune(r.IntN(26)), 'A'+rune(r.IntN(26)), 100+r.IntN(900))
			}},
		},
	},
	"zh": {
		kinds:  []string{"博物馆", "灯塔", "天文台", "城堡", "花园"},
		names:  strings.Fields("维尔萨 托蒙德 伊尔科 布伦塔 奥斯米 卡德伦 佩思威 雅罗温 邓马拉 索伦茨"),
		prompt: "阅读短文，只根据短文用一句话回答问题。如果短文没有说，请写：短文没有提到。\n\n短文：%s\n\n问题：%s",
		details: []detail{
			{[2]string{"它于%s开放。", "自%s起对公众开放。"}, "%s是哪一天开放的？", func(r *rand.Rand) string {
				return fmt.Sprintf("%d年%d月%d日", 1850+r.IntN(150), 1+r.IntN(12), 1+r.IntN(28))
			}},
			{[2]string{"这里有员工%s名。", "员工共有%s名。"}, "%s有多少名员工？", func(r *rand.Rand) string { return fmt.Sprint(13 + r.IntN(180)) }},
			{[2]string{"一日票的价格是%s。", "参观者需付%s购买一日票。"}, "%s的一日票多少钱？", func(r *rand.Rand) string { return fmt.Sprintf("%d.%d元", 25+r.IntN(130), 1+r.IntN(9)) }},
			{[2]string{"它距离火车站%s。", "火车站离这里%s。"}, "%s离火车站有多远？", func(r *rand.Rand) string { return fmt.Sprintf("%d.%d公里", 1+r.IntN(9), 1+r.IntN(9)) }},
			{[2]string{"导览需要%s。", "每天都有%s的导览。"}, "%s的导览需要多长时间？", func(r *rand.Rand) string { return fmt.Sprintf("%d分钟", 35+5*r.IntN(20)) }},
			{[2]string{"主塔高%s。", "主塔的高度是%s。"}, "%s的主塔有多高？", func(r *rand.Rand) string { return fmt.Sprintf("%d米", 17+r.IntN(70)) }},
			{[2]string{"团体预订代码是 %s。", "团体用代码 %s 预订。"}, "%s的团体预订代码是什么？", func(r *rand.Rand) string {
				return fmt.Sprintf("%c%c-%d", 'A'+rune(r.IntN(26)), 'A'+rune(r.IntN(26)), 100+r.IntN(900))
			}},
		},
	},
}

const (
	said       = 5 // details in a passage
	unanswered = 4 // every so many questions one is not answered by its passage
)

// Inquiries makes n questions, each with a passage. The languages take turns, and of
// each every fourth question has no answer in its passage. Nil languages are all.
func Inquiries(seed uint64, n int, languages []string) []Inquiry {
	if len(languages) == 0 {
		languages = Languages()
	}
	r := source(seed, 0x1c9a)
	out := make([]Inquiry, 0, n)
	for i := range n {
		language := languages[i%len(languages)]
		w := places[language]
		name := pick(r, w.names) + w.join + pick(r, w.kinds)
		order := r.Perm(len(w.details))
		values, text := make([]string, said), []string{}
		for k := range said {
			d := w.details[order[k]]
			values[k] = d.value(r)
			text = append(text, fmt.Sprintf(d.says[r.IntN(2)], values[k]))
		}
		at := r.IntN(said)
		expect := values[at]
		if i/len(languages)%unanswered == unanswered-1 {
			at, expect = said+r.IntN(len(order)-said), ""
		}
		passage := opening(language, name) + strings.Join(text, w.join)
		out = append(out, Inquiry{
			ID: fmt.Sprintf("inquiry-%s-%04d", language, i), Language: language, Source: passage, Expect: expect,
			Prompt: fmt.Sprintf(w.prompt, passage, fmt.Sprintf(w.details[order[at]].asks, name)),
		})
	}
	return out
}

func opening(language, name string) string {
	if language == "zh" {
		return name + "在当地很有名。"
	}
	return "The " + name + " is well known in its region. "
}
