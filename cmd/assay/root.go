package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
)

// The exit codes. They are documented, and never reused.
const (
	exitPass         = 0
	exitFail         = 1
	exitUsage        = 2
	exitInconclusive = 3
	exitUnmeasured   = 4
	exitInterrupted  = 130
)

// console is what a command may touch of the process.
type console struct {
	in     io.Reader
	out    io.Writer // data only
	err    io.Writer // progress, warnings, hints
	getenv func(string) string
}

// notice tells the user something on stderr.
func (c *console) notice(format string, args ...any) {
	fmt.Fprintf(c.err, "assay: "+format+"\n", args...)
}

// terminal returns the width of a writer's terminal; 0 when it is none.
func terminal(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// colour reports whether to colour what goes to w.
func (c *console) colour(w io.Writer) bool {
	return terminal(w) > 0 && c.getenv("NO_COLOR") == "" && c.getenv("TERM") != "dumb"
}

// An exit is an error with an exit code of its own. Its Err may be nil: the
// command has said all there is to say.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage marks an error as the user's: a wrong flag, file or name.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitUsage, err}
}

// noArgs refuses arguments of a command that takes flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(fmt.Errorf("%s wants flags only, got %q\n  hint: see %[1]s --help", cmd.CommandPath(), args[0]))
}

// use is how a command is written, without a word on flags that nobody asked about.
func use(cmd *cobra.Command) string { return strings.TrimSuffix(cmd.UseLine(), " [flags]") }

// ofGrade is the exit for a verdict.
func ofGrade(g contract.Grade) error {
	switch g {
	case contract.Pass:
		return nil
	case contract.Fail:
		return &exit{code: exitFail}
	default:
		return &exit{code: exitInconclusive}
	}
}

// run is the whole program: it returns its exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer, getenv func(string) string) int {
	c := &console{in: in, out: out, err: errs, getenv: getenv}
	root := newRoot(c)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	return c.exit(root.ExecuteContext(ctx))
}

// exit reports an error and returns the exit code for it.
func (c *console) exit(err error) int {
	if err == nil {
		return exitPass
	}
	code := exitUsage // what cobra finds wrong is the user's
	var own *exit
	var target *bench.TargetError
	var setup *bench.SetupError
	switch {
	case errors.Is(err, errInterrupted):
		code = exitInterrupted
	case errors.As(err, &setup):
		code = exitUsage
	case errors.As(err, &own):
		code = own.code
	case errors.As(err, &target):
		code = exitUnmeasured
	}
	if text := err.Error(); text != "" {
		var faults config.Faults
		if errors.As(err, &faults) {
			fmt.Fprintln(c.err, faults.Error())
		} else {
			fmt.Fprintln(c.err, "assay: "+text)
		}
	}
	return code
}

func newRoot(c *console) *cobra.Command {
	root := &cobra.Command{
		Use:   "assay",
		Short: "Decide, with evidence, whether a new version of an LLM service may go live",
		Long: `Assay measures a candidate version of an LLM service beside its baseline, judges
both by one contract, and says pass, fail or inconclusive, with the evidence.

Exit codes: 0 pass, 1 fail, 2 usage or configuration, 3 inconclusive,
4 could not measure (target, host or client), 130 interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		SuggestionsMinimumDistance: 2,
	}
	root.AddCommand(
		newRun(c), newProfiles(c), newLoad(c), newAudit(c), newSim(c), newDoctor(c),
		newReport(c), newReview(c), newCompare(c), newLock(c), newDiff(c), newCalibrate(c), newBaseline(c), newNotify(c),
		newContract(c), newSchema(c),
		newScore(c), newPerturb(c), newJudge(c), newMend(c), newImport(c), newExport(c),
		newNull(c), newVersion(c),
	)
	root.SetFlagErrorFunc(flagError)
	return root
}

// flagError gives an error of a flag its hint, if it has none.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		what := bad.Unwrap().Error()
		switch bad.GetFlag().Value.Type() {
		case "int", "int64", "uint64":
			what = fmt.Sprintf("wants a whole number, got %q", bad.GetValue())
		case "float64":
			what = fmt.Sprintf("wants a number, got %q", bad.GetValue())
		}
		err = fmt.Errorf("--%s %s", bad.GetFlag().Name, what)
	}
	if strings.Contains(err.Error(), "\n  hint: ") {
		return usage(err)
	}
	return usage(fmt.Errorf("%w\n  hint: see %s --help", err, cmd.CommandPath()))
}

// moved are commands that people look for in another place.
var moved = map[string]string{"lint": "contract lint", "serve": "sim", "bench": "load"}

// knownCommand refuses arguments of a command that only has subcommands, and says
// which one was meant.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see " + cmd.CommandPath() + " --help"
	if there, ok := moved[args[0]]; ok && !cmd.HasParent() {
		hint = "write assay " + there
	} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + cmd.CommandPath() + " " + strings.Join(near, " or ") + "?"
	}
	return usage(fmt.Errorf("unknown command %q for %q\n  hint: %s", args[0], cmd.CommandPath(), hint))
}
