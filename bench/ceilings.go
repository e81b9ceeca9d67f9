package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// CeilingSchema names the JSON form of a kept ceiling.
const CeilingSchema = "assay.ceiling/1"

// keptFor is how long a ceiling is believed: kernels are updated, neighbours move in.
const keptFor = 7 * 24 * time.Hour

// disturbed reports whether the client was unfit although it and its server used
// less than a CPU, and less than half of them all: something else held it back. It
// is no ceiling of the host then, but of that moment.
func disturbed(c *record.Ceiling) bool { return !c.AtLeast && idle(c.Client, c.Server, c.Cores) }

// idle reports whether so many shares of the CPUs' time are no reason for a client
// to be late. What is unknown is no proof of it.
func idle(client, server float64, cores int) bool {
	return client >= 0 && server >= 0 && (client+server)*float64(cores) < min(1, 0.5*float64(cores))
}

// keptCeiling is a file of Calibrator.Cache: a ceiling, and of which program on
// which host.
type keptCeiling struct {
	Schema  string            `json:"schema"`
	Program string            `json:"program"` // hex SHA-256 of the binary
	Host    map[string]string `json:"host"`
	Ceiling *record.Ceiling   `json:"ceiling"`
}

// program is the digest of the running binary; "" if it cannot be read.
var program = sync.OnceValue(func() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
})

// path is where the ceiling for a shape is kept; "" if it is nowhere.
func (c *Calibrator) path(shape record.Shape) string {
	if c.Cache == "" || program() == "" {
		return ""
	}
	key, err := json.Marshal(keptCeiling{CeilingSchema, program(), hostFacts(), &record.Ceiling{Shape: shape}})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(key)
	return filepath.Join(c.Cache, "ceiling-"+hex.EncodeToString(sum[:8])+".json")
}

// Known returns the kept ceiling for a shape, of this program on this host and not
// older than a week; nil if there is none. A file that makes no sense is none.
func (c *Calibrator) Known(shape record.Shape) *record.Ceiling {
	name := c.path(shape)
	if name == "" {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCeiling+1))
	if err != nil {
		return nil
	}
	k, err := parseCeiling(data)
	if err != nil || k.Program != program() || !maps.Equal(k.Host, hostFacts()) || k.Ceiling.Shape != shape {
		return nil
	}
	if age := time.Since(k.Ceiling.At); age < -time.Minute || age > keptFor || disturbed(k.Ceiling) {
		return nil
	}
	return k.Ceiling
}

const maxCeiling = 64 << 10 // bytes of a kept ceiling

// parseCeiling reads a kept ceiling and refuses one that cannot be.
func parseCeiling(data []byte) (*keptCeiling, error) {
	if len(data) > maxCeiling {
		return nil, fmt.Errorf("%d bytes are no ceiling", len(data))
	}
	k := new(keptCeiling)
	if err := json.Unmarshal(data, k); err != nil {
		return nil, fmt.Errorf("reading a ceiling: %w", err)
	}
	switch c := k.Ceiling; {
	case k.Schema != CeilingSchema:
		return nil, fmt.Errorf("schema %q is not %s", k.Schema, CeilingSchema)
	case c == nil:
		return nil, errors.New("there is no ceiling")
	case !positive(c.Requests) || !positive(c.Low) || !positive(c.High) || c.Low > c.Requests || c.Requests > c.High:
		return nil, fmt.Errorf("%v requests/s in [%v, %v] are no ceiling", c.Requests, c.Low, c.High)
	case c.Repeats < 1 || c.At.IsZero():
		return nil, errors.New("the ceiling was never measured")
	}
	return k, nil
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

// Keep writes a ceiling for later runs, in one step.
func (c *Calibrator) Keep(ceiling *record.Ceiling) error {
	name := c.path(ceiling.Shape)
	if name == "" {
		return errors.New("the program cannot read its own binary, by which ceilings are told apart")
	}
	data, err := json.MarshalIndent(keptCeiling{CeilingSchema, program(), hostFacts(), ceiling}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Cache, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.Cache, ".ceiling-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
