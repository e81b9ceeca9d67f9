//go:build !race

package stat

const raceDetector = false
