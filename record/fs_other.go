//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package record

import (
	"errors"
	"fmt"
	"os"
)

// syncDir does nothing: these systems cannot sync a directory through a file
// handle; renames are as durable as the file system makes them.
func syncDir(string) error { return nil }

// lockFile makes the named file, which must not be there. After a crash the file
// stays, and a person must remove it.
func lockFile(name string) (func() error, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w (if no program is running, remove %s)", ErrLocked, name)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(f.Close(), os.Remove(name)) }, nil
}
