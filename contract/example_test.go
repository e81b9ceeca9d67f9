package contract_test

import (
	"fmt"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

func ExampleEvaluate() {
	var c contract.Contract
	err := config.Decode("contract.yaml", []byte(`
version: 1
clauses:
  - id: first-token
    need: p99(ttft) <= 800ms
  - id: errors
    need: share(failed) <= 1%
`), &c)
	if err != nil {
		fmt.Println(err)
		return
	}
	var e contract.Evidence
	for i := range 350 {
		due := time.Duration(i) * 100 * time.Millisecond
		e.Records = append(e.Records, record.Record{
			Variant: "candidate", Workload: "chat", Outcome: record.OK, Due: record.At(due),
			Events: []record.Event{{Kind: record.KindContent, At: record.At(due + time.Duration(200+i*37%100)*time.Millisecond)}},
		})
	}
	v := contract.Evaluate(&c, e)
	fmt.Println(v.Grade)
	for _, r := range v.Clauses {
		fmt.Printf("%s: %s: %s\n", r.Grade, r.ID, r.Reason)
	}
	// Output:
	// pass
	// pass: first-token: p99 of TTFT is 299 ms (limit 800 ms): at 95 % confidence at most 299 ms
	// pass: errors: share of failed requests is 0 % (limit 1 %): at 95 % confidence at most 0.852 %
}

func ExampleLint() {
	var c contract.Contract
	_ = config.Decode("contract.yaml", []byte("version: 1\nclauses:\n  - need: p99(ttft) <= 800ms\n"), &c)
	for _, fault := range contract.Lint(&c, []contract.Planned{{Workload: "chat", Requests: 100, Streaming: true, Usage: true}}) {
		fmt.Println(fault)
	}
	// Output:
	// contract.yaml:3:11: clauses[0].need: a 95 % bound for p99 needs 299 requests, and workload chat plans 100
	//   hint: write requests: 299 in the workload, or judge p95(ttft)
}
