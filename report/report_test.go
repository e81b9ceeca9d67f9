package report

import (
	"bytes"
	"testing"
)

func TestSmoke(t *testing.T) {
	d := usual().document(t)
	var b bytes.Buffer
	for _, w := range []int{120, 60} {
		if err := Text(&b, d, TextOptions{Width: w}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Markdown(&b, d); err != nil {
		t.Fatal(err)
	}
	if err := JUnit(&b, d); err != nil {
		t.Fatal(err)
	}
	m, r := usual().build()
	c := Compare(Side{"old", m, r, "baseline"}, Side{"new", m, r, "candidate"})
	if err := CompareText(&b, c, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
}
