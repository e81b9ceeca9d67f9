package sim

import (
	"testing"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// TestClientClassesOfFaults holds the tool's own client to the outcome that each
// fault deserves, streamed and whole, and to the instants that the server tells.
func TestClientClassesOfFaults(t *testing.T) {
	type outcomes struct{ stream, whole record.Outcome }
	for fault, want := range map[Fault]outcomes{
		NoFault:          {record.OK, record.OK},
		FaultError:       {record.HTTP5xx, record.HTTP5xx},
		FaultBusy:        {record.HTTP5xx, record.HTTP5xx},
		FaultRate:        {record.HTTP4xx, record.HTTP4xx},
		FaultRefuse:      {record.HTTP4xx, record.HTTP4xx},
		FaultResetEarly:  {record.ResetBefore, record.ResetBefore},
		FaultSlow:        {record.OK, record.OK},
		FaultGarbage:     {record.Truncated, record.Malformed}, // a page holds no event
		FaultErrorInside: {record.ErrorEvent, record.ErrorEvent},
		FaultReset:       {record.ResetMid, record.ResetBefore},
		FaultCut:         {record.ResetMid, record.ResetBefore},
		FaultStall:       {record.OK, record.OK},
		FaultTruncate:    {record.Truncated, ""}, // a whole body of which only finish_reason is missing: the client's choice
		FaultNoDone:      {record.OK, record.OK},
		FaultMalformed:   {record.Malformed, record.Malformed},
		FaultHuge:        {record.EventTooLarge, record.OK}, // one body of 17 MiB is below the limit of bodies
		FaultEmpty:       {record.EmptyOutput, record.EmptyOutput},
		FaultUsage:       {record.OK, record.OK},
	} {
		t.Run("fault "+string(fault), func(t *testing.T) {
			c := Config{Step: Step{Base: 10e6}}
			for _, f := range faultFields(&c.Faults) {
				if f.fault == fault {
					*f.share = 1
				}
			}
			inBubble(t, c, func(t *testing.T, r *rig) {
				client, err := llm.NewClient(llm.Target{URL: "http://sim:80/v1", Dial: r.net.DialContext})
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				epoch := time.Now()
				for i := range 4 {
					var rec record.Record
					rec.Shot = int64(i)
					stream := i%2 == 0
					answer := client.Do(t.Context(), epoch, &llm.Request{
						Messages:  []corpus.Message{{Role: "user", Content: "one two three"}},
						MaxTokens: 8, Stream: stream,
					}, &rec)
					wanted := want.whole
					if stream {
						wanted = want.stream
					}
					if fault == FaultUsage && rec.Outcome == record.LengthMismatch && rec.Output == record.Tokens(1008) {
						continue // the lie was found out
					}
					if rec.Outcome != wanted && wanted != "" {
						t.Errorf("stream %t: outcome %s (%s), want %s", stream, rec.Outcome, rec.Detail, wanted)
					}
					checkStamps(t, &rec, stream)
					if n, ok := rec.Output.N(); fault == NoFault && (!ok || n != 8 || len(Tokens(answer.Text)) != 8) {
						t.Errorf("stream %t: %d output tokens, %q", stream, n, answer.Text)
					}
				}
			})
		})
	}
}

// checkStamps compares the client's stamps with the server's: in virtual time
// and without latency they are the same instants.
func checkStamps(t *testing.T, rec *record.Record, stream bool) {
	t.Helper()
	for i, e := range rec.Events {
		if e.Kind.Payload() && stream && e.Bytes < hugeBytes && (!e.Emit.Set() || e.Emit != e.At) {
			t.Errorf("event %d (%s) was written at %d and came at %d", i, e.Kind, e.Emit, e.At)
		}
	}
}

type faultField struct {
	fault Fault
	share *config.Percent
}

// faultFields returns the settable share of each fault.
func faultFields(f *Faults) []faultField {
	return []faultField{
		{FaultError, &f.Error},
		{FaultBusy, &f.Busy},
		{FaultRate, &f.Rate},
		{FaultRefuse, &f.Refuse},
		{FaultResetEarly, &f.ResetEarly},
		{FaultSlow, &f.Slow},
		{FaultGarbage, &f.Garbage},
		{FaultErrorInside, &f.ErrorInside},
		{FaultReset, &f.Reset},
		{FaultCut, &f.Cut},
		{FaultStall, &f.Stall},
		{FaultTruncate, &f.Truncate},
		{FaultNoDone, &f.NoDone},
		{FaultMalformed, &f.Malformed},
		{FaultHuge, &f.Huge},
		{FaultEmpty, &f.Empty},
		{FaultUsage, &f.Usage},
	}
}

func TestEveryFaultCanBeConfigured(t *testing.T) {
	fields := faultFields(new(Faults))
	shares := new(Faults).shares()
	if len(fields) != len(shares) {
		t.Fatalf("%d fields, %d faults", len(fields), len(shares))
	}
	for _, f := range shares {
		var c Config
		if err := config.Decode("sim.yaml", []byte("faults: {"+string(f.fault)+": 100%}"), &c); err != nil {
			t.Error(err)
			continue
		}
		if got, _ := c.Faults.draw(1, "x"); got != f.fault {
			t.Errorf("faults.%s: 100%% draws %q", f.fault, got)
		}
	}
}
