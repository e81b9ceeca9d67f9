package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"
)

// ManifestSchema names the JSON form of a Manifest.
const ManifestSchema = "assay.manifest/1"

// Manifest is what a run directory says of itself: all that is needed to repeat
// the run and to know how far to trust it. It is written as manifest.json when
// the run starts and again when it ends.
type Manifest struct {
	Schema    string            `json:"schema"` // ManifestSchema
	ID        string            `json:"id"`     // sorts by start time
	Name      string            `json:"name"`   // the suite's name
	Assay     string            `json:"assay"`  // version of the program
	Seed      uint64            `json:"seed"`
	Salt      string            `json:"salt"`  // put before every prompt of this run; "" when prompts are unsalted
	Start     time.Time         `json:"start"` // wall clock at the epoch
	Elapsed   time.Duration     `json:"elapsed_ns"`
	State     string            `json:"state"` // running, done, interrupted, failed, imported
	Suite     string            `json:"suite"` // the resolved suite as YAML; secrets only by reference
	SuiteFile string            `json:"suite_file,omitempty"`
	Digest    string            `json:"suite_digest"` // hex SHA-256 of the resolved suite
	Variants  []VariantInfo     `json:"variants"`
	Workloads []WorkloadInfo    `json:"workloads"`
	Windows   []Window          `json:"windows"`
	Gaps      []Gap             `json:"gaps,omitempty"`  // between a stop and the resumption
	Stops     []Stop            `json:"stops,omitempty"` // workloads that ended before their plan was done, since they were decided
	Client    Certificate       `json:"client"`
	Host      map[string]string `json:"host"` // cpu, cores, memory, kernel, go
	Ledger    []LedgerRow       `json:"ledger"`
	Notes     []string          `json:"notes,omitempty"` // what a reader must know and no number shows
	Engines   []EngineSide      `json:"engine_side,omitempty"`
	Caches    []CacheProof      `json:"cache_proofs,omitempty"`
	Foreseen  *Foreseen         `json:"foreseen,omitempty"` // what the checks were expected to cost; null: there are none, or nobody reckoned
	Lock      *LockInfo         `json:"lock,omitempty"`     // what the run depends on; null: nobody wrote it down
}

// LockInfo says where it is written what a run depends on, and whether it was held to it.
type LockInfo struct {
	Digest  string   `json:"digest"`            // of lock.yaml in the run directory, without what is volatile
	Held    string   `json:"held,omitempty"`    // the file that the run was held to before anything was sent; "": to none
	Unknown []string `json:"unknown,omitempty"` // what matters and could not be learnt
}

// Foreseen is what the checks of a run were expected to cost, told before they
// asked, and how long they then took.
type Foreseen struct {
	Requests     int64         `json:"requests"`
	PromptTokens int64         `json:"prompt_tokens"`
	OutputTokens int64         `json:"output_tokens"`
	Sampled      int64         `json:"sampled"`           // requests that were sent to learn this, and count among the others
	Time         time.Duration `json:"time_ns"`           // of all but the sample; 0: not known
	Spread       time.Duration `json:"spread_ns"`         // twice the standard error of Time
	Took         time.Duration `json:"took_ns,omitempty"` // 0: the checks did not come to their end in one go, or some ran under load, too
}

// VariantInfo says who was measured.
type VariantInfo struct {
	Name     string            `json:"name"`
	URL      string            `json:"url"`
	Model    string            `json:"model"`
	API      string            `json:"api"`
	Protocol string            `json:"protocol"`         // HTTP/1.1 or HTTP/2
	About    map[string]string `json:"about,omitempty"`  // what the suite says of it: family, precision, engine, hardware
	Engine   map[string]string `json:"engine,omitempty"` // what the engine says about itself; the simulated engine's configuration
}

