package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestSuitesOfIdenticalVariantsRarelyFail plays 40 suites: of identical variants at
// most 2 fail (a true rate of 1 % gives more once in 140 times, and the seed is
// fixed), most pass, and each planted difference is found in at least 30.
func TestSuitesOfIdenticalVariantsRarelyFail(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("plays and judges 200 runs; set ASSAY_SLOW=1")
	}
	list, err := measure(40, 40, 7, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range list {
		t.Logf("%s: %d fail, %d pass of %d, %.0f %% of the requests", s.name, s.fail, s.pass, s.suites, 100*s.used/40)
		switch {
		case s.suites != 40:
			t.Errorf("%s: %d suites", s.name, s.suites)
		case i == 0 && (s.fail > 2 || s.pass < 28):
			t.Errorf("of identical variants %d of 40 fail and %d pass", s.fail, s.pass)
		case i > 0 && (s.fail < 30 || s.pass > 2):
			t.Errorf("%s is found in %d of 40 suites, and passed in %d", s.name, s.fail, s.pass)
		}
	}
	if text := page(list, 40, 40, 7); strings.Count(text, "\n| ") != 12 || strings.Contains(text, "NaN") {
		t.Errorf("the page:\n%s", text)
	}
}

// TestOneSuite plays a single one, with every difference.
func TestOneSuite(t *testing.T) {
	list, err := measure(1, 1, 7, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if list[0].fail != 0 || list[1].fail != 1 || list[1].used >= 1 {
		t.Errorf("identical: %+v; TPOT +5 %%: %+v", list[0], list[1])
	}
}
