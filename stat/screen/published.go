package screen

// SteepRise is the index at which a series first rises by more than the threshold
// in a step, by central differences (one-sided at the ends), as published for the
// entropy of attention over positions.
//
// It is here to be compared with, and decides nothing: where no step is that
// steep it returns 0, as it does for a rise at the very beginning, so that it
// cannot say that there is none; and the entropy of even attention rises with the
// logarithm of the position, most steeply at the beginning. [Changes] of
// entropies that are divided by their greatest says none where there is none.
func SteepRise(series []float64, threshold float64) int {
	for i := range series {
		from, to := max(i-1, 0), min(i+1, len(series)-1)
		if from < to && (series[to]-series[from])/float64(to-from) > threshold {
			return i
		}
	}
	return 0
}

// Fell reports whether any share of events is below the first by more than so
// much, a rule that is published for accuracy by length of context with 0.15.
// Events[i] of sizes[i] trials had the event, and each period has a trial.
//
// It is here to be compared with: of shares that never change it says so as often
// as there are few trials. [TrialChange] says how likely that is.
func Fell(events, sizes []int, by float64) bool {
	for i := range events {
		// 17 of 20 are 0.15 below 20 of 20, and not more for the last bit.
		if fall := float64(events[0])/float64(sizes[0]) - float64(events[i])/float64(sizes[i]); fall > by+1e-12 {
			return true
		}
	}
	return false
}
