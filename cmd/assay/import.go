package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/interop"
	"github.com/assay-llm/assay/record"
)

func newImport(c *console) *cobra.Command {
	var from, variant, runs string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Read result files of another load tool into a run directory",
		Long: `Import reads the result files of vLLM (--save-result --save-detailed), guidellm,
AIPerf (profile_export.jsonl, profile_export_aiperf.json), inference-perf or
SGLang (--output-file) and writes a run directory that report and compare open.
The numbers keep the definitions of their tool; the notes of the run say which,
and which comparisons they forbid. Nobody certified the client of such a run, so
that no contract passes or fails on it.`,
		Example: "  assay import result.json\n  assay import profile_export.jsonl profile_export_aiperf.json --from aiperf --variant candidate",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return usage(fmt.Errorf("assay import wants the result files of one tool, got none\n  hint: %s", use(cmd)))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := importFiles(args, interop.Options{Format: interop.Format(from), Variant: variant, Assay: bench.Version()})
			if err != nil {
				return usage(err)
			}
			dir, err := keep(cmd.Context(), runs, got)
			if err != nil {
				return err
			}
			return c.imported(dir, got, asJSON)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "vllm, guidellm, aiperf, inference-perf or sglang; found out from the file if left out")
	cmd.Flags().StringVar(&variant, "variant", "", "name of who was measured (default imported)")
	cmd.Flags().StringVar(&runs, "runs", "runs", "folder of the run directories")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.import/1)")
	return cmd
}

func importFiles(names []string, o interop.Options) (_ *interop.Run, err error) {
	var sources []interop.Source
	for _, name := range names {
		f, oerr := os.Open(name)
		if oerr != nil {
			return nil, fmt.Errorf("importing: %w", oerr)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		sources = append(sources, interop.Source{Name: name, Data: f})
	}
	return interop.Import(sources, o)
}

// keep writes an imported run to a directory of its own. The manifest comes last:
// a directory without one is no run.
func keep(ctx context.Context, runs string, r *interop.Run) (dir string, err error) {
	var tag [3]byte
	rand.Read(tag[:]) //nolint:errcheck // it never fails
	r.Manifest.ID = time.Now().UTC().Format("20060102T150405.000") + "-" + hex.EncodeToString(tag[:])
	dir = filepath.Join(runs, r.Manifest.ID)
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return dir, fmt.Errorf("making the run directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return dir, fmt.Errorf("making the run directory: %w", err)
	}
	defer func() {
		if err != nil { // half a run is none
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	w, err := record.Create(record.OS(), dir)
	if err != nil {
		return dir, fmt.Errorf("opening the journal: %w", err)
	}
	for i := range r.Records {
		if ctx.Err() != nil {
			return dir, errors.Join(context.Cause(ctx), w.Close())
		}
		if err := w.Append(&r.Records[i]); err != nil {
			return dir, errors.Join(fmt.Errorf("writing the records: %w", err), w.Close())
		}
	}
	if err := w.Seal(); err != nil {
		return dir, fmt.Errorf("sealing the records: %w", err)
	}
	if err := record.WriteManifest(record.OS(), dir, &r.Manifest); err != nil {
		return dir, fmt.Errorf("writing the manifest: %w", err)
	}
	return dir, nil
}

// imported says what came of an import.
func (c *console) imported(dir string, r *interop.Run, asJSON bool) error {
	c.notice("%d requests of %s read, %d skipped; the notes of the run say what its numbers mean", r.Rows, r.Format, r.Skipped)
	for _, note := range r.Manifest.Notes {
		if r.Skipped > 0 && strings.Contains(note, "requests read") || strings.HasPrefix(note, "not valid:") || strings.HasPrefix(note, "the files") {
			c.notice("%s", note)
		}
	}
	if asJSON {
		return json.NewEncoder(c.out).Encode(struct {
			Schema  string         `json:"schema"`
			Run     string         `json:"run"`
			From    interop.Format `json:"from"`
			Rows    int            `json:"requests"`
			Skipped int            `json:"skipped"`
			Notes   []string       `json:"notes"`
		}{"assay.import/1", dir, r.Format, r.Rows, r.Skipped, r.Manifest.Notes})
	}
	_, err := fmt.Fprintln(c.out, dir)
	return err
}

// openRun reads manifest and records of a run directory and judges nothing.
func openRun(dir string) (*record.Manifest, []record.Record, record.Repair, error) {
	m, err := record.ReadManifest(record.OS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, record.Repair{}, fmt.Errorf("opening the run %s: no manifest.json in it\n  hint: name a run directory, such as runs/ID", dir)
	}
	if err != nil {
		return nil, nil, record.Repair{}, fmt.Errorf("opening the run %s: %w", dir, err)
	}
	records, repair, err := record.ReadAll(record.OS(), dir)
	if err != nil {
		return nil, nil, repair, fmt.Errorf("reading the records of %s: %w", dir, err)
	}
	record.Sort(records)
	return m, records, repair, nil
}
