package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/lock"
)

// lockOf is the usual lock file of a suite: suite.yaml has suite.lock.
func lockOf(suite string) string {
	return strings.TrimSuffix(suite, filepath.Ext(suite)) + ".lock"
}

func newLock(c *console) *cobra.Command {
	var out string
	var seed uint64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lock SUITE",
		Short: "Write down what a run of a suite depends on",
		Long: `Lock asks every endpoint of the suite about itself, reads the files that the suite
names, and writes what a run depends on: digests of workloads, checks, contract and
data, the seed and the plans that follow from it, the build of this program, and of
each variant engine, version, flags, weights, tokenizer, chat template and hardware.
What could not be learnt stands there as unknown, with the reason.

assay run SUITE --locked refuses to run when any of it has changed. Of an endpoint that
does not tell how it cuts and writes prompts, lock counts the tokens of four short
questions. docs/reproducibility.md says what is known of which engine.`,
		Example: "  assay lock suite.yaml\n  assay lock suite.yaml -o release-1.4.lock\n  assay run suite.yaml --locked",
		Args:    exactly(1, "the suite file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := bench.Load(args[0])
			if err != nil {
				return usage(err)
			}
			o := bench.Options{Getenv: c.getenv, Notice: c.notice}
			if cmd.Flags().Changed("seed") {
				o.Seed = &seed
			}
			l, err := bench.Lock(cmd.Context(), s, o)
			if err != nil {
				return unmeasured(err)
			}
			text, err := l.Encode()
			if err != nil {
				return err
			}
			if out == "" {
				out = lockOf(args[0])
			}
			if out != "-" {
				if err := os.WriteFile(out, text, 0o644); err != nil { //nolint:gosec // others may read what a run depends on
					return usage(fmt.Errorf("writing the lock: %w\n  hint: name another file with -o", err))
				}
			}
			return c.showLock(l, out, text, asJSON)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write; - for stdout; if left out SUITE with .lock instead of .yaml")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "seed that runs are held to; if left out the suite's, else a drawn one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the lock as one JSON object (assay.lock/1), too")
	return cmd
}

// unmeasured is the exit of a run that could not begin, for whichever reason.
func unmeasured(err error) error {
	var target *bench.TargetError
	var setup *bench.SetupError
	if errors.Is(err, errInterrupted) || errors.As(err, &target) || errors.As(err, &setup) {
		return err
	}
	return &exit{exitUnmeasured, err}
}

func (c *console) showLock(l *lock.Lock, file string, text []byte, asJSON bool) error {
	for _, f := range l.Unknown() {
		c.notice("%s is not known: %s", f.Path, f.A.Unknown)
	}
	switch {
	case asJSON:
		doc, err := l.JSON()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out, "%s\n", doc)
		return err
	case file == "-":
		_, err := c.out.Write(text)
		return err
	}
	_, err := fmt.Fprintf(c.out, "%s %s\n", file, l.Digest())
	return err
}

func newDiff(c *console) *cobra.Command {
	var under []string
	var unknown, asJSON bool
	cmd := &cobra.Command{
		Use:   "diff RUN[:VARIANT] RUN[:VARIANT]",
		Short: "Say whether two runs can be compared, and why",
		Long: `Diff compares what two runs, or two lock files, depend on, fact by fact, and says how
far their numbers can be compared:

  identical                    nothing differs
  equivalent                   what differs is benign: the name of the machine, a serial
                               number, a patch of the kernel
  comparable with correction   power or clock limits, the client, the seed, the build of assay
  not comparable               hardware, engine, weights, tokenizer, template, data, what was sent

--under-test names facts of the variants that are meant to differ, since their effect is
what the runs are compared for. With RUN:VARIANT only that variant of each side counts.

Exit codes: 0 identical or equivalent, 1 not comparable, 3 comparable with correction, or
facts that matter are unknown (--allow-unknown takes them for equal).`,
		Example: "  assay diff runs/OLD runs/NEW\n  assay diff runs/OLD runs/NEW --under-test weights,engine\n  assay diff suite.lock runs/NEW",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(fmt.Errorf("assay diff wants two runs or lock files, got %d arguments\n  hint: %s", len(args), use(cmd)))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := depends(args[0])
			if err != nil {
				return usage(err)
			}
			b, err := depends(args[1])
			if err != nil {
				return usage(err)
			}
			d := lock.Compare(a, b, under...)
			if asJSON {
				doc, err := d.JSON(args[0], args[1], a, b)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.out, "%s\n", doc); err != nil {
					return err
				}
			} else if err := d.Text(c.out, args[0], args[1]); err != nil {
				return err
			}
			return ofClass(d, unknown)
		},
	}
	cmd.Flags().StringSliceVar(&under, "under-test", nil, "facts of variants that are meant to differ, such as weights,engine")
	cmd.Flags().BoolVar(&unknown, "allow-unknown", false, "exit as if what is not known were equal")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.diff/1)")
	return cmd
}

// ofClass is the exit for how far two runs can be compared.
func ofClass(d lock.Comparison, allowUnknown bool) error {
	switch {
	case d.Class == lock.Incomparable:
		return &exit{code: exitFail}
	case d.Class == lock.Correctable, !d.Proven() && !allowUnknown:
		return &exit{code: exitInconclusive}
	}
	return nil
}

// depends reads what RUN, RUN:VARIANT or a lock file says of what a run depends on.
func depends(arg string) (*lock.Lock, error) {
	name, variant := arg, ""
	if i := strings.LastIndexByte(arg, ':'); i > 1 { // not the colon of a drive letter
		name, variant = arg[:i], arg[i+1:]
	}
	var l *lock.Lock
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		l, err = bench.Depends(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w\n  hint: it is no run, or one of an older version, which did not write it down", err)
		}
	default:
		var h *bench.Held
		if h, err = bench.ReadLock(name); err == nil {
			l = h.Lock
		}
	}
	if err != nil || variant == "" {
		return l, err
	}
	one, ok := l.Of(variant)
	if !ok {
		return nil, fmt.Errorf("comparing %s: it has no variant %q\n  hint: leave the name out, or look into its lock.yaml", name, variant)
	}
	return one, nil
}
