package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/assay-llm/assay/contract"
)

// others reads the records as their users do and prints the same quantile three
// times: as DuckDB, as pandas and as Polars compute it.
const others = `
import duckdb, json, pandas, polars, sys
file = sys.argv[1]
where = "variant = 'candidate' and phase = 'measured' and outcome = 'ok'"
frame = pandas.read_parquet(file)
mine = frame[(frame.variant == "candidate") & (frame.phase == "measured") & (frame.outcome == "ok")]
lazy = polars.read_parquet(file).filter((polars.col("variant") == "candidate") & (polars.col("phase") == "measured") & (polars.col("outcome") == "ok"))
print(json.dumps({
    "duckdb": duckdb.sql(f"select quantile_cont(ttft_ns, 0.99) from '{file}' where {where}").fetchall()[0][0],
    "pandas": float(mine.ttft_ns.astype("int64").quantile(0.99)),
    "polars": lazy["ttft_ns"].quantile(0.99, "linear"),
    "rows": len(mine),
}))
`

// TestReportAgreesWithOthers recomputes a reported quantile from the records
// with other people's software.
func TestReportAgreesWithOthers(t *testing.T) {
	python := os.Getenv("ASSAY_PYTHON")
	if python == "" {
		t.Skip("ASSAY_PYTHON is not set: make test-python installs DuckDB, pandas and Polars and sets it")
	}
	s, err := Parse("suite.yaml", []byte(`
version: 1
name: agree
seed: 5
variants: {candidate: {sim: {step: {base: 3ms, prefill: 20us}, jitter: 30%}}}
workloads:
  chat: {arrivals: {poisson: 100/s}, requests: 417, prompts: {synthetic: {lognormal: {median: 60, sigma: 1, max: 1k}}}, output: {uniform: {min: 2, max: 9}}}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", others, filepath.Join(r.Dir, "records.parquet"))
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &problem)
	}
	var got struct {
		DuckDB, Pandas, Polars float64
		Rows                   int
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := reported(t, r, contract.Quantity{Stat: "quantile", P: .99, Metric: "ttft"})
	if got.Rows != 417 || got.Pandas != want || got.Polars != want {
		t.Errorf("p99 of %d TTFTs: pandas %v ns, Polars %v ns, the report %v ns", got.Rows, got.Pandas, got.Polars, want)
	}
	// DuckDB interpolates by another formula for the same: one unit in the last place.
	if diff := (got.DuckDB - want) / want; diff < -2.5e-16 || diff > 2.5e-16 {
		t.Errorf("p99 of TTFT: DuckDB %v ns, the report %v ns", got.DuckDB, want)
	}
	t.Logf("p99 of TTFT: report %v, DuckDB %v, pandas %v, Polars %v ns", want, got.DuckDB, got.Pandas, got.Polars)
}

// reported returns what the report of a run with one workload and one variant
// says about a quantity.
func reported(t *testing.T, r *Result, q contract.Quantity) float64 {
	t.Helper()
	for _, row := range r.Report.Workloads[0].Rows {
		if row.Quantity == q {
			return row.Cells[0].Figure.Value
		}
	}
	t.Fatalf("the report has no row of %v", q)
	return 0
}
