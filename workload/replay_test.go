package workload

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/corpus"
)

func replayDues(p *Plan) (all []time.Duration) {
	for _, due := range p.dues() {
		all = append(all, due)
	}
	return all
}

// TestReplayKeepsOrderAndGaps: at any speed, request i is row i, and its instant
// is that of the row over the speed, to the nanosecond.
func TestReplayKeepsOrderAndGaps(t *testing.T) {
	rows := sets(t)["conv.csv"].Trace.Rows
	for _, tt := range []struct {
		arrivals string
		divisor  time.Duration
	}{{"{replay: {}}", 1}, {"{replay: {speed: 2}}", 2}, {"{replay: {speed: 10}}", 10}} {
		p := plan(t, "arrivals: "+tt.arrivals+"\nprompts: {file: conv.csv}\n", 1, "s")
		all := take(p.All(), 1000)
		if len(all) != len(rows) || p.Planned() != int64(len(rows)) || p.For() != all[len(all)-1].Due+1 {
			t.Fatalf("%s: %d shots, Planned %d, For %v", tt.arrivals, len(all), p.Planned(), p.For())
		}
		for i, s := range all {
			if diff := s.Due*tt.divisor - time.Duration(rows[i].At); diff > tt.divisor/2 || diff < -tt.divisor/2 {
				t.Errorf("%s: shot %d is due at %v, its row is at %v", tt.arrivals, i, s.Due, time.Duration(rows[i].At))
			}
			if s.MaxTokens != int64(rows[i].Output) {
				t.Errorf("%s: shot %d asks for %d tokens, its row has %d", tt.arrivals, i, s.MaxTokens, rows[i].Output)
			}
		}
	}
}

func TestReplayEnds(t *testing.T) {
	for _, tt := range []struct {
		end     string
		planned int64
		length  time.Duration
	}{
		{"for: 10s\n", 10, 10 * time.Second}, // rows 0 to 9 with their fractions
		{"requests: 3\n", 3, 2*time.Second + 2800 + 1},
		{"for: 10s\nrequests: 3\n", 3, 2*time.Second + 2800 + 1},
		{"for: 10h\n", 200, 0},
	} {
		p := plan(t, "arrivals: {replay: {}}\nprompts: {file: conv.csv}\n"+tt.end, 1, "s")
		all := replayDues(p)
		if tt.length == 0 {
			tt.length = all[len(all)-1] + 1
		}
		if p.Planned() != tt.planned || int64(len(all)) != tt.planned || p.For() != tt.length {
			t.Errorf("%s: Planned %d, %d shots, For %v, want %d, %v", tt.end, p.Planned(), len(all), p.For(), tt.planned, tt.length)
		}
		if want := float64(tt.planned) / tt.length.Seconds(); p.Rate() != want {
			t.Errorf("%s: rate %v, want %v", tt.end, p.Rate(), want)
		}
	}
}

// TestSpreadKeepsOrder: rows of one instant are spread over the quantum, but none
// passes the next instant of the trace.
func TestSpreadKeepsOrder(t *testing.T) {
	rows := sets(t)["moon.jsonl"].Trace.Rows
	all := replayDues(plan(t, "arrivals: {replay: {spread: 3s}}\nprompts: {file: moon.jsonl}\n", 1, "s"))
	moved := 0
	for i, due := range all {
		at := time.Duration(rows[i].At)
		if due < at || due >= at+3*time.Second || i > 0 && due < all[i-1] {
			t.Fatalf("row %d of %v is due at %v", i, at, due)
		}
		if due != at {
			moved++
		}
	}
	if moved < 190 {
		t.Errorf("only %d of 200 rows moved", moved)
	}
	if other := replayDues(plan(t, "arrivals: {replay: {spread: 3s}}\nprompts: {file: moon.jsonl}\n", 2, "s")); slices.Equal(all, other) {
		t.Error("another seed spreads alike")
	}
	// A spread that is wider than the gap to the next instant is cut there.
	wide := replayDues(plan(t, "arrivals: {replay: {spread: 1h}}\nprompts: {file: moon.jsonl}\n", 1, "s"))
	for i, due := range wide[:190] {
		if at := time.Duration(rows[i].At); due < at || due >= at+3*time.Second {
			t.Fatalf("row %d of %v is due at %v", i, at, due)
		}
	}
}

