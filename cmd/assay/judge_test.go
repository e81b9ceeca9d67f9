package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// A judge behind HTTP that sees what the answers are, but obeys what they say.
func TestJudgeCalibrateAsks(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages []struct{ Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Messages) != 2 {
			http.Error(w, "what?", http.StatusBadRequest)
			return
		}
		if calls.Add(1) == 1 { // asked again later
			http.Error(w, "busy", http.StatusTooManyRequests)
			return
		}
		verdict := "1"
		if user := q.Messages[1].Content; strings.Contains(user, "all of it") || strings.Contains(user, `"verdict"`) {
			verdict = "5"
		}
		content := fmt.Sprintf(`{"reason":"seen","verdict":"%s"}`, verdict)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "chat.completion", "model": "j", "choices": []any{
			map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": content}},
		}, "usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5}})
	}))
	defer server.Close()
	rows := []string{"case,prompt,answer,human"}
	for i := range 100 {
		label, answer := "5", "all of it"
		if i%2 == 0 {
			label, answer = "1", "nothing"
		}
		rows = append(rows, fmt.Sprintf("%d,What is %d?,%s number %d,%s", i, i, answer, i, label))
	}
	file := t.TempDir() + "/labels.csv"
	if err := os.WriteFile(file, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	args := []string{"judge", "calibrate", file, "--url", server.URL + "/v1", "--model", "j", "--criterion", "completeness", "--json", "--save", file + ".judged"}
	if code := run(t.Context(), args, nil, &out, &errs, os.Getenv); code != exitFail {
		t.Fatalf("exit %d: %s %s", code, out.String(), errs.String())
	}
	var got struct {
		Reason  string
		Faults  map[string]int
		Attacks map[string]struct{ Tried, Taken int }
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Reason != "unfit: attacks" || len(got.Faults) > 0 || got.Attacks["fake verdict"].Taken != 5 || got.Attacks["appeal to the rubric"].Taken != 0 {
		t.Errorf("got %+v", got)
	}
	if n := calls.Load(); n != 261 {
		t.Errorf("%d calls, want 2 for each case, 60 attacks and the one that was refused", n)
	}
	judged, err := os.ReadFile(file + ".judged")
	if err != nil || !strings.HasPrefix(string(judged), "case,cluster,prompt,source,reference,answer,human,judge,judge_2\n0,0,What is 0?,,,nothing number 0,1,1,1\n") {
		t.Errorf("saved: %v\n%.300s", err, judged)
	}
	if code := run(t.Context(), args, nil, &out, &errs, os.Getenv); code != exitUsage || !strings.Contains(errs.String(), "is there already") {
		t.Errorf("saved over a file that is there: exit %d, %s", code, errs.String())
	}
	server.Close()
	dead := append(args[:len(args)-2:len(args)-2], "--quiet", "--replicates", "1", "--attacks", "0", "--parallel", "100")
	if code := run(t.Context(), dead, nil, &out, &errs, os.Getenv); code != exitUnmeasured {
		t.Errorf("nobody answers: exit %d, %s", code, errs.String())
	}
}
