package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/assay-llm/assay/check"
)

// The files of a run that its checks write. docs/format/checks.md describes them.
const (
	answersName = "answers.jsonl"
	checksName  = "checks.jsonl"
)

// The schemas of their lines.
const (
	answerSchema  = "assay.answer/1"
	textSchema    = "assay.text/1"
	outcomeSchema = "assay.check/1"
)

// maxLine bounds one line of an answers file: an answer and its log-probabilities.
const maxLine = 64 << 20

// answerLine is one line of an answers file: an answer, or a text that a finding
// refers to.
type answerLine struct {
	Schema   string        `json:"schema"`
	Key      string        `json:"key,omitempty"`
	Endpoint string        `json:"endpoint,omitempty"`
	Answer   *check.Answer `json:"answer,omitempty"`
	Digest   string        `json:"sha256,omitempty"`
	Text     string        `json:"text,omitempty"`
}

// answers is the memory of a run's checks: a file that is only appended to, and
// synced before an answer is used. It keeps no answer in memory, only where it is.
type answers struct {
	file *os.File

	mu    sync.Mutex
	at    map[string]span // by key
	texts map[string]bool // digests
	end   int64
	err   error

	syncing sync.Mutex
	synced  int64 // bytes that are on disk
}

type span struct{ from, length int64 }

// openAnswers opens the answers of a run, or begins them. A line that a crash cut
// is cut off.
func openAnswers(dir string) (*answers, error) {
	f, err := os.OpenFile(filepath.Join(dir, answersName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the answers: %w", err)
	}
	a := &answers{file: f, at: make(map[string]span), texts: make(map[string]bool)}
	if err := a.scan(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", answersName, err), f.Close())
	}
	if err := f.Truncate(a.end); err != nil {
		return nil, errors.Join(fmt.Errorf("mending %s: %w", answersName, err), f.Close())
	}
	return a, nil
}

// scan finds out what is there. Of a line that is whole but damaged it knows
// nothing, and its question is asked again.
func (a *answers) scan() error {
	r := bufio.NewReaderSize(a.file, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var l struct {
			Key    string `json:"key"`
			Digest string `json:"sha256"`
		}
		if len(line) <= maxLine && json.Unmarshal(line, &l) == nil {
			switch {
			case l.Key != "":
				a.at[l.Key] = span{a.end, int64(len(line))}
			case l.Digest != "":
				a.texts[l.Digest] = true
			}
		}
		a.end += int64(len(line))
	}
}

// Recall reads the answer of a key.
func (a *answers) Recall(key string) (*check.Answer, bool, error) {
	a.mu.Lock()
	at, ok := a.at[key]
	a.mu.Unlock()
	if !ok {
		return nil, false, nil
	}
	b := make([]byte, at.length)
	if _, err := a.file.ReadAt(b, at.from); err != nil {
		return nil, false, err
	}
	var l answerLine
	if err := json.Unmarshal(b, &l); err != nil || l.Answer == nil || l.Key != key {
		return nil, false, fmt.Errorf("%s is damaged at byte %d", answersName, at.from)
	}
	return l.Answer, true, nil
}

// Save appends an answer and waits until it is on disk; those that come meanwhile
// share one sync.
func (a *answers) Save(key, endpoint string, answer *check.Answer) error {
	end, err := a.append(answerLine{Schema: answerSchema, Key: key, Endpoint: endpoint, Answer: answer}, func(at span) { a.at[key] = at })
	if err != nil {
		return err
	}
	a.syncing.Lock()
	defer a.syncing.Unlock()
	if a.synced >= end {
		return nil
	}
	a.mu.Lock()
	written := a.end
	a.mu.Unlock()
	if err := a.file.Sync(); err != nil {
		return err
	}
	a.synced = written
	return nil
}

// keep appends a text, once.
func (a *answers) keep(digest, text string) {
	a.mu.Lock()
	known := a.texts[digest]
	a.mu.Unlock()
	if !known {
		_, _ = a.append(answerLine{Schema: textSchema, Digest: digest, Text: text}, func(span) { a.texts[digest] = true }) // kept in a.err
	}
}

func (a *answers) append(l answerLine, enter func(span)) (end int64, err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return 0, a.err // behind half a line nothing can be read
	}
	if b.Len() > maxLine {
		return 0, fmt.Errorf("an answer of %d bytes; the limit is %d", b.Len(), maxLine)
	}
	if _, err := a.file.WriteAt(b.Bytes(), a.end); err != nil {
		a.err = err
		return 0, err
	}
	enter(span{a.end, int64(b.Len())})
	a.end += int64(b.Len())
	return a.end, nil
}

func (a *answers) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.err, a.file.Sync(), a.file.Close())
}

// outcomeLine is one line of a checks file.
type outcomeLine struct {
	Schema string `json:"schema"`
	*check.Outcome
}

// writeOutcomes writes what became of the checks.
func writeOutcomes(dir string, outcomes []*check.Outcome) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, o := range outcomes {
		if err := enc.Encode(outcomeLine{outcomeSchema, o}); err != nil {
			return fmt.Errorf("writing what the check %s found: %w", o.Check, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, checksName), b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", checksName, err)
	}
	return nil
}

// readOutcomes reads what became of the checks; nil if none was run to the end.
func readOutcomes(dir string) (out []*check.Outcome, err error) {
	data, err := os.ReadFile(filepath.Join(dir, checksName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", checksName, err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		var l outcomeLine
		if err := dec.Decode(&l); err == io.EOF {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading %s: %w", checksName, err)
		}
		if l.Schema == outcomeSchema && l.Outcome != nil {
			out = append(out, l.Outcome)
		}
	}
}
