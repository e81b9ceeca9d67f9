package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/audit"
	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// auditFlags say whom to audit, and how.
type auditFlags struct {
	address
	model, key, api string
	headers         []string
	budget          string
	context         int64
	load            int
	thinking        int64
	declared        bool
	reference       string
	seed            uint64
	asJSON, quiet   bool
}

func newAudit(c *console) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit --url URL --model MODEL",
		Short: "Find out whether an endpoint makes itself look faster or better than it is",
		Long: `Audit asks an endpoint hundreds of questions and finds out whether it caches
answers, truncates prompts or answers, pads usage or text, fakes the first token,
answers worse under load, or leaves out what was asked. Each finding has its
numbers, the requests that show it, and one next step. An honest endpoint fails
with a chance of 5 % at most.

Exit codes: 0 nothing found, 1 something found, 2 usage, 3 not everything could be
shown, 4 nobody answers, 130 interrupted.`,
		Example: `  assay audit --url http://127.0.0.1:8000/v1 --model llama
  assay audit --url https://api.example.com/v1 --model m --key env:KEY --budget thorough --context 32k`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 { // not repeated: it may hold a password
				return usage(fmt.Errorf("assay audit wants flags only, got %d more arguments\n  hint: give the address as --url", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(c, cmd) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.url, "url", "u", "", "http(s)://host:port/v1 of the endpoint")
	flags.StringVar(&f.host, "host", "127.0.0.1", "host of the server, instead of a URL")
	flags.IntVar(&f.port, "port", 8000, "port of the server, instead of a URL")
	flags.StringVarP(&f.model, "model", "m", "", "model name sent with each request")
	flags.StringVar(&f.key, "key", "", "API key: env:NAME or file:PATH")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "header of each request as NAME:VALUE; the value may be env:NAME or file:PATH; may be repeated")
	flags.StringVar(&f.api, "api", "", "chat (default), completions, messages, responses or ollama")
	flags.StringVar(&f.budget, "budget", audit.Standard, "how much to ask: quick, standard or thorough")
	flags.Var((*countValue)(&f.context), "context", "tokens of the longest prompt; what the model does not take says nothing. 4096 if left out")
	flags.IntVar(&f.load, "load", 0, "requests in flight while it is asked under load; 16 if left out")
	flags.Int64Var(&f.thinking, "thinking-tokens", 0, "tokens to add to each limit, for a model that thinks before it answers")
	flags.BoolVar(&f.declared, "caching-declared", false, "the endpoint says that it caches prefixes of prompts")
	flags.StringVar(&f.reference, "reference", "", "file of an earlier audit's --json: answers must be as long as there")
	flags.Uint64Var(&f.seed, "seed", 0, "draws the questions; drawn itself if left out, since caches know those of an earlier audit")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on stderr")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object (assay.audit/1)")
	return cmd
}

func (f *auditFlags) run(c *console, cmd *cobra.Command) error {
	cfg, err := f.config(c, cmd)
	if err != nil {
		return usage(err)
	}
	if err := cfg.Validate(); err != nil {
		return usage(fmt.Errorf("%w\n  hint: see assay audit --help", err))
	}
	p := cfg.Plan()
	if !f.quiet {
		c.notice("about %d requests one after another, %d prompt and at most %d output tokens; then tasks with %d more requests in flight", p.Requests, p.PromptTokens, p.OutputTokens, p.Load)
		cfg.Watch = c.auditing()
	}
	r, err := audit.Run(cmd.Context(), cfg)
	switch {
	case errors.Is(err, errInterrupted):
		return err
	case err != nil:
		return &exit{exitUnmeasured, err}
	}
	r.Assay = bench.Version()
	if f.asJSON {
		err = json.NewEncoder(c.out).Encode(r)
	} else {
		err = auditText(c.out, r)
	}
	if err != nil {
		return err
	}
	return ofGrade(r.Grade)
}

// config is what the flags say.
func (f *auditFlags) config(c *console, cmd *cobra.Command) (cfg audit.Config, err error) {
	given := cmd.Flags().Changed
	cfg = audit.Config{
		Budget: f.budget, Context: f.context, Load: f.load, Thinking: f.thinking, CachingDeclared: f.declared, Seed: f.seed,
		Target: llm.Target{Model: f.model, API: f.api, Headers: map[string]string{}},
	}
	if theirs, ok := apis[f.api]; ok {
		cfg.Target.API = theirs
	}
	if given("load") && f.load == 0 {
		return cfg, errors.New("--load 0 is no load\n  hint: leave it out, or write --load 16")
	}
	if !given("seed") {
		cfg.Seed = rand.Uint64()
	}
	if cfg.Target.URL, err = f.address.of(cmd); err != nil {
		return cfg, err
	}
	if cfg.Target.URL == "" {
		return cfg, errors.New("no endpoint is given\n  hint: add --url http://127.0.0.1:8000/v1")
	}
	if cfg.Target.Key, err = resolve(c, "--key", f.key, true); err != nil {
		return cfg, err
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !ok || name == "" || value == "" {
			return cfg, errors.New("--header wants a name and a value (what was given is not shown)\n  hint: write --header NAME:VALUE, or --header NAME:env:VARIABLE for a secret")
		}
		if cfg.Target.Headers[name], err = resolve(c, "--header "+name, value, false); err != nil {
			return cfg, err
		}
	}
	if f.reference != "" {
		cfg.Reference, err = readAudit(f.reference)
	}
	return cfg, err
}

