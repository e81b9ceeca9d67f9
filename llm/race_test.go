//go:build race

package llm

// raceEnabled shortens what the race detector slows down without more to find.
const raceEnabled = true
