package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// logFile lies in the run's directory.
const logFile = "notified.json"

// Delivered is a line of the log.
type Delivered struct {
	Key  string    `json:"key"`
	Host string    `json:"host"`
	At   time.Time `json:"at"`
}

// Log is what was delivered for the run in a directory.
type Log struct {
	path string
	All  []Delivered
}

// OpenLog reads the log of a run. There need not be one.
func OpenLog(dir string) (*Log, error) {
	l := &Log{path: filepath.Join(dir, logFile)}
	data, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &l.All)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s, which says what was told already: %w\n  hint: remove it to tell again", l.path, err)
	}
	return l, nil
}

// Find returns the delivery of the message of that key.
func (l *Log) Find(key string) (Delivered, bool) {
	for _, d := range l.All {
		if d.Key == key {
			return d, true
		}
	}
	return Delivered{}, false
}

// Add writes a delivery down: whole or not at all.
func (l *Log) Add(d Delivered) error {
	l.All = append(l.All, d)
	data, err := json.MarshalIndent(l.All, "", "  ")
	if err != nil {
		return err
	}
	tmp := l.path + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing down what was told: %w", err)
	}
	if err := os.Rename(tmp, l.path); err != nil {
		return fmt.Errorf("writing down what was told: %w", err)
	}
	return nil
}
