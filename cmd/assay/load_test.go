package main

import (
	"iter"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/workload"
)

// described parses flags and makes the suite of them.
func described(t *testing.T, args ...string) (*bench.Suite, error) {
	t.Helper()
	var f loadFlags
	cmd := &cobra.Command{Use: "load"}
	f.define(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	if err := f.only(cmd, cmd.Flags().Args()); err != nil {
		return nil, err
	}
	return f.suite(cmd)
}

func TestLoadReadsFlagsOfOtherTools(t *testing.T) {
	t.Parallel()
	poisson := func(r config.Rate) workload.Arrivals {
		return workload.Arrivals{Poisson: &workload.Rate{Fixed: r}}
	}
	type load struct {
		Arrivals      workload.Arrivals
		Cap, Requests config.Count
		For           config.Duration
	}
	half := config.Duration(30 * time.Second)
	for args, want := range map[string]load{
		"--request-rate 8":                  {poisson(8), 0, 0, half},
		"--rate 8/s":                        {poisson(8), 0, 0, half},
		"--rate 300/min":                    {poisson(5), 0, 0, half},
		"--rate 0.5 --max-seconds 8":        {poisson(0.5), 0, 0, config.Duration(8 * time.Second)},
		"--rate 1e1 --duration 1m30s":       {poisson(10), 0, 0, config.Duration(90 * time.Second)},
		"--rate 8 --benchmark-duration 0.5": {poisson(8), 0, 0, config.Duration(500 * time.Millisecond)},

		"--request-rate 8 --max-concurrency 64 --num-prompts 9": {poisson(8), 64, 9, 0},
		"--max-concurrency 4 --num-prompts 9":                   {workload.Arrivals{Concurrency: 4}, 0, 9, 0},
		"--request-rate inf --max-concurrency 4":                {workload.Arrivals{Concurrency: 4}, 0, 0, half},
		"--rate inf --concurrency 4 --cap 8":                    {workload.Arrivals{Concurrency: 4}, 8, 0, half},
		"--request-rate 8 --burstiness 1.0":                     {poisson(8), 0, 0, half},
		"--request-rate 8 --burstiness 0.25":                    {workload.Arrivals{Gamma: &workload.Renewal{Rate: workload.Rate{Fixed: 8}, Shape: 0.25}}, 0, 0, half},
		"--rate 8 --rate-type constant":                         {workload.Arrivals{Constant: &workload.Rate{Fixed: 8}}, 0, 0, half},
		"--rate 8 --arrival-pattern gamma --burstiness 4":       {workload.Arrivals{Gamma: &workload.Renewal{Rate: workload.Rate{Fixed: 8}, Shape: 4}}, 0, 0, half},
	} {
		t.Run(args, func(t *testing.T) {
			s, err := described(t, append(strings.Fields(args), "--sim", "{}")...)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := s.Workloads.Get("load")
			if d := cmp.Diff(want, load{w.Arrivals, w.Cap, w.Requests, w.For}); d != "" {
				t.Errorf("the load differs (-want +got):\n%s", d)
			}
		})
	}
}

func TestLoadPlansUsers(t *testing.T) {
	t.Parallel()
	pause := func(d time.Duration) workload.Pause { return workload.Fixed(config.Duration(d)) }
	four := workload.Fixed(config.Count(4))
	type users struct {
		Think    workload.Pause
		Sessions *workload.Sessions
		Cancel   workload.Cancels
	}
	for args, want := range map[string]users{
		"--rate 8":                                  {},
		"--rate 8 --turns 4":                        {Sessions: &workload.Sessions{Turns: four}},
		"--rate 8 --turns 4 --think 2s":             {Sessions: &workload.Sessions{Turns: four, Think: pause(2 * time.Second)}},
		"--concurrency 3 --think 500ms":             {Think: pause(500 * time.Millisecond)},
		"--rate 8 --conversation-turn-mean 4":       {Sessions: &workload.Sessions{Turns: four}},
		"--rate 8 --cancel 5%":                      {Cancel: workload.Cancels{{Share: 0.05, During: "prefill"}}},
		"--rate 8 --cancel 5 --cancel-after 1500ms": {Cancel: workload.Cancels{{Share: 0.05, After: pause(1500 * time.Millisecond)}}},
		"--rate 8 --request-cancellation-rate 12.5 --request-cancellation-delay 2": {Cancel: workload.Cancels{{Share: 0.125, After: pause(2 * time.Second)}}},
	} {
		s, err := described(t, append(strings.Fields(args), "--sim", "{}")...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		w, _ := s.Workloads.Get("load")
		if d := cmp.Diff(want, users{w.Arrivals.Think, w.Sessions, w.Cancel}); d != "" {
			t.Errorf("%s: differs (-want +got):\n%s", args, d)
		}
	}
}

func TestLoadFindsTheServer(t *testing.T) {
	t.Parallel()
	s, err := described(t, strings.Fields("-u http://h:1/v1 -m llama --backend openai-chat --streaming --isl 100 --osl 20 --rate 8 -H X-Team:blue --header Authorization:env:BEARER")...)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := s.Variants.Get("target")
	w, _ := s.Workloads.Get("load")
	want := map[string]string{"X-Team": "blue", "Authorization": "env:BEARER"}
	if d := cmp.Diff(want, v.Headers); v.URL != "http://h:1/v1" || v.Model != "llama" || v.API != "chat" || d != "" {
		t.Errorf("the target is %s %s %s, its headers differ (-want +got):\n%s", v.URL, v.Model, v.API, d)
	}
	if got := w.Prompts.Synthetic.String() + " " + w.Output.String(); got != "100 20" {
		t.Errorf("lengths are %s, want 100 20", got)
	}
	for args, want := range map[string]string{
		"--host gpu-3":             "http://gpu-3:8000/v1",
		"--port 8001":              "http://127.0.0.1:8001/v1",
		"--host ::1 --port 80":     "http://[::1]:80/v1",
		"--host [fe80::1]":         "http://[fe80::1]:8000/v1",
		"--base-url http://h:8000": "http://h:8000",
	} {
		s, err := described(t, append(strings.Fields(args), "--rate", "8")...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if v, _ := s.Variants.Get("target"); v.URL != want {
			t.Errorf("%s gives the URL %s, want %s", args, v.URL, want)
		}
	}
}

// Every refusal speaks of flags, has one hint a fault, and keeps secrets.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--rate 0":                                              "--rate 0 sends nothing",
		"--rate 8 --requests 0":                                 "--requests 0 sends nothing",
		"--rate 8 --num-prompts 0":                              "--requests 0 sends nothing",
		"--rate 8 --max-seconds 0":                              "--duration 0 sends nothing",
		"--rate 8 --cap 0":                                      "--cap 0 sends nothing",
		"--concurrency 0":                                       "--concurrency 0 sends nothing",
		"--rate inf":                                            "--concurrency N",
		"--rate 8 --concurrency 4":                              "--cap N limits",
		"--rate 2000000":                                        "--rate: must be at most",
		"--concurrency 200000":                                  "--concurrency: must be between",
		"--concurrency 8 --cap 4":                               "raise --cap or lower --concurrency",
		"--rate 8 --requests -5":                                "--requests: ",
		"--rate 8 --output-tokens -5":                           "--output-tokens: ",
		"--rate 8 --isl 0":                                      "--input-tokens: must be between",
		"--rate 8 --warmup -1":                                  "--warmup: ",
		"--rate 8 --temperature 9":                              "--temperature: ",
		"--rate 8 --api grpc":                                   "--api: wants chat",
		"--rate 8 --url http://h/v1":                            "--sim: stands beside url",
		"--rate 8 --burstiness 0":                               "--burstiness wants a number above 0",
		"--rate 8 --burstiness NaN":                             "--burstiness wants a number above 0",
		"--rate 8 --burstiness 1e9":                             "--burstiness: makes a cv",
		"--concurrency 8 --burstiness 2":                        "--burstiness goes with a rate",
		"--rate 8 --burstiness 2 --arrivals constant":           "does not go with --arrivals constant",
		"--rate 8 --arrivals gamma":                             "wants the shape of the gaps",
		"--rate 8 --rate-type concurrent":                       "write --concurrency N",
		"--rate 8 --rate-type sweep":                            "write --sweep 1/s,2/s,4/s",
		"--rate 8 --streaming --no-stream":                      "contradict each other",
		"--rate 8 --host h --url http://h/v1":                   "keep --url",
		"--rate 8 --host http://h":                              "give a whole address as --url",
		"--rate 8 --port 0":                                     "--port 0 is no port",
		"--rate 8 --prompts none.jsonl":                         "--prompts: reading none.jsonl: there is no such file",
		"--rate 8 --prompts none/none.jsonl":                    "as --prompts",
		"--rate 8 --key secret-1":                               "--key wants a reference",
		"--rate 8 --header Authorization:secret-1":              "--header Authorization: ",
		"--rate 8 --header secret-1":                            "--header wants a name and a value",
		"--rate 8 --header A:1 --header A:2":                    "--header gives A twice",
		"--rate 8 --api-key secret-1":                           "write --key env:NAME",
		"--rate 8 http://user:secret-1@h/v1":                    "give the address as --url",
		"--rate 8 more":                                         "see assay load --help",
		"--rate 8 --goodput ttft:200 tpot:50":                   "demand it: --need",
		"--rate 8 --tokenizer x":                                "the server counts the tokens",
		"--rate 8 --dataset-name random":                        "--input-tokens N",
		"--rate 8 --data prompt_tokens=8":                       "--prompts FILE",
		"--rate 8 --extra-inputs ignore_eos:true":               "--ignore-eos",
		"--profile kind=sweep":                                  "--concurrency N",
		"--rate 8 --save-result --result-filename x":            "assay export RUN",
		"--find-capacity":                                       "wants to know what must hold",
		"--find-capacity --need p99(ttft)<=1s --concurrency 4":  "--sweep-concurrency 1,2,4,8",
		"--find-capacity --need p99(ttft)<=1s --requests 100":   "write --duration 60s",
		"--find-capacity --need p99(ttft)<=1s --sweep 1/s":      "keep it, or the sweep",
		"--find-capacity --need p99(ttft)<=1s --probes 1":       "--probes wants 3 to 100",
		"--find-capacity --need p99(ttft)<=1s --confidence 100": "--confidence wants 80 to 99.9",
		"--find-capacity --need p99(ttft)<=1s --max-rate inf":   "--max-rate wants a rate",
		"--rate 8 --max-time 1m":                                "add --find-capacity",
		"--sweep 1/s,2/s --rate 3":                              "remove --rate",
		"--sweep 1/s,inf":                                       "wants rates that can be sent",
		"--sweep-request-rate 1/s,x":                            "rate",
		"--sweep-max-concurrency 1,0":                           "0 users cannot be",
		"--rate 8 --need p99(ttft)<=1s --need p99(ttft)<=two":   "--need \"p99(ttft)<=two\": ",
		"--rate 8 --think 2s":                                   "--think: a think time needs virtual users",
		"--rate 8 --turns 0":                                    "--turns 0 sends nothing",
		"--rate 8 --turns 2000":                                 "--turns: a session has at most",
		"--rate 8 --turns -1":                                   "--turns",
		"--rate 8 --cancel 120%":                                "--cancel",
		"--rate 8 --cancel-after 2s":                            "add --cancel 5%",
		"--rate 8 --conversation-turn-delay-mean 500":           "write --think 500ms",
	} {
		t.Run(args, func(t *testing.T) {
			_, err := described(t, append(strings.Fields(args), "--sim", "{}")...)
			if err == nil {
				t.Fatal("it is accepted")
			}
			text := err.Error()
			if !strings.Contains(text, want) || strings.Count(text, "\n  hint: ") != 1 {
				t.Errorf("it says, want %q and one hint:\n%s", want, text)
			}
			for _, word := range []string{"secret-1", "workloads.", "variants.", "arrivals.", "{poisson"} {
				if strings.Contains(text, word) {
					t.Errorf("it says %q:\n%s", word, text)
				}
			}
		})
	}
}

func TestRateAndDurationPrintWhatTheyRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"8": "8/s", "300/min": "5/s", "inf": "inf", "0.25": "0.25/s", "0": ""} {
		var r rateValue
		if err := r.Set(in); err != nil || r.String() != want {
			t.Errorf("a rate of %q is %q (%v), want %q", in, r.String(), err, want)
		}
	}
	for in, want := range map[string]string{"8": "8s", "90": "1m30s", "0.5": "500ms", "5m": "5m", "0": ""} {
		var d durationValue
		if err := d.Set(in); err != nil || d.String() != want {
			t.Errorf("a duration of %q is %q (%v), want %q", in, d.String(), err, want)
		}
	}
	for _, in := range []string{"", "x", "-1", "nan", "-inf", "8 /s", "1e999"} {
		if new(rateValue).Set(in) == nil {
			t.Errorf("a rate of %q is accepted", in)
		}
		if new(durationValue).Set(in) == nil {
			t.Errorf("a duration of %q is accepted", in)
		}
	}
}

func TestEveryForeignFlagIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/interop.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range []iter.Seq[string]{maps.Keys(aliases), maps.Keys(strangers), maps.Values(aliases)} {
		for name := range names {
			if !strings.Contains(string(text), "`--"+name+"`") {
				t.Errorf("docs/interop.md does not mention --%s", name)
			}
		}
	}
	for name := range apis {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/interop.md does not mention the API %s", name)
		}
	}
}
