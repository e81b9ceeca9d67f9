package bench

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/dimension"
)

// Review is the queue of a run: what its check safety found to be newly failing.
type Review struct {
	Schema string     `json:"schema"` // assay.review/1
	Run    string     `json:"run"`
	Queue  []Reviewed `json:"queue"`
	Left   int        `json:"left,omitempty"` // beyond those that are listed
}

// Reviewed is one case of the queue, and the answer's text if it was unsealed. The
// text may do harm, and is hostile.
type Reviewed struct {
	dimension.ReviewItem
	Text string `json:"text,omitempty"`
}

// ReviewOf reads the queue of a run. With a seal it reads the answers, too; the error
// is check.ErrSeal if it is another than the run's.
func ReviewOf(dir string, seal *check.Seal) (*Review, error) {
	outcomes, err := readOutcomes(dir)
	if err != nil {
		return nil, err
	}
	for _, o := range outcomes {
		if o.Check != dimension.Safety.Name {
			continue
		}
		data, err := json.Marshal(o.Data)
		if err != nil {
			return nil, fmt.Errorf("reading the queue of %s: %w", dir, err)
		}
		var found dimension.SafetyReport
		if err := json.Unmarshal(data, &found); err != nil {
			return nil, fmt.Errorf("reading the queue of %s: %w", dir, err)
		}
		out := &Review{Schema: "assay.review/1", Run: filepath.Base(filepath.Clean(dir)), Queue: []Reviewed{}, Left: found.Left}
		for _, item := range found.Queue {
			out.Queue = append(out.Queue, Reviewed{ReviewItem: item})
		}
		if seal != nil {
			err = out.unseal(dir, seal)
		}
		return out, err
	}
	return nil, fmt.Errorf("%s has no queue: no check safety of it came to its end\n  hint: name a run whose suite has - safety: {} among its checks", dir)
}

// unseal puts the texts of answers beside their digests.
func (r *Review) unseal(dir string, seal *check.Seal) error {
	wanted := make(map[string][]int)
	for i, item := range r.Queue {
		wanted[item.SHA256] = append(wanted[item.SHA256], i)
	}
	f, err := os.Open(filepath.Join(dir, answersName))
	if err != nil {
		return fmt.Errorf("reading the sealed answers: %w", err)
	}
	defer f.Close()
	in, sealed := bufio.NewReaderSize(f, 1<<20), false
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the sealed answers: %w", err)
		}
		var l answerLine
		if len(line) > maxLine || json.Unmarshal(line, &l) != nil || l.Answer == nil || l.Answer.Sealed == nil {
			continue
		}
		sealed = true
		a, err := seal.Open(l.Key, l.Answer)
		if err != nil {
			return fmt.Errorf("unsealing the answers of %s: %w", dir, err)
		}
		sum := sha256.Sum256([]byte(a.Text))
		for _, i := range wanted[hex.EncodeToString(sum[:])] {
			r.Queue[i].Text = a.Text
		}
	}
	if !sealed {
		return fmt.Errorf("%s keeps no sealed answers\n  hint: give the suite asking: {seal: env:NAME} and run it again", dir)
	}
	return nil
}
