package record

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissingIsNullInJSON(t *testing.T) {
	type both struct {
		T Instant
		C Count
	}
	tests := []struct {
		value both
		text  string
	}{
		{both{}, `{"T":null,"C":null}`},
		{both{At(0), Tokens(0)}, `{"T":0,"C":0}`},
		{both{At(1500), Tokens(7)}, `{"T":1500,"C":7}`},
	}
	for _, tt := range tests {
		b, err := json.Marshal(tt.value)
		if err != nil || string(b) != tt.text {
			t.Errorf("Marshal(%v) = %s, %v; want %s", tt.value, b, err, tt.text)
		}
		back := both{9, 9}
		if err := json.Unmarshal([]byte(tt.text), &back); err != nil || back != tt.value {
			t.Errorf("Unmarshal(%s) = %v, %v; want %v", tt.text, back, err, tt.value)
		}
	}
	for _, bad := range []string{`{"T":-1}`, `{"C":1.5}`, `{"C":"3"}`, `{"T":9223372036854775807}`} {
		if err := json.Unmarshal([]byte(bad), new(both)); err == nil {
			t.Errorf("Unmarshal(%s) succeeded", bad)
		}
	}
	b, err := json.Marshal(Window{Variant: "v", Workload: "w", Block: 2, Start: At(5)})
	want := `{"variant":"v","workload":"w","block":2,"start_ns":5,"end_ns":null}`
	if diff := cmp.Diff(want, string(b)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
