// Command overlap measures package overlap beside sacrebleu and rouge_score: the
// CPU time of each metric on one corpus of 3,004 segments, the size of WMT17's
// test set, in one run, and the ratio. Neither side counts its start.
//
//	go run ./scripts/overlap -python "$(scripts/python/install.sh | tail -n 1)"
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/assay-llm/assay/overlap"
)

const segments = 3004

func main() {
	python := flag.String("python", "python3", "an interpreter with sacrebleu and rouge_score")
	oracle := flag.String("oracle", "scripts/overlap/oracle.py", "what it runs")
	flag.Parse()
	if err := measure(*python, *oracle); err != nil {
		fmt.Fprintln(os.Stderr, "overlap:", err)
		os.Exit(4)
	}
}

type line struct {
	Hyp string `json:"hyp"`
	Ref string `json:"ref"`
}

func measure(python, oracle string) error {
	corpus := made(rand.New(rand.NewPCG(1, 2)))
	dir, err := os.MkdirTemp("", "overlap")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var text bytes.Buffer
	words := 0
	for _, l := range corpus {
		words += len(strings.Fields(l.Ref))
		if err := json.NewEncoder(&text).Encode(l); err != nil {
			return err
		}
	}
	file := filepath.Join(dir, "corpus.jsonl")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(python, oracle, "time", file)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running %s: %w", oracle, err)
	}
	var theirs map[string][2]float64
	if err := json.Unmarshal(out, &theirs); err != nil {
		return fmt.Errorf("reading what %s says: %w", oracle, err)
	}
	fmt.Printf("%d segments, %.1f words each; seconds of CPU\n%-12s %8s %8s %7s\n", segments, float64(words)/segments, "", "theirs", "ours", "ratio")
	for _, m := range []overlap.Metric{
		overlap.BLEU{},
		overlap.CHRF{},
		overlap.CHRF{WordOrder: 2},
		overlap.TER{},
		overlap.ROUGE{Type: "1", Stem: true},
		overlap.ROUGE{Type: "2", Stem: true},
		overlap.ROUGE{Type: "L", Stem: true},
		overlap.ROUGE{Type: "Lsum", Stem: true},
	} {
		before := cpu()
		score, err := scored(m, corpus)
		if err != nil {
			return err
		}
		ours, them := cpu()-before, theirs[m.Name()]
		if math.Abs(score-them[1]) > 1e-8 {
			return fmt.Errorf("%s is %v here and %v there", m.Name(), score, them[1])
		}
		fmt.Printf("%-12s %8.3f %8.4f %6.0fx\n", m.Name(), them[0], ours, them[0]/ours)
	}
	return nil
}

func scored(m overlap.Metric, corpus []line) (float64, error) {
	t, err := overlap.NewTally(m)
	if err != nil {
		return 0, err
	}
	for _, l := range corpus {
		if _, err := t.Add(overlap.Segment{Hypothesis: l.Hyp, References: []string{l.Ref}}); err != nil {
			return 0, err
		}
	}
	return t.Score()
}

// cpu is the CPU time of this process in seconds.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// made is text with the frequencies of words that language has, and what a
// translator may make of it: a fifth of the words are others, and a part moved.
func made(r *rand.Rand) []line {
	zipf := rand.NewZipf(r, 1.1, 3, 20_000)
	vocabulary := make([]string, 20_001)
	for i := range vocabulary {
		var w strings.Builder
		for range 1 + r.IntN(3) + min(i/500, 3) {
			w.WriteString([]string{"ba", "con", "de", "er", "ing", "ma", "ness", "o", "pre", "sta", "tion", "ver"}[r.IntN(12)])
		}
		vocabulary[i] = w.String()
	}
	out := make([]line, segments)
	for i := range out {
		var ref, hyp []string
		for range 6 + r.IntN(35) {
			w := vocabulary[zipf.Uint64()]
			if r.IntN(8) == 0 {
				w += ","
			}
			ref = append(ref, w)
			if r.IntN(5) == 0 {
				w = vocabulary[zipf.Uint64()]
			}
			hyp = append(hyp, w)
		}
		at, n := r.IntN(len(hyp)-4), 1+r.IntN(4)
		moved := append(append(append([]string{}, hyp[:at]...), hyp[at+n:]...), hyp[at:at+n]...)
		out[i] = line{strings.Join(moved, " ") + ".", strings.Join(ref, " ") + "."}
	}
	return out
}
