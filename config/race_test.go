//go:build race

package config

// raceEnabled says that the race detector multiplies the size of a process.
const raceEnabled = true
