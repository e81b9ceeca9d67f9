package quiz

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/assay-llm/assay/verify"
)

// Question is a task with one right answer.
type Question struct {
	ID       string // unique among those that were made together
	Task     string // sum, fact, choice, list or json
	Language string // en or zh
	Prompt   string
	Expected verify.Expected
}

type maker func(r *rand.Rand) (prompt string, e verify.Expected)

var tasks = []struct {
	name string
	in   map[string]maker
}{
	{"sum", map[string]maker{"en": sum, "zh": sumZH}},
	{"fact", map[string]maker{"en": fact, "zh": factZH}},
	{"choice", map[string]maker{"en": choice, "zh": choiceZH}},
	{"list", map[string]maker{"en": list, "zh": listZH}},
	{"json", map[string]maker{"en": object, "zh": objectZH}},
}

// Questions makes n questions: the tasks take turns, and for each the languages.
// Nil languages are all.
func Questions(seed uint64, n int, languages []string) []Question {
	if len(languages) == 0 {
		languages = Languages()
	}
	r := source(seed, 0x9417)
	out := make([]Question, 0, n)
	for i := range n {
		q := Question{Language: languages[i/len(tasks)%len(languages)]}
		task := tasks[i%len(tasks)]
		q.Task = task.name
		q.ID = fmt.Sprintf("%s-%s-%03d", q.Task, q.Language, i)
		q.Prompt, q.Expected = task.in[q.Language](r)
		out = append(out, q)
	}
	return out
}

var (
	people    = strings.Fields("Anna Bruno Clara David Elena Felix Greta Hugo Irene Jonas")
	peopleZH  = strings.Fields("王芳 李强 张敏 刘洋 陈静 杨磊 赵丽 黄涛 周杰 吴霞")
	things    = strings.Fields("apples pencils stamps marbles tickets cups")
	thingsZH  = strings.Fields("苹果 铅笔 邮票 弹珠 门票 杯子")
	objects   = strings.Fields("key map lamp rope radio compass")
	keepsakes = strings.Fields("钥匙 地图 台灯 绳子 收音机 指南针")
)

func number(x int) verify.Expected {
	return verify.Expected{Kind: verify.Number, Value: fmt.Sprint(x)}
}

func sum(r *rand.Rand) (string, verify.Expected) {
	has, boxes, each, gives := 5+r.IntN(40), 2+r.IntN(7), 3+r.IntN(9), 1+r.IntN(5)
	return fmt.Sprintf("%s has %d %[3]s, buys %d boxes with %d %[3]s each, and then gives %d away. How many %[3]s are left? Think briefly, and end with a line that reads Answer: NUMBER",
		pick(r, people), has, pick(r, things), boxes, each, gives), number(has + boxes*each - gives)
}

func sumZH(r *rand.Rand) (string, verify.Expected) {
	has, boxes, each, gives := 5+r.IntN(40), 2+r.IntN(7), 3+r.IntN(9), 1+r.IntN(5)
	return fmt.Sprintf("%s有%d个%[3]s，又买了%d盒，每盒%d个，然后送出%d个。现在还有多少个%[3]s？请简短思考，最后一行写：答案：数字",
		pick(r, peopleZH), has, pick(r, thingsZH), boxes, each, gives), number(has + boxes*each - gives)
}

func fact(r *rand.Rand) (string, verify.Expected) {
	who, what := some(r, people, 4), some(r, objects, 4)
	asked := r.IntN(4)
	return fmt.Sprintf("%s keeps the %s, %s the %s, %s the %s, and %s the %s. Who keeps the %s? Answer with the name alone.",
		who[0], what[0], who[1], what[1], who[2], what[2], who[3], what[3], what[asked]), verify.Expected{Kind: verify.Choice, Value: who[asked], Options: who}
}

func factZH(r *rand.Rand) (string, verify.Expected) {
	who, what := some(r, peopleZH, 4), some(r, keepsakes, 4)
	asked := r.IntN(4)
	return fmt.Sprintf("%s保管%s，%s保管%s，%s保管%s，%s保管%s。谁保管%s？只回答姓名。",
		who[0], what[0], who[1], what[1], who[2], what[2], who[3], what[3], what[asked]), verify.Expected{Kind: verify.Choice, Value: who[asked], Options: who}
}

// largest names the place of the largest of four numbers.
func largest(numbers []int) verify.Expected {
	at := 0
	for i, x := range numbers {
		if x > numbers[at] {
			at = i
		}
	}
	return verify.Expected{Kind: verify.Choice, Value: string(rune('A' + at)), Options: []string{"A", "B", "C", "D"}}
}

func choice(r *rand.Rand) (string, verify.Expected) {
	n := apart(r, 4, 120, 980)
	return fmt.Sprintf("Which number is the largest?\nA) %d\nB) %d\nC) %d\nD) %d\nAnswer with the letter alone.", n[0], n[1], n[2], n[3]), largest(n)
}

func choiceZH(r *rand.Rand) (string, verify.Expected) {
	n := apart(r, 4, 120, 980)
	return fmt.Sprintf("下面哪个数最大？\nA) %d\nB) %d\nC) %d\nD) %d\n只回答字母。", n[0], n[1], n[2], n[3]), largest(n)
}

// tickets are six codes of which two or three are open.
func tickets(r *rand.Rand, open, paid string) (notes string, want []string) {
	k := 2 + r.IntN(2)
	mine := r.Perm(6)[:k]
	var b strings.Builder
	for i, n := range apart(r, 6, 100, 999) {
		code := fmt.Sprintf("%c%c-%d", 'A'+rune(r.IntN(26)), 'A'+rune(r.IntN(26)), n)
		state := paid
		for _, m := range mine {
			if m == i {
				state, want = open, append(want, code)
			}
		}
		fmt.Fprintf(&b, "%s %s\n", code, state)
	}
	return b.String(), want
}

func list(r *rand.Rand) (string, verify.Expected) {
	notes, want := tickets(r, "open", "paid")
	return notes + "List the codes of all tickets that are open, separated by commas, and nothing else.", verify.Expected{Kind: verify.Set, Value: strings.Join(want, ", ")}
}

func listZH(r *rand.Rand) (string, verify.Expected) {
	notes, want := tickets(r, "未付", "已付")
	return notes + "列出所有未付票据的编号，用逗号分隔，不要写别的。", verify.Expected{Kind: verify.Set, Value: strings.Join(want, ", ")}
}

func object(r *rand.Rand) (string, verify.Expected) {
	who, n, room := pick(r, people), 2+r.IntN(30), 100+r.IntN(400)
	return fmt.Sprintf("Note: %s booked room %d for %d guests. Write this as JSON with the keys \"name\", \"room\" and \"guests\", the last two as numbers, and nothing else.", who, room, n),
		verify.Expected{Kind: verify.JSON, Value: fmt.Sprintf(`{"name":%q,"room":%d,"guests":%d}`, who, room, n)}
}

func objectZH(r *rand.Rand) (string, verify.Expected) {
	who, n, room := pick(r, peopleZH), 2+r.IntN(30), 100+r.IntN(400)
	return fmt.Sprintf("备注：%s预订了%d号房间，%d位客人。请写成JSON，键为\"name\"、\"room\"和\"guests\"，后两个写成数字，不要写别的。", who, room, n),
		verify.Expected{Kind: verify.JSON, Value: fmt.Sprintf(`{"name":%q,"room":%d,"guests":%d}`, who, room, n)}
}
