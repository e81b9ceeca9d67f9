package workload_test

import (
	"fmt"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/workload"
)

func ExampleNew() {
	spec := workload.Spec{
		Arrivals: workload.Arrivals{Poisson: &workload.Rate{Fixed: 8}},
		For:      config.Duration(5 * time.Minute),
		Prompts:  workload.Prompts{Synthetic: workload.Fixed[config.Count](6)},
		Output:   workload.Length{Kind: "uniform", Min: 16, Max: 64},
	}
	plan, err := workload.New("chat", spec, nil, 42, "7c1f")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan, "-", plan.Planned(), "requests")
	for shot := range plan.All() {
		fmt.Println(shot.Index, shot.Due, shot.MaxTokens, shot.Messages[0].Content)
		if shot.Index == 2 {
			break
		}
	}
	// Output:
	// Poisson 8/s for 5m - 2389 requests
	// 0 305.897915ms 60 [7c1f] close about team tea one though
	// 1 382.30021ms 52 [7c1f] cold always forest slow team like
	// 2 540.551683ms 47 [7c1f] blood see behind below call ready
}