// WorkloadInfo says what was sent.
type WorkloadInfo struct {
	Name     string            `json:"name"`
	Arrivals string            `json:"arrivals"` // in words: "Poisson 8/s for 5m0s"
	Open     bool              `json:"open_loop"`
	Planned  int64             `json:"planned"` // shots a variant, warm-up left out; −1: as many as fit
	WarmUp   int64             `json:"warm_up"` // shots a variant
	Plan     string            `json:"plan_digest"`
	Rate     float64           `json:"rate,omitempty"`    // mean planned requests per second of an open loop
	Process  *Process          `json:"process,omitempty"` // of an open loop whose send times can be tested for it
	Users    int               `json:"users,omitempty"`   // of a closed loop; shot i belongs to user i mod Users
	Labels   map[string]string `json:"labels,omitempty"`
	Prompts  string            `json:"prompts_digest,omitempty"` // of the suite's prompt files; "": it has none
	Unsalted bool              `json:"unsalted,omitempty"`       // the prompts are the same in every run of the seed
	Repeats  *float64          `json:"repeats,omitempty"`        // share of the prompts' text that begins an earlier prompt of the plan; null: not known

	Peak    float64  `json:"peak_rate,omitempty"`    // most planned requests in any second of an open loop
	Ceiling *Ceiling `json:"ceiling,omitempty"`      // of this client for this shape; null: not measured
	Why     string   `json:"ceiling_note,omitempty"` // why it was not measured, or what else there is to know of it
}

// Shape is what a workload asks of a client: how large its requests and answers
// are, in round numbers, and how fast an answer's events follow each other.
type Shape struct {
	Stream      bool          `json:"stream"`
	Events      int           `json:"events"`       // with payload, of an answer
	EventBytes  int           `json:"event_bytes"`  // of text, in one event
	Gap         time.Duration `json:"gap_ns"`       // between two events of an answer
	PromptBytes int           `json:"prompt_bytes"` // of text, in one request
}

// Ceiling is how much of a shape the client on this host could carry against a
// server that computes nothing, up to the rate at which its own certificate
// found it unfit. Rates are per second.
type Ceiling struct {
	Shape    Shape         `json:"shape"`
	Requests float64       `json:"requests_per_s"`     // the median of the repeats
	Low      float64       `json:"lo"`                 // the least of the repeats
	High     float64       `json:"hi"`                 // the greatest
	Events   float64       `json:"events_per_s"`       // with payload, at that rate
	Streams  float64       `json:"streams"`            // in flight at that rate, on average
	AtLeast  bool          `json:"at_least"`           // it was not driven to its end: the ceiling lies at Requests or above
	EndedBy  string        `json:"ended_by,omitempty"` // the certificate's reason at the next higher rate
	Repeats  int           `json:"repeats"`            //
	At       time.Time     `json:"measured_at"`        // wall clock
	Took     time.Duration `json:"took_ns"`            // to measure
	Cores    int           `json:"cores"`              // that client and server shared
	Client   float64       `json:"client_cpu"`         // share of their time that the client took at the next higher rate; negative: unknown
	Server   float64       `json:"server_cpu"`         // and the server; negative: unknown
	Stamps   bool          `json:"kernel_stamps"`      // the kernel stamped what was received
	Overhead *Overhead     `json:"overhead,omitempty"` // of the client at half of the ceiling or less
}

// Overhead is what the client and the loopback add, measured against a server
// that computes nothing. It is subtracted nowhere.
type Overhead struct {
	Rate    float64       `json:"requests_per_s"`
	TTFTP50 time.Duration `json:"ttft_p50_ns"` // from due
	TTFTP99 time.Duration `json:"ttft_p99_ns"`
	LagP99  time.Duration `json:"send_lag_p99_ns"`
	CPU     time.Duration `json:"cpu_per_request_ns"` // of the client; negative: unknown
}

// Gap is a time in which nobody worked at a run: it had stopped and was resumed.
// No window reaches into it.
type Gap struct {
	From   Instant `json:"from_ns"` // last sign of life of the process that stopped
	To     Instant `json:"to_ns"`   // when the run went on, by the wall clock
	Killed bool    `json:"killed,omitempty"`
	Repair string  `json:"repair,omitempty"` // what was cut off a torn journal
}

// Stop is a workload that ended before its plan was done, since more requests on it
// could change nothing any more.
type Stop struct {
	Workload string        `json:"workload"`
	Why      string        `json:"why"`                // what was decided, in words
	Look     int           `json:"look"`               // at which look, from 1; 0: it was not begun
	Looks    int           `json:"looks"`              // that were planned
	Blocks   int           `json:"blocks"`             // of each variant that were measured
	Planned  int           `json:"planned_blocks"`     // of each variant
	Requests int64         `json:"requests"`           // measured, of each variant
	Saved    time.Duration `json:"saved_ns,omitempty"` // planned time of all variants that was not measured; 0: not known, or a closed loop
	Unsent   int64         `json:"unsent,omitempty"`   // planned requests of all variants that were not sent; 0: not known
}

