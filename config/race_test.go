//go:build race

package config

// raceEnabled says that the race detector multiplies the cost of everything.
const raceEnabled = true
