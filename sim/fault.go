package sim

import (
	"time"

	"github.com/assay-llm/assay/config"
)

// Fault names what the server does wrong to one request on purpose.
type Fault string

// The faults. The first group comes before the answer, the second inside it.
// Where a stream has no counterpart in an answer in one piece, that answer fails
// in the nearest way.
const (
	NoFault Fault = ""

	FaultError      Fault = "error_before" // 500 with a JSON error
	FaultBusy       Fault = "busy"         // 503, no Retry-After
	FaultRate       Fault = "rate_limit"   // 429 with Retry-After: 1
	FaultRefuse     Fault = "refuse"       // 400 with a JSON error
	FaultResetEarly Fault = "reset_before" // TCP reset before the header
	FaultSlow       Fault = "slow"         // the header comes Faults.For late; then a good answer
	FaultGarbage    Fault = "garbage"      // 200 with a page of HTML for an answer

	FaultErrorInside Fault = "error_inside" // an error event after some tokens, then [DONE]
	FaultReset       Fault = "reset"        // TCP reset after some tokens
	FaultCut         Fault = "cut"          // the connection ends in the middle of an event, without the end of the body
	FaultStall       Fault = "stall"        // no bytes for Faults.For after some tokens, then on
	FaultTruncate    Fault = "truncate"     // a clean end after some tokens, without finish_reason and [DONE]
	FaultNoDone      Fault = "no_done"      // a whole answer, but no [DONE]
	FaultMalformed   Fault = "malformed"    // an event of broken JSON
	FaultHuge        Fault = "huge"         // an event of 17 MiB
	FaultEmpty       Fault = "empty"        // a finish and no output
	FaultUsage       Fault = "wrong_usage"  // usage of zero, of too many tokens, or none, drawn
)

// Faults gives the share of requests that meet each fault; a request meets at
// most one. Which one is a function of the seed and the request's id alone.
type Faults struct {
	Error       config.Percent `yaml:"error_before" doc:"500 before the answer"`
	Busy        config.Percent `yaml:"busy" doc:"503 before the answer"`
	Rate        config.Percent `yaml:"rate_limit" doc:"429 with Retry-After: 1"`
	Refuse      config.Percent `yaml:"refuse" doc:"400 before the answer"`
	ResetEarly  config.Percent `yaml:"reset_before" doc:"TCP reset before the header"`
	Slow        config.Percent `yaml:"slow" doc:"the header comes late, by the time of for"`
	Garbage     config.Percent `yaml:"garbage" doc:"200 with a page of HTML"`
	ErrorInside config.Percent `yaml:"error_inside" doc:"an error event inside the stream"`
	Reset       config.Percent `yaml:"reset" doc:"TCP reset inside the stream"`
	Cut         config.Percent `yaml:"cut" doc:"the connection ends in the middle of an event"`
	Stall       config.Percent `yaml:"stall" doc:"no bytes for the time of for, then on"`
	Truncate    config.Percent `yaml:"truncate" doc:"a clean end without finish_reason and [DONE]"`
	NoDone      config.Percent `yaml:"no_done" doc:"a whole answer without [DONE]"`
	Malformed   config.Percent `yaml:"malformed" doc:"an event of broken JSON"`
	Huge        config.Percent `yaml:"huge" doc:"an event of 17 MiB"`
	Empty       config.Percent `yaml:"empty" doc:"a finish without output"`
	Usage       config.Percent `yaml:"wrong_usage" doc:"usage of zero, of too many tokens, or none"`

	For config.Duration `yaml:"for" doc:"how long slow and stall last. Default 1s"`
}

type faultShare struct {
	fault Fault
	share config.Percent
}

func (f *Faults) shares() []faultShare {
	return []faultShare{
		{FaultError, f.Error},
		{FaultBusy, f.Busy},
		{FaultRate, f.Rate},
		{FaultRefuse, f.Refuse},
		{FaultResetEarly, f.ResetEarly},
		{FaultSlow, f.Slow},
		{FaultGarbage, f.Garbage},
		{FaultErrorInside, f.ErrorInside},
		{FaultReset, f.Reset},
		{FaultCut, f.Cut},
		{FaultStall, f.Stall},
		{FaultTruncate, f.Truncate},
		{FaultNoDone, f.NoDone},
		{FaultMalformed, f.Malformed},
		{FaultHuge, f.Huge},
		{FaultEmpty, f.Empty},
		{FaultUsage, f.Usage},
	}
}

func (f *Faults) check(complain complainer) {
	total := 0.0
	for _, s := range f.shares() {
		if !(s.share >= 0 && s.share <= 1) {
			complain("faults."+string(s.fault), "use a share from 0% to 100%", "%v%% is out of range", float64(s.share)*100)
			return
		}
		total += float64(s.share)
	}
	if total > 1+1e-9 {
		complain("faults", "lower some shares", "the shares add up to %.4g%%: a request meets one fault at most", total*100)
	}
	if f.For < 0 {
		complain("faults.for", "", "it is negative")
	}
}

// draw returns the fault of a request, and a hash to draw its details from.
func (f *Faults) draw(seed uint64, id string) (Fault, uint64) {
	h := stringHash(mix(seed, 0x6661756c74), id)
	u := uniform(h)
	detail := mix(h, 1)
	for _, s := range f.shares() {
		if u < float64(s.share) {
			return s.fault, detail
		}
		u -= float64(s.share)
	}
	return NoFault, detail
}

func (f *Faults) duration() time.Duration {
	if f.For == 0 {
		return time.Second
	}
	return time.Duration(f.For)
}

// hugeBytes is the length of a text that is larger than a client should accept in
// one event.
const hugeBytes = 17 << 20
