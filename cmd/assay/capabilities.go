package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/capability"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/llm"
)

// capabilityFlags say whose capabilities doctor shows.
type capabilityFlags struct {
	url, model, key string
	fresh           bool
}

// capabilities probes an endpoint, unless a report of what it calls itself is kept, and
// prints what it provably does.
func (f *capabilityFlags) capabilities(c *console, cmd *cobra.Command, asJSON, quiet bool) error {
	key, err := resolve(c, "--key", f.key, true)
	if err != nil {
		return usage(err)
	}
	e := capability.Endpoint{URL: f.url, Model: f.model, Key: key}
	var o capability.Options
	if !quiet {
		o.Say = func(what string) { c.notice("looking at %s", what) }
	}
	r, err := reportOf(cmd.Context(), e, o, f.fresh)
	if err != nil {
		if _, ok := errors.AsType[*capability.UnreachableError](err); ok {
			return &exit{exitUnmeasured, err}
		}
		if cmd.Context().Err() != nil {
			return errInterrupted
		}
		return usage(err)
	}
	if asJSON {
		return json.NewEncoder(c.out).Encode(r)
	}
	return capabilityText(c.out, r)
}

// reportOf returns the kept report if it is of this endpoint still, else a new one,
// which it keeps.
func reportOf(ctx context.Context, e capability.Endpoint, o capability.Options, fresh bool) (*capability.Report, error) {
	name := keptCapabilities(e)
	if !fresh && name != "" {
		if r := readCapabilities(name); r != nil {
			served, fingerprint, err := capability.Hello(ctx, e)
			if err != nil {
				return nil, err
			}
			if r.Current(served, fingerprint, time.Now()) {
				return r, nil
			}
		}
	}
	r, err := capability.Probe(ctx, e, o)
	if err != nil || name == "" {
		return r, err
	}
	if text, err := json.Marshal(r); err == nil && os.MkdirAll(filepath.Dir(name), 0o755) == nil {
		_ = os.WriteFile(name, text, 0o644) // only a cache: without it the next one asks again
	}
	return r, nil
}

// capable tells the checks of a run what an endpoint was seen to do. Of one that is
// reached in a way of its own (a proxy, certificates, another API) nothing is known.
func (c *console) capable(ctx context.Context, t llm.Target) check.Capabilities {
	if t.Proxy != "" || len(t.CA) > 0 || t.SkipVerify || t.Dial != nil || t.API != "" && t.API != llm.APIChat {
		return nil
	}
	e := capability.Endpoint{URL: t.URL, Model: t.Model, Key: t.Key, Headers: t.Headers}
	begun := false
	r, err := reportOf(ctx, e, capability.Options{Say: func(string) {
		if !begun {
			begun = true
			c.notice("looking at what the model %q can do, by about 130 short requests; it is kept for a week", t.Model)
		}
	}}, false)
	if err != nil {
		c.notice("what the model %q can do is not known: %v", t.Model, err)
		return nil
	}
	return r.Capabilities()
}

// keptCapabilities is where the report of an endpoint is kept; "" if there is no place.
func keptCapabilities(e capability.Endpoint) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(e.URL + "\x00" + e.Model + "\x00" + e.Key))
	return filepath.Join(dir, "assay", "capabilities-"+hex.EncodeToString(sum[:8])+".json")
}

// readCapabilities reads a kept report; one that makes no sense is none.
func readCapabilities(name string) *capability.Report {
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	r := new(capability.Report)
	if json.NewDecoder(io.LimitReader(file, 1<<20)).Decode(r) != nil {
		return nil
	}
	return r
}

func capabilityText(w io.Writer, r *capability.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%q, fingerprint %q, at %s\n", r.Served, r.Fingerprint, r.URL)
	counts := map[check.Standing]int{}
	for _, f := range r.Findings {
		counts[f.Standing]++
		fmt.Fprintf(&b, "%-8s %-17s %s\n", f.Standing, f.Capability, f.Detail)
	}
	fmt.Fprintf(&b, "\n%d proven, %d absent, %d unknown; %d requests, %d tokens, %s\n",
		counts[check.Proven], counts[check.Absent], counts[check.Unknown], r.Requests, r.Tokens, r.At.Format(time.RFC3339))
	_, err := io.WriteString(w, b.String())
	return err
}