// resolve gives the secret behind a reference. Where none is demanded, other text
// stands for itself.
func resolve(c *console, flag, text string, demanded bool) (string, error) {
	if text == "" || !demanded && !strings.HasPrefix(text, "env:") && !strings.HasPrefix(text, "file:") {
		return text, nil
	}
	ref, err := config.ParseSecret(text)
	if err != nil {
		return "", errors.New(flag + " " + inHints.Replace(hinted(err).Error()))
	}
	secret, err := ref.Resolve(c.getenv, os.ReadFile)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", flag, err)
	}
	return secret, nil
}

// readAudit reads what audit --json printed.
func readAudit(file string) (*audit.Report, error) {
	const hint = "\n  hint: name a file that assay audit --json printed"
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the reference: %w%s", err, hint)
	}
	var r audit.Report
	if err := json.Unmarshal(data, &r); err != nil || r.Schema != audit.Schema {
		return nil, fmt.Errorf("reading the reference %s: it is no audit%s", file, hint)
	}
	return &r, nil
}

// auditing shows where an audit stands: on a terminal often, elsewhere a line a
// probe.
func (c *console) auditing() func(audit.Progress) {
	width, last, probe, told := terminal(c.err), time.Time{}, "", false
	return func(p audit.Progress) {
		if p.About > 0 && !told {
			told = true
			if width > 0 {
				fmt.Fprint(c.err, "\r\x1b[K")
			}
			c.notice("at the pace of the first answers up to about %s", p.About.Round(time.Second))
		}
		switch {
		case width > 0 && (time.Since(last) > refresh || p.Asked >= p.Of):
			last = time.Now()
			end := ""
			if p.Asked >= p.Of {
				end = "\r\x1b[K"
			}
			fmt.Fprintf(c.err, "\r\x1b[K%s%s", clip(fmt.Sprintf("  %s  %d of %d", p.Probe, p.Asked, p.Of), width-1), end)
		case width == 0 && p.Probe != probe:
			probe = p.Probe
			c.notice("%s, from request %d of %d on", probe, p.Asked, p.Of)
		}
	}
}

// auditText writes a report for people: a line a probe, and of what did not pass
// each check with its evidence.
func auditText(w io.Writer, r *audit.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", strings.ToUpper(r.Grade.String()), r.Reason)
	fmt.Fprintf(&b, "%s, model %q, seed %d: %d requests, %d answered, in %s\n", r.URL, r.Model, r.Seed, r.Asked.Requests, r.Asked.Answered, r.Elapsed.Round(time.Second))
	for _, f := range r.Asked.Failures {
		fmt.Fprintf(&b, "%d failed as %s: %s (%s)\n", f.Count, f.Outcome, f.Says, f.Request)
		if f.Outcome == string(record.EmptyOutput) {
			b.WriteString("  hint: does the model think first? give it room by --thinking-tokens 2000\n")
		}
	}
	if n := r.Asked.Disturbed; n > 0 {
		fmt.Fprintf(&b, "%d answers are left out of all times, since this machine itself stood still meanwhile\n", n)
	}
	for i := range r.Probes {
		p := &r.Probes[i]
		fmt.Fprintf(&b, "\n%-12s  %s: %s\n", p.Grade, p.Name, p.Asks)
		for j := range p.Checks {
			auditCheck(&b, &p.Checks[j])
		}
		if p.Next != "" {
			fmt.Fprintf(&b, "              next: %s\n", p.Next)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func auditCheck(b *strings.Builder, c *audit.Check) {
	mark := map[contract.Grade]string{contract.Pass: "+", contract.Fail: "!"}[c.Grade]
	if mark == "" {
		mark = "?"
	}
	fmt.Fprintf(b, "            %s %s: %s\n", mark, c.Name, c.Reason)
	if c.Grade == contract.Pass {
		return
	}
	for _, f := range c.Figures {
		if c.Grade != contract.Fail && len(c.Evidence) == 0 {
			break // nothing to weigh
		}
		if line := auditFigure(f); line != "" {
			fmt.Fprintf(b, "                %s\n", line)
		}
	}
	for i, e := range c.Evidence {
		if i == 2 {
			break // --json has the others
		}
		fmt.Fprintf(b, "                %s: %s\n", e.Request, e.Says)
	}
}

// auditFigure is a figure on a line; "" if there is none.
func auditFigure(f audit.Figure) string {
	if f.Value == nil {
		return ""
	}
	scale, unit := 1.0, ""
	switch f.Unit {
	case "s":
		scale, unit = 1e3, " ms"
	case "":
	default:
		unit = " " + f.Unit
	}
	text := fmt.Sprintf("%s %.3g%s", f.Name, *f.Value*scale, unit)
	if f.Lo != nil && f.Hi != nil {
		text += fmt.Sprintf(" [%.3g, %.3g]", *f.Lo*scale, *f.Hi*scale)
	}
	return fmt.Sprintf("%s, n = %d", text, f.N)
}

// countValue is a number that may end in k.
type countValue int64

// Set reads it.
func (n *countValue) Set(s string) error {
	v, err := config.ParseCount(s)
	*n = countValue(v)
	return hinted(err)
}

// String returns what Set reads; "" for none.
func (n *countValue) String() string {
	if *n == 0 {
		return ""
	}
	return config.Count(*n).String()
}

// Type names it in the help.
func (*countValue) Type() string { return "tokens" }
