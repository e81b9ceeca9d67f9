package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/assay-llm/assay/record"
)

// watchedName is the file of the client's health, a line a second, for a run that is
// killed and resumed: its certificate needs all of them. The last line is also the last
// sign of life of a process that was killed.
const watchedName = "client.jsonl"

// watched keeps the client's health on disk while a run lasts.
type watched struct {
	rows chan record.ClientSecond
	done sync.WaitGroup
	err  error // of the first failure; read it after close
}

// watchedBacklog is how many seconds a disk may be behind before the monitor waits
// for it, and notes a stall.
const watchedBacklog = 60

// keepWatched appends to the file of a run directory until close.
func keepWatched(dir string) (*watched, error) {
	f, err := os.OpenFile(filepath.Join(dir, watchedName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	w := &watched{rows: make(chan record.ClientSecond, watchedBacklog)}
	w.done.Go(func() {
		for row := range w.rows {
			if w.err != nil {
				continue
			}
			line, err := json.Marshal(row)
			if err == nil {
				_, err = f.Write(append(line, '\n'))
			}
			if err == nil {
				err = f.Sync()
			}
			w.err = err
		}
		w.err = errors.Join(w.err, f.Close())
	})
	return w, nil
}

// add keeps a second.
func (w *watched) add(row record.ClientSecond) { w.rows <- row }

// close waits until everything is on disk.
func (w *watched) close() error {
	close(w.rows)
	w.done.Wait()
	return w.err
}

// readWatched returns the seconds that a stopped run kept, and how many of them are
// damaged: what the client was like then, nobody knows.
func readWatched(dir string) (rows []record.ClientSecond, damaged int, err error) {
	data, err := wholeLines(filepath.Join(dir, watchedName))
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(data) {
		var row record.ClientSecond
		if json.Unmarshal(line, &row) != nil || row.Second < 0 {
			damaged++
			continue
		}
		rows = append(rows, row)
	}
	return rows, damaged, nil
}

// wholeLines reads a file of lines that a crash may have torn, and cuts a last line
// without an end off it, so that another can follow. A file that is not there is empty.
func wholeLines(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole < len(data) {
		err = os.Truncate(name, int64(whole))
	}
	return data[:whole], err
}
