package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/notify"
	"github.com/assay-llm/assay/report"
)

type notifyFlags struct {
	webhook, pause, diff, report, on string
	again, json                      bool
}

// notified is what the command did (assay.notice/1).
type notified struct {
	Schema  string           `json:"schema"`
	Run     string           `json:"run"`
	Grade   string           `json:"grade"`
	Told    bool             `json:"told"`
	Webhook *notify.Delivery `json:"webhook,omitempty"`
	Pause   *notify.Delivery `json:"pause,omitempty"`
}

func newNotify(c *console) *cobra.Command {
	var f notifyFlags
	cmd := &cobra.Command{
		Use:   "notify RUN",
		Short: "Tell a webhook that a gate did not pass, and have a pipeline wait",
		Long: `Notify judges a run's records anew and, if the verdict is no pass, posts it to a
Slack-compatible webhook, with a link to what changed. With --pause it also posts
it to a hook that holds the following stages of a pipeline.

Addresses are secrets: they come from the environment or a file only. What was
delivered is written down in the run directory, so that a job that runs again
tells nobody twice. In the jobs of GitHub and GitLab the links are found by
themselves.`,
		Example: "  assay notify runs/ID --webhook env:SLACK_WEBHOOK\n  assay notify runs/ID --webhook env:SLACK_WEBHOOK --pause file:pause.url --diff https://example.com/compare/v1...v2",
		Args:    exactly(1, "a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.notify(cmd, args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.webhook, "webhook", "", "where the address of the webhook is: env:NAME or file:PATH")
	cmd.Flags().StringVar(&f.pause, "pause", "", "where the address of the pause hook is: env:NAME or file:PATH")
	cmd.Flags().StringVar(&f.diff, "diff", "", "link to what changed")
	cmd.Flags().StringVar(&f.report, "report", "", "link to the report")
	cmd.Flags().StringVar(&f.on, "on", "inconclusive", "tell about: fail, inconclusive (and fail) or pass (everything)")
	cmd.Flags().BoolVar(&f.again, "again", false, "tell even what was told before")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object (assay.notice/1)")
	return cmd
}

func (c *console) notify(cmd *cobra.Command, dir string, f notifyFlags) error {
	from := map[string]int{"fail": 2, "inconclusive": 1, "pass": 0}
	least, ok := from[f.on]
	if !ok {
		return usage(fmt.Errorf("--on %q is not known\n  hint: use fail, inconclusive or pass", f.on))
	}
	if f.webhook == "" && f.pause == "" {
		return usage(fmt.Errorf("there is nobody to tell\n  hint: add --webhook env:NAME or --pause env:NAME"))
	}
	links := linksOf(c.getenv)
	if err := links.Validate(); err != nil { // the message matters more
		c.notice("warning: the links of this CI job are left out: %v", err)
		links = notify.Links{}
	}
	if f.diff != "" {
		links.Diff = f.diff
	}
	if f.report != "" {
		links.Report = f.report
	}
	if err := links.Validate(); err != nil {
		return usage(err)
	}
	var addresses [2]string
	for i, ref := range []string{f.webhook, f.pause} {
		var err error
		if addresses[i], err = resolve(c, []string{"--webhook", "--pause"}[i], ref, true); err != nil {
			return usage(err)
		}
	}
	r, err := bench.Open(dir)
	if err != nil {
		return usage(err)
	}
	out := notified{Schema: "assay.notice/1", Run: r.Manifest.ID, Grade: contract.Inconclusive.String()}
	if r.Judged() {
		out.Grade = r.Verdict.Grade.String()
	}
	if out.Told = from[out.Grade] >= least; !out.Told {
		c.notice("the verdict is %s: nobody was told", out.Grade)
		return c.noticed(out, f.json)
	}
	var untold, unheld error // a dead chat must not let the pipeline go on
	out.Pause, unheld = c.deliverTo(cmd, r, "pause hook", addresses[1], links, notify.Hold, f.again)
	out.Webhook, untold = c.deliverTo(cmd, r, "webhook", addresses[0], links, notify.Message, f.again)
	if err := errors.Join(unheld, untold); err != nil {
		return &exit{exitUnmeasured, err}
	}
	return c.noticed(out, f.json)
}

// deliverTo posts what write makes of the report, unless that was done before.
func (c *console) deliverTo(cmd *cobra.Command, r *bench.Result, kind, address string, links notify.Links, write func(*report.Document, notify.Links) ([]byte, error), again bool) (*notify.Delivery, error) {
	if address == "" {
		return nil, nil
	}
	log, err := notify.OpenLog(r.Dir)
	if err != nil {
		return nil, err
	}
	body, err := write(r.Report, links)
	if err != nil {
		return nil, err
	}
	key := notify.Key(address, r.Report, body)
	if before, ok := log.Find(key); ok && !again {
		c.notice("the %s at %s was told before, at %s", kind, before.Host, before.At.Format(time.RFC3339))
		return &notify.Delivery{Host: before.Host, Before: true}, nil
	}
	d, err := notify.Post(cmd.Context(), address, key, body)
	if err != nil {
		return &d, err
	}
	c.notice("the %s at %s was told", kind, d.Host)
	return &d, log.Add(notify.Delivered{Key: key, Host: d.Host, At: time.Now().UTC().Truncate(time.Second)})
}

func (c *console) noticed(out notified, asJSON bool) error {
	if !asJSON {
		return nil
	}
	return json.NewEncoder(c.out).Encode(out)
}

// linksOf finds the links in the environment of a CI job, of GitHub or GitLab.
func linksOf(getenv func(string) string) notify.Links {
	if repository := getenv("GITHUB_REPOSITORY"); repository != "" && getenv("GITHUB_SERVER_URL") != "" {
		base := getenv("GITHUB_SERVER_URL") + "/" + repository
		l := notify.Links{Diff: base + "/commit/" + getenv("GITHUB_SHA"), Report: base + "/actions/runs/" + getenv("GITHUB_RUN_ID")}
		var pull int
		if n, err := fmt.Sscanf(getenv("GITHUB_REF"), "refs/pull/%d/merge", &pull); n == 1 && err == nil {
			l.Diff = fmt.Sprintf("%s/pull/%d/files", base, pull)
		}
		return l
	}
	if project := getenv("CI_PROJECT_URL"); project != "" {
		l := notify.Links{Diff: project + "/-/commit/" + getenv("CI_COMMIT_SHA"), Report: getenv("CI_JOB_URL")}
		if request := getenv("CI_MERGE_REQUEST_IID"); request != "" {
			l.Diff = project + "/-/merge_requests/" + request + "/diffs"
		}
		return l
	}
	return notify.Links{}
}
