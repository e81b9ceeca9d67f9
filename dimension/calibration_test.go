package dimension

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
)

// labelled are n cases with people's labels and the verdicts of a judge that is one
// too generous in a quarter of them.
func labelled(n int) string {
	var b strings.Builder
	b.WriteString("case,prompt,answer,human,judge\n")
	for i := range n {
		human := 1 + i%4
		stored := human
		if i%16 < 4 {
			stored++
		}
		fmt.Fprintf(&b, "l%d,question %d,It is worth (%d) after all.,%d,%d\n", i, i, stored, human, stored)
	}
	return b.String()
}

// worth is the verdict that a text speaks of, moved by so many levels.
func worth(move func() int) func(answers, menu []string) string {
	return func(answers, _ []string) string {
		at := strings.Index(answers[0], "(")
		if at < 0 {
			return "3"
		}
		return fmt.Sprint(min(max(int(answers[0][at+1]-'0')+move(), 1), 5))
	}
}

func calibrated(criteria ...string) *FidelityConfig {
	c := fidelity(criteria...)
	c.Calibration = "labels.csv"
	return c
}

// A judge that has become stricter leaves the check inconclusive before anybody is
// asked; one that errs a little now and then in both directions, as ever, does not.
func TestFidelityFindsADriftingJudge(t *testing.T) {
	const seeds = 40
	rows, about := subjects()
	s, labels := set(t, rows), labelled(150)
	found, alarmed := 0, 0
	for seed := range uint64(seeds) {
		o := judgedWith(t, labels, seed, calibrated("completeness"), s, worth(func() int { return -1 }), says(about))
		if strings.Contains(o.Why, "the judge has drifted") && len(o.Records) == 0 && slices.ContainsFunc(o.Findings, func(f check.Finding) bool { return f.Code == "drift" }) {
			found++
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		var noise [1000]int // drawn before the judge is asked by several at a time
		for i := range noise {
			noise[i] = []int{-1, 0, 0, 0, 0, 0, 0, 0, 0, 1}[rng.IntN(10)]
		}
		moves := make(chan int, len(noise))
		for _, x := range noise {
			moves <- x
		}
		o = judgedWith(t, labels, seed, calibrated("completeness"), s, worth(func() int { return <-moves }), says(about))
		if o.Why != "" {
			alarmed++
			t.Logf("seed %d: %s", seed, o.Why)
		}
	}
	if found < seeds*95/100 || alarmed > seeds*5/100 {
		t.Errorf("a drift was found in %d and in a steady judge %d of %d runs", found, alarmed, seeds)
	}
}

func TestFidelityIsCorrectedByLabels(t *testing.T) {
	rows, about := subjects()
	generous := func(asked string) string { return about(asked) + " That is worth (4) to us." }
	o := judgedWith(t, labelled(160), 7, calibrated("completeness"), set(t, rows), worth(func() int { return 0 }), says(generous))
	if o.Why != "" {
		t.Fatal(o.Why)
	}
	i := slices.IndexFunc(o.Findings, func(f check.Finding) bool { return f.Code == "corrected" })
	if i < 0 {
		t.Fatalf("no corrected estimate in %+v", o.Findings)
	}
	// People's mean of the labelled is 0.375, the judge's 0.4375; the tuned correction lies
	// between what the labels say alone and the judge's 0.75 less its generosity.
	f := o.Findings[i].Figures
	if c := f["corrected"]; c < 0.37 || c > 0.70 || f["corrected.lo"] >= c || f["corrected.hi"] <= c {
		t.Errorf("corrected: %v", f)
	}
	if parts := strings.Split(o.Signatures[0].Data, "+"); len(parts) != 2 {
		t.Errorf("the signature names %q, without the labels", o.Signatures[0].Data)
	}
	o = judgedWith(t, labelled(99), 7, calibrated("completeness"), set(t, rows), worth(func() int { return 0 }), says(generous))
	if o.Why != "" || slices.ContainsFunc(o.Findings, func(f check.Finding) bool { return f.Code == "corrected" }) {
		t.Errorf("99 labels: why %q, findings %+v", o.Why, o.Findings)
	}
}

// From a judge that is too generous, and to the candidate more, the corrected figures
// hold what people say in about 95 of 100 runs, and the judge's own mean does not.
func TestFidelityCorrectsToTheTruth(t *testing.T) {
	const seeds, cases = 60, 60
	var rows strings.Builder
	for i := range cases {
		fmt.Fprintf(&rows, "{\"id\": \"c%d\", \"prompt\": \"question %d\"}\n", i, i)
	}
	s := set(t, rows.String())
	// Of a case people give the baseline's answer 1 or 2 and the candidate's up to two more;
	// the judge is one too generous in a fifth and in half of them.
	draw := func(r *rand.Rand) (human, judge [2]int) {
		q := 1 + r.IntN(2)
		human = [2]int{q, q + r.IntN(3)}
		judge = human
		for v, chance := range []float64{0.2, 0.5} {
			if r.Float64() < chance {
				judge[v]++
			}
		}
		return human, judge
	}
	const truth, difference = 0.375, 0.25
	covered, differed, stated, naive := 0, 0, 0, 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 2))
		var labels strings.Builder
		labels.WriteString("case,variant,prompt,answer,human,judge\n")
		for i := range 120 {
			human, judge := draw(r)
			for v, name := range []string{"baseline", "candidate"} {
				fmt.Fprintf(&labels, "l%d,%s,q %d,It is worth (%d) to us.,%d,%d\n", i, name, i, judge[v], human[v], judge[v])
			}
		}
		answers := [2]map[string]string{{}, {}}
		sum := 0.0
		for i := range cases {
			_, judge := draw(r)
			for v := range judge {
				answers[v][fmt.Sprintf("question %d", i)] = fmt.Sprintf("It is worth (%d) to us.", judge[v])
			}
			sum += float64(judge[1]-1) / 4 / cases
		}
		reply := func(v int) model { return says(func(asked string) string { return answers[v][asked] }) }
		o := judgedWith(t, labels.String(), seed, calibrated("completeness"), s, worth(func() int { return 0 }), reply(0), reply(1))
		if o.Why != "" {
			t.Fatal(o.Why)
		}
		for _, f := range o.Findings {
			switch x := f.Figures; {
			case f.Variant != "candidate":
			case f.Code == "corrected" && x["corrected.lo"] <= truth && truth <= x["corrected.hi"]:
				covered++
				if sum >= x["corrected.lo"] && sum <= x["corrected.hi"] {
					naive++
				}
			case f.Code == "difference":
				stated++
				if x["difference.lo"] <= difference && difference <= x["difference.hi"] {
					differed++
				}
			}
		}
	}
	t.Logf("of %d runs %d hold the mean and %d of %d the difference; %d the judge's own mean", seeds, covered, differed, stated, naive)
	if covered < seeds*90/100 || stated < seeds*88/100 || differed < stated*90/100 || naive > seeds*20/100 {
		t.Errorf("of %d runs %d hold the mean and %d of %d the difference; %d the judge's own mean", seeds, covered, differed, stated, naive)
	}
}

