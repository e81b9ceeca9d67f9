package record

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Ledger accounts for records: a row for each variant, workload and phase that
// occurs, in that order.
func Ledger(records []Record) []LedgerRow {
	type key struct {
		variant, workload string
		phase             Phase
	}
	rows := make(map[key]*LedgerRow)
	for i := range records {
		r := &records[i]
		k := key{r.Variant, r.Workload, r.Phase}
		row := rows[k]
		if row == nil {
			row = &LedgerRow{Variant: r.Variant, Workload: r.Workload, Phase: r.Phase.String(), ByOutcome: make(map[Outcome]int64)}
			rows[k] = row
		}
		row.Offered++
		row.ByOutcome[r.Outcome]++
		switch r.Outcome.Group() {
		case GroupCompleted:
			row.Completed++
		case GroupFailed:
			row.Failed++
		case GroupDropped:
			row.Dropped++
		}
	}
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b key) int {
		return cmp.Or(strings.Compare(a.variant, b.variant), strings.Compare(a.workload, b.workload), cmp.Compare(a.phase, b.phase))
	})
	ledger := make([]LedgerRow, len(keys))
	for i, k := range keys {
		ledger[i] = *rows[k]
	}
	return ledger
}