// TestBlocksOfATraceAreSharedText: prompts share text exactly as far as their rows
// share blocks.
func TestBlocksOfATraceAreSharedText(t *testing.T) {
	rows := sets(t)["moon.jsonl"].Trace.Rows
	p := plan(t, "arrivals: {replay: {}}\nprompts: {file: moon.jsonl}\n", 1, "salted")
	all := take(p.All(), 200)
	for _, pair := range [][2]int{{0, 12}, {0, 3}, {0, 1}, {5, 41}, {2, 3}} {
		a, b := pair[0], pair[1]
		same := 0
		for same < 3 && rows[a].Blocks[same] == rows[b].Blocks[same] {
			same++
		}
		shared := len(strings.Fields(text(all[a])[:common(text(all[a]), text(all[b]))])) - 1 // the salt
		// Blocks that differ may start with the same word or two.
		if words := wordsOf(same, 512); shared < words-2 || shared > words+4 {
			t.Errorf("rows %d and %d share %d blocks, but %d words; want about %d", a, b, same, shared, words)
		}
	}
	if n := tokensOf(text(all[0])); n < 1030 || n > 1035 {
		t.Errorf("row 0 has %d tokens, want 1030 and the salt", n)
	}
	// Another round asks the same with another beginning.
	p = plan(t, "arrivals: {poisson: 5/s}\nrequests: 400\nprompts: {file: moon.jsonl, order: sequential}\n", 1, "salted")
	all = take(p.All(), 400)
	if c := common(text(all[0]), text(all[200])); c > len("[salted] [round 2] ") {
		t.Errorf("the second round shares %d bytes with the first", c)
	}
	if all[0].Case != "row-1" || all[200].Case != "row-1" || all[7].MaxTokens != 12 {
		t.Errorf("cases %s, %s, tokens %d", all[0].Case, all[200].Case, all[7].MaxTokens)
	}
}

// tokensOf counts words and full stops.
func tokensOf(s string) int { return len(strings.Fields(s)) + strings.Count(s, ".") }

// wordsOf is about how many words n blocks of so many tokens have: one of twelve
// or thirteen tokens is a full stop.
func wordsOf(blocks, tokens int) int { return blocks * tokens * 115 / 125 }

func TestReplayNeedsATrace(t *testing.T) {
	_, err := New("w", decode(t, "arrivals: {replay: {}}\nprompts: {file: chat.jsonl}\n"), sets(t), 1, "")
	if err == nil || !strings.Contains(err.Error(), "chat.jsonl is a set of prompts without times") {
		t.Errorf("a replay of prompts without times: %v", err)
	}
}

func TestPlanCreditsItsTrace(t *testing.T) {
	for text, want := range map[string]string{
		"arrivals: {replay: {speed: 2}}\nprompts: {file: conv.csv}\n":      "replay of conv.csv at 2 times its speed (Azure LLM inference trace, Microsoft Azure, CC-BY-4.0)",
		"arrivals: {replay: {}}\nprompts: {file: moon.jsonl}\n":            "replay of moon.jsonl (Mooncake trace, Moonshot AI, Apache-2.0), whose clock is coarse: 180 of 200 rows have the instant of the row before",
		"arrivals: {replay: {spread: 3s}}\nprompts: {file: moon.jsonl}\n":  "replay of moon.jsonl (Mooncake trace, Moonshot AI, Apache-2.0), spread over 3s",
		"arrivals: {poisson: 8/s}\nfor: 5m\nprompts: {file: moon.jsonl}\n": "Poisson 8/s for 5m; lengths of moon.jsonl (Mooncake trace, Moonshot AI, Apache-2.0)",
		"arrivals: {replay: {}}\nfor: 9s\nprompts: {file: conv.csv}\n":     "replay of conv.csv for 9s (Azure LLM inference trace, Microsoft Azure, CC-BY-4.0)",
	} {
		if got := plan(t, text, 1, "").String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestReplayOfPublicTraces replays the real files.
func TestReplayOfPublicTraces(t *testing.T) {
	const file = "mooncake_fast25_conversation_trace.jsonl"
	f, err := os.Open("../../shared/data/traces/" + file)
	if err != nil {
		t.Skipf("public traces are not here: %v", err)
	}
	defer f.Close()
	set, err := corpus.Read(file, f, "")
	if err != nil {
		t.Fatal(err)
	}
	spec := decode(t, "arrivals: {replay: {spread: 3s}}\nprompts: {file: "+file+"}\n")
	p, err := New("w", spec, map[string]*corpus.Set{file: set}, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	gaps, before, zero := 0, time.Duration(-1), 0
	for i, due := range p.dues() {
		if due < before || due < time.Duration(set.Trace.Rows[i].At) {
			t.Fatalf("row %d is due at %v", i, due)
		}
		if due == before {
			zero++
		}
		before, gaps = due, gaps+1
	}
	if gaps != 12031 || zero > 10 {
		t.Errorf("%d rows, %d of them at once", gaps, zero)
	}
}