// LedgerRow accounts for the shots of one variant on one workload:
// Offered = Completed + Failed + Dropped, exactly; the maps split the last two
// by outcome.
type LedgerRow struct {
	Variant   string            `json:"variant"`
	Workload  string            `json:"workload"`
	Phase     string            `json:"phase"`
	Offered   int64             `json:"offered"`
	Completed int64             `json:"completed"`
	Failed    int64             `json:"failed"`
	Dropped   int64             `json:"dropped"`
	ByOutcome map[Outcome]int64 `json:"by_outcome"`
}

// Certificate is the load client's own health over a run, and whether it was
// fit to measure.
type Certificate struct {
	Fit     bool           `json:"fit"`
	Reasons []string       `json:"reasons,omitempty"` // why not, with figures
	Seconds []ClientSecond `json:"seconds,omitempty"`
}

// ClientSecond is the client's health in one second. A figure that could not be
// measured is negative. Lags are of the requests and events of that second.
type ClientSecond struct {
	Second      int           `json:"second"` // since the epoch
	Sent        int64         `json:"sent"`
	InFlight    int64         `json:"in_flight"` // at the end of the second
	Dropped     int64         `json:"dropped"`
	Delayed     int64         `json:"delayed_by_cap"`
	SendLagP50  time.Duration `json:"send_lag_p50_ns"` // due to first byte written
	SendLagP99  time.Duration `json:"send_lag_p99_ns"`
	SendLagMax  time.Duration `json:"send_lag_max_ns"`
	StampLagP99 time.Duration `json:"stamp_lag_p99_ns"` // kernel receive to our stamp
	StampLagMax time.Duration `json:"stamp_lag_max_ns"`
	Stall       time.Duration `json:"stall_ns"` // the longest time that the process did not run, by a heartbeat
	CPU         float64       `json:"cpu"`      // CPU time of the process over the time it could have had, 0 to 1
	GCPauseMax  time.Duration `json:"gc_pause_max_ns"`
	SchedP99    time.Duration `json:"sched_p99_ns"` // Go scheduler: runnable to running
	Descriptors int64         `json:"descriptors"`  // open now
	Limit       int64         `json:"descriptor_limit"`
	Errors      int64         `json:"client_errors"` // the client's own socket and descriptor failures
}

const manifestSchema = "assay.manifest/1"

// WriteManifest writes the run's manifest.json in one step: a crash leaves the
// one before or the new one. The directory must exist. An empty Schema is filled
// in; m is not changed.
func WriteManifest(fsys FS, dir string, m *Manifest) error {
	out := *m
	if out.Schema == "" {
		out.Schema = manifestSchema
	}
	data, err := json.MarshalIndent(&out, "", "  ")
	if err == nil {
		err = writeFile(fsys, dir, manifestName, func(w io.Writer) error {
			_, err := w.Write(append(data, '\n'))
			return err
		}, nil)
	}
	if err != nil {
		return fmt.Errorf("writing the manifest of %s: %w", dir, err)
	}
	return nil
}

// maxManifest bounds what ReadManifest takes: a day of client seconds is 40 MB.
const maxManifest = 256 << 20

// ReadManifest reads the run's manifest.json. Fields that it does not know are
// skipped; a schema other than assay.manifest/1 is ErrNewer.
func ReadManifest(fsys FS, dir string) (*Manifest, error) {
	name := filepath.Join(dir, manifestName)
	data, err := readFile(fsys, name, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of %s: %w", dir, err)
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if m.Schema != manifestSchema {
		return nil, newerError(name, strconv.Quote(m.Schema))
	}
	return m, nil
}

func readFile(fsys FS, name string, limit int64) (_ []byte, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", name, size, limit)
	}
	data := make([]byte, size)
	_, err = io.ReadFull(io.NewSectionReader(f, 0, size), data)
	return data, err
}
