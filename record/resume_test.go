package record

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// sealed makes a run of n records on a new disk, sealed or closed.
func stoppedRun(t *testing.T, seed uint64, n int, seal bool) (*disk, []Record) {
	t.Helper()
	d, records := newDisk(seed), streams(seed, n, 3)
	w, err := Create(d, lifeDir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	end := w.Close
	if seal {
		end = w.Seal
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	return d, records
}

// TestReopenGoesOnWhereTheRunStopped stops runs in every way and goes on.
func TestReopenGoesOnWhereTheRunStopped(t *testing.T) {
	for _, how := range []string{"closed", "sealed", "torn", "empty"} {
		t.Run(how, func(t *testing.T) {
			n := 12
			if how == "empty" {
				n = 0
			}
			d, want := stoppedRun(t, 3, n, how == "sealed")
			journal := lifeDir + "/" + journalName
			if how == "torn" {
				f := d.find(journal)
				f.data = f.data[:len(f.data)-5]
				want = want[:n-1]
			}
			for round := range uint64(3) {
				w, repair, err := Reopen(d, lifeDir)
				if err != nil {
					t.Fatal(err)
				}
				if torn := how == "torn" && round == 0; repair.Torn() != torn {
					t.Errorf("round %d: repair %v, want torn %v", round, repair, torn)
				}
				if _, _, err := Reopen(d, lifeDir); !errors.Is(err, ErrLocked) {
					t.Errorf("a second writer: %v, want ErrLocked", err)
				}
				more := streams(100+round, 4, 2)
				for i := range more {
					if err := w.Append(&more[i]); err != nil {
						t.Fatal(err)
					}
				}
				want = append(want, more...)
				end := []func() error{w.Close, w.Seal, w.Seal}[round]
				if err := end(); err != nil {
					t.Fatal(err)
				}
				got, torn, err := ReadAll(d, lifeDir)
				if err != nil || torn.Torn() {
					t.Fatal(torn, err)
				}
				if diff := diffRecords(want, got); diff != "" {
					t.Fatalf("round %d: (-want +got):\n%s", round, diff)
				}
			}
		})
	}
}

// TestReopenLosesNothingAtAPowerFailure takes the power away at every operation of
// turning a table back into a journal.
func TestReopenLosesNothingAtAPowerFailure(t *testing.T) {
	points := 0
	for seed := range uint64(8) {
		for stopAt := 1; ; stopAt++ {
			over := false
			synctest.Test(t, func(t *testing.T) {
				d, want := stoppedRun(t, seed, 9, true)
				d.revive(stopAt)
				w, _, err := Reopen(d, lifeDir)
				if over = err == nil; over {
					w.Close()
				}
				got, _, err := ReadAll(d.image(), lifeDir)
				if err != nil {
					t.Fatalf("seed %d, operation %d: %v", seed, stopAt, err)
				}
				if diff := diffRecords(want, got); diff != "" {
					t.Fatalf("seed %d, operation %d: (-want +got):\n%s", seed, stopAt, diff)
				}
			})
			points++
			if over {
				break
			}
		}
	}
	if points < 40 {
		t.Errorf("only %d crash points", points)
	}
}

func TestReopenNeedsRecords(t *testing.T) {
	d := newDisk(1)
	if err := d.Mkdir("empty"); err != nil {
		t.Fatal(err)
	}
	if w, _, err := Reopen(d, "empty"); err == nil {
		w.Close()
		t.Error("a folder without records was reopened")
	}
	if d.locks["empty/"+lockName] {
		t.Error("the lock was kept")
	}
}

// TestFinal keeps one try of each planned request.
// TestFinalGivesNoSecondChance: a request that hung until the stop does not count as
// quick because it was sent again.
func TestFinalGivesNoSecondChance(t *testing.T) {
	try := func(shot int64, took time.Duration, o Outcome, f Flag) Record {
		return Record{Shot: shot, Variant: "v", Workload: "w", Due: At(time.Second), EOF: At(time.Second + took), Outcome: o, Flags: f}
	}
	records := []Record{
		try(1, 40*time.Second, Interrupted, 0), try(2, 5*time.Second, Interrupted, 0), try(3, 40*time.Second, Interrupted, 0),
		try(1, time.Second/10, OK, FlagReissued), try(2, 20*time.Second, OK, FlagReissued), try(3, time.Second, HTTP5xx, FlagReissued),
		try(4, 9*time.Second, Interrupted, 0), try(4, 31*time.Second, Interrupted, FlagReissued), try(4, time.Second, OK, FlagReissued),
	}
	final, out := Final(records)
	var got []string
	for _, r := range final {
		got = append(got, fmt.Sprint(r.Shot, r.Outcome, lasted(&r)))
	}
	want := "[1total_timeout40s 2ok20s 3http_5xx1s 4total_timeout31s]"
	if fmt.Sprint(got) != want || out != len(records)-4 {
		t.Errorf("left out %d, kept %v, want %v", out, got, want)
	}
	if records[0].Outcome != Interrupted {
		t.Error("Final changed what it was given")
	}
	if d := final[0].Detail; d != "not done after 40s, when the run was stopped; sent again it took 100ms" {
		t.Errorf("it says %q", d)
	}
}

func TestFinal(t *testing.T) {
	try := func(shot int64, o Outcome, f Flag) Record {
		return Record{Shot: shot, Variant: "v", Workload: "w", Outcome: o, Flags: f}
	}
	other := try(1, Interrupted, 0)
	other.Variant = "u"
	warm := try(1, Interrupted, 0)
	warm.Phase = WarmUp
	records := []Record{
		try(0, OK, 0), try(1, Interrupted, 0), other, warm, // cut once, and of other plans
		try(2, OK, FlagReissued), // the first try left no record
		try(1, HTTP5xx, FlagReissued),
		try(3, Interrupted, 0), try(3, Interrupted, FlagReissued), try(3, OK, FlagReissued),
		try(4, Interrupted, 0), try(4, Interrupted, FlagReissued), // still to do
		try(5, Interrupted, 0),
	}
	final, out := Final(records)
	var got []string
	for _, r := range final {
		got = append(got, fmt.Sprint(r.Shot, r.Variant, r.Phase, r.Outcome))
	}
	want := "[0vmeasuredok 1umeasuredinterrupted 1vwarm-upinterrupted 2vmeasuredok 1vmeasuredhttp_5xx 3vmeasuredok 4vmeasuredinterrupted 5vmeasuredinterrupted]"
	if fmt.Sprint(got) != want || out != 4 {
		t.Errorf("left out %d, kept %v, want 4 and %v", out, got, want)
	}
}
