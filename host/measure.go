package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Measured is what the system itself tells, and what had to be tried. A figure
// that is not known is negative.
type Measured struct {
	OS    string // as runtime.GOOS
	Cores int    // CPUs that the process may run on

	Open, Limit int64 // descriptors: open now, and at most

	Dir  string        // in which the next two were found out
	Free int64         // bytes of free space
	Sync time.Duration // of an fsync of 4 KiB, median of five

	WakeP50, WakeP99 time.Duration // how much later than asked a wait ends

	Stamps Answer // does the kernel stamp what a socket receives?
}

// Answer is a fact that may be unknown, which is its zero value.
type Answer int8

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// Waiter waits until an instant, as *pace.Waiter does.
type Waiter interface {
	Until(ctx context.Context, at time.Time) error
}

// Measure finds out what no file tells, in half a second. It writes and removes
// one file in the nearest folder of dir that exists; w is the waiter whose lateness
// it measures.
func Measure(ctx context.Context, dir string, w Waiter) (Measured, error) {
	m := Measured{OS: runtime.GOOS, Cores: runtime.GOMAXPROCS(0), Free: -1, Sync: -1, WakeP50: -1, WakeP99: -1}
	m.Open, m.Limit = Descriptors()
	var err error
	if m.Dir, err = Existing(dir); err != nil {
		return m, err
	}
	m.Free = freeSpace(m.Dir)
	if m.Sync, err = syncTime(m.Dir); err != nil {
		m.Sync = -1 // unknown: a finding says so
	}
	late, err := lateness(ctx, w)
	if err != nil {
		return m, err
	}
	m.WakeP50, m.WakeP99 = late[len(late)/2], late[len(late)*99/100]
	return m, nil
}

// Existing returns the nearest folder on the way from dir to the root that is
// there.
func Existing(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", dir, err)
	}
	for {
		info, err := os.Stat(at)
		if err == nil && info.IsDir() {
			return at, nil
		}
		if up := filepath.Dir(at); (err == nil || errors.Is(err, fs.ErrNotExist)) && up != at {
			at = up
			continue
		}
		if err == nil {
			err = fmt.Errorf("%s is no folder", at)
		}
		return "", fmt.Errorf("finding %s: %w", dir, err)
	}
}

// syncTime returns the median time of an fsync of 4 KiB more.
func syncTime(dir string) (_ time.Duration, err error) {
	f, err := os.CreateTemp(dir, ".assay-doctor-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var took [5]time.Duration
	for i := range took {
		if _, err := f.Write(make([]byte, 4<<10)); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took[:])
	return took[len(took)/2], nil
}

// lateness waits 100 times for 3 ms and returns how late each wait ended, in order
// of size.
func lateness(ctx context.Context, w Waiter) ([]time.Duration, error) {
	late := make([]time.Duration, 100)
	for i := range late {
		due := time.Now().Add(3 * time.Millisecond)
		if err := w.Until(ctx, due); err != nil {
			return nil, err
		}
		late[i] = time.Since(due)
	}
	slices.Sort(late)
	return late, nil
}
