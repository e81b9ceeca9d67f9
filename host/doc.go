// Package host says what the machine below a load client allows, and whether
// that is enough to measure from.
//
// [Read] takes from /proc and /sys what they tell: the CPU quota and memory limit
// of the process's cgroup, the range of ephemeral ports, the accept queue, clock
// source, frequency governors, pressure. It reads through an fs.FS, so that a
// host's files may lie elsewhere (/host in a container) and odd ones be tested.
// [Measure] asks the system what no file tells: descriptor limits, free space,
// the time of an fsync, how late a timer wakes. [Examine] judges both, and [Fit]
// holds them against what a load needs; a [Finding] each.
//
// What cannot be read is unknown, never fine: a Finding says so, and a figure is
// negative. On systems other than Linux most is unknown.
package host