// Labels that can prove nothing of the judge leave the check inconclusive.
func TestFidelityOfUselessLabels(t *testing.T) {
	rows, about := subjects()
	for _, c := range []struct {
		name, labels, want string
		conf               *FidelityConfig
	}{
		{"too few", labelled(20), "are too few to find a drift", calibrated("completeness")},
		{"empty", "", "labels.csv:1: the file is empty", calibrated("completeness")},
		{"never judged", "case,answer,human\na,x,1\nb,y,2\n", "no column judge", calibrated("completeness")},
		{"no answers", "case,human,judge\na,1,1\nb,2,2\n", "no column answer", calibrated("completeness")},
		{"one order", "case,answer_a,answer_b,human,judge\na,x,y,candidate,tie\n", "no column judge_swapped", calibrated()},
		{"of nothing", labelled(150), "only compares", calibrated()},
		{"of either", labelled(150), "of completeness or of consistency", calibrated("completeness", "consistency")},
		{"no label of the menu", "case,answer,human,judge\na,x,good,1\nb,y,bad,2\n", "none of the menu", calibrated("completeness")},
	} {
		o := judgedWith(t, c.labels, 7, c.conf, set(t, rows), longerOr3, says(about), says(about))
		if !strings.Contains(o.Why, c.want) || len(o.Records) != 0 {
			t.Errorf("%s: why %q, want %q; %d records", c.name, o.Why, c.want, len(o.Records))
		}
	}
	broken := func(_, _ []string) string { return "!no JSON" }
	if o := judgedWith(t, labelled(150), 7, calibrated("completeness"), set(t, rows), broken, says(about)); !strings.Contains(o.Why, "judged again") {
		t.Errorf("a judge that answers nothing: %q", o.Why)
	}
}

func longerOr3(answers, menu []string) string {
	if len(answers) == 2 {
		return longer(answers, menu)
	}
	return "3"
}

// The canaries of pairs are judged in both orders.
func TestFidelityFindsADriftOfPairs(t *testing.T) {
	rows, about := subjects()
	var b strings.Builder
	b.WriteString("case,prompt,answer_a,answer_b,human,judge,judge_swapped\n")
	for i := range 150 {
		baseline, candidate, who := "short", "much longer", "candidate"
		if i%2 == 0 {
			baseline, candidate, who = candidate, baseline, "baseline"
		}
		fmt.Fprintf(&b, "l%d,question %d,%s,%s,%s,%s,%s\n", i, i, baseline, candidate, who, who, who)
	}
	o := judgedWith(t, b.String(), 7, calibrated(), set(t, rows), longer, says(about), says(about))
	if o.Why != "" {
		t.Errorf("the same judge: %s", o.Why)
	}
	tie := func(_, _ []string) string { return "tie" }
	if o := judgedWith(t, strings.ReplaceAll(b.String(), "baseline", "candidate"), 7, calibrated(), set(t, rows), tie, says(about), says(about)); !strings.Contains(o.Why, "drifted") {
		t.Errorf("a judge that calls everything a tie now: %q", o.Why)
	}
}

func TestFidelityControlsLength(t *testing.T) {
	rows, about := subjects()
	// The candidate's answers are longer by differing lengths or a little shorter, and the
	// judge loves length.
	mixed := func(asked string) string {
		if len(asked) == 8 {
			return strings.TrimSuffix(about(asked), " kg.") + "."
		}
		return about(asked) + strings.Repeat(" And more.", len(asked)%4+1)
	}
	o := judged(t, fidelity(), set(t, rows), longer, says(about), says(mixed))
	if o.Why != "" {
		t.Fatal(o.Why)
	}
	i := slices.IndexFunc(o.Findings, func(f check.Finding) bool { return f.Code == "length" })
	if i < 0 {
		t.Fatalf("no finding of length: %+v", o.Findings)
	}
	f := o.Findings[i]
	t.Log(f.Text, f.Figures)
	if raw, ok := f.Figures["raw"]; !ok || raw <= 0.5 || f.Figures["controlled"] >= raw || f.Variant != "candidate" {
		t.Errorf("%+v", f)
	}
}
