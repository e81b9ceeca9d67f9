package pace

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timerfd is an alarm that Go's poller wakes like a socket.
type timerfd struct {
	fd   int
	file *os.File // owns fd
	buf  [8]byte
}

// newAlarm returns nil when the system gives no timerfd.
func newAlarm() alarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	if file.SetReadDeadline(time.Time{}) != nil { // not pollable: a read would block a thread
		_ = file.Close()
		return nil
	}
	return &timerfd{fd: fd, file: file}
}

func (t *timerfd) wait(ctx context.Context, d time.Duration) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(d), 1))}
	if err := unix.TimerfdSettime(t.fd, 0, &spec, nil); err != nil {
		return err
	}
	if ctx.Done() == nil {
		_, err := t.file.Read(t.buf[:])
		return err
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = t.file.SetReadDeadline(time.Unix(1, 0))
		close(woken)
	})
	_, err := t.file.Read(t.buf[:])
	if !stop() { // the context ended: make the alarm usable again
		<-woken
		_ = t.file.SetReadDeadline(time.Time{})
		return context.Cause(ctx)
	}
	return err
}

func (t *timerfd) close() error { return t.file.Close() }
