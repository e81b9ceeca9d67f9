package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuantitiesAreRead(t *testing.T) {
	read := func(parse func(string) (string, error)) func(string) string {
		return func(s string) string {
			got, err := parse(s)
			if err != nil {
				return err.Error()
			}
			return got
		}
	}
	duration := read(func(s string) (string, error) {
		v, err := ParseDuration(s)
		return fmt.Sprintf("%d %s", int64(v), v), err
	})
	rate := read(func(s string) (string, error) {
		v, err := ParseRate(s)
		return fmt.Sprintf("%g %s", float64(v), v), err
	})
	size := read(func(s string) (string, error) { v, err := ParseBytes(s); return fmt.Sprintf("%d %s", int64(v), v), err })
	percent := read(func(s string) (string, error) {
		v, err := ParsePercent(s)
		return fmt.Sprintf("%g %s", float64(v), v), err
	})
	count := read(func(s string) (string, error) { v, err := ParseCount(s); return fmt.Sprintf("%d %s", int64(v), v), err })
	for _, c := range []struct {
		parse    func(string) string
		in, want string
	}{
		{duration, "30s", "30000000000 30s"},
		{duration, "1h30m", "5400000000000 1h30m"},
		{duration, "90m", "5400000000000 1h30m"},
		{duration, "60s", "60000000000 1m"},
		{duration, "1h0m1s", "3601000000000 1h0m1s"},
		{duration, "1.5s", "1500000000 1.5s"},
		{duration, "0.1h", "360000000000 6m"},
		{duration, "200ms", "200000000 200ms"},
		{duration, "5us", "5000 5µs"},
		{duration, "5µs", "5000 5µs"},
		{duration, "5μs", "5000 5µs"},
		{duration, "1ns", "1 1ns"},
		{duration, "1.0ns", "1 1ns"},
		{duration, "0s", "0 0s"},
		{duration, "2562047h47m16s854ms775us807ns", "9223372036854775807 2562047h47m16.854775807s"},
		{duration, "2562047h47m16s854ms775us808ns", `wants a duration such as "30s", got "2562047h47m16s854ms775us808ns": it is out of range (write at most 2562047h)`},
		{duration, "", `wants a duration such as "30s", got "" (write a number and a unit)`},
		{duration, "30", `wants a duration such as "30s", got "30" (write 30s, if seconds are meant)`},
		{duration, "1h1h", `wants a duration such as "30s", got "1h1h": the units are not in order (go from large to small units, each once, such as 1h30m)`},
		{duration, ".5s", `wants a duration such as "30s", got ".5s" (write a number and a unit, such as 30s, 5m or 1h30m)`},
		{duration, "5.s", `wants a duration such as "30s", got "5.s" (write a number and a unit, such as 30s, 5m or 1h30m)`},
		{duration, "+5s", `wants a duration such as "30s", got "+5s" (write a number and a unit, such as 30s, 5m or 1h30m)`},
		{duration, "2w", `wants a duration such as "30s", got "2w" (write 336h)`},
		{duration, strings.Repeat("1", 65), `wants a duration such as "30s", got a text of 65 bytes (write 30s)`},
		{rate, "5/s", "5 5/s"},
		{rate, "300/min", "5 5/s"},
		{rate, "36/h", "0.01 0.01/s"},
		{rate, "0.5/s", "0.5 0.5/s"},
		{rate, "0/s", "0 0/s"},
		{rate, "1000000000/s", "1e+09 1000000000/s"},
		{rate, "1000000001/s", `wants a rate such as "5/s", got "1000000001/s": it is out of range (write at most 1000000000/s)`},
		{duration, "5 min", `wants a duration such as "30s", got "5 min" (write 5m)`},
		{duration, "1.5 hours", `wants a duration such as "30s", got "1.5 hours" (write 1.5h)`},
		{duration, "30 s", `wants a duration such as "30s", got "30 s" (write 30s)`},
		{duration, "2 days", `wants a duration such as "30s", got "2 days" (write 48h)`},
		{duration, "5 apples", `wants a duration such as "30s", got "5 apples" (use the units h, m, s, ms, us or ns)`},
		{rate, "5 /s", `wants a rate such as "5/s", got "5 /s" (write it per second, minute or hour: 5/s, 5/min, 5/h)`},
		{rate, "1e3/s", `wants a rate such as "5/s", got "1e3/s" (write it per second, minute or hour: 1/s, 1/min, 1/h)`},
		{size, "2GiB", "2147483648 2GiB"},
		{size, "64KiB", "65536 64KiB"},
		{size, "10MB", "10000000 10MB"},
		{size, "1.5KiB", "1536 1536B"},
		{size, "1536KiB", "1572864 1536KiB"},
		{size, "0B", "0 0B"},
		{size, "9223372036854775807B", "9223372036854775807 9223372036854775807B"},
		{size, "8388608TiB", `wants a size such as "2GiB", got "8388608TiB": it is out of range (write at most 9223372036854775807)`},
		{size, "16777216TiB", `wants a size such as "2GiB", got "16777216TiB": it is out of range (write at most 9223372036854775807)`},
		{size, "1kb", `wants a size such as "2GiB", got "1kb" (write 1kB)`},
		{percent, "8%", "0.08 8%"},
		{percent, "+8%", "0.08 8%"},
		{percent, "-3%", "-0.03 -3%"},
		{percent, "99.9%", "0.999 99.9%"},
		{percent, "0%", "0 0%"},
		{percent, "-0%", "0 0%"},
		{percent, "150%", "1.5 150%"},
		{percent, "1000000%", "10000 1000000%"},
		{percent, "0.0001%", "1e-06 0.0001%"},
		{percent, "1e2%", `wants a percentage such as "8%", got "1e2%" (write a number and %, such as 8%)`},
		{percent, "--3%", `wants a percentage such as "8%", got "--3%" (write a number and %, such as 8%)`},
		{count, "12", "12 12"},
		{count, "32k", "32000 32k"},
		{count, "1.5k", "1500 1500"},
		{count, "2M", "2000000 2M"},
		{count, "0", "0 0"},
		{count, "9223372036854775807", "9223372036854775807 9223372036854775807"},
		{count, "9223372036854775808", "wants a count such as 12 or 32k, got \"9223372036854775808\": it is out of range (write at most 9223372036854775807)"},
	} {
		if got := c.parse(c.in); got != c.want {
			t.Errorf("%q is read as %s, want %s", c.in, got, c.want)
		}
	}
}

// quantity is what the five types have in common.
type quantity[T any] interface {
	*T
	encoding.TextUnmarshaler
}

// roundTrip fails unless v is read back from what it is written as, by
// UnmarshalText and from a document.
func roundTrip[T comparable, P quantity[T]](t interface{ Fatalf(string, ...any) }, v T) {
	s := fmt.Sprint(v)
	text, err := any(v).(encoding.TextMarshaler).MarshalText()
	if err != nil || string(text) != s {
		t.Fatalf("MarshalText = %q, %v, want %q", text, err, s)
	}
	var back T
	if err := P(&back).UnmarshalText(text); err != nil || back != v {
		t.Fatalf("%v is written as %s and read as %v, %v", v, s, back, err)
	}
	type box struct {
		V T `yaml:"v,required"`
	}
	doc, err := Encode(box{v})
	if err != nil {
		t.Fatalf("Encode(%v): %v", v, err)
	}
	var b box
	if err := Decode("x.yaml", doc, &b); err != nil || b.V != v {
		t.Fatalf("%v is encoded as %q and decoded as %v, %v", v, doc, b.V, err)
	}
}

func TestQuantitiesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.Int64Range(0, 1e7), rapid.Map(rapid.Int64Range(0, 1e6), func(n int64) int64 { return n * 1e9 }))
		roundTrip(t, Duration(whole.Draw(t, "duration")))
		roundTrip(t, Bytes(whole.Draw(t, "bytes")))
		roundTrip(t, Count(whole.Draw(t, "count")))
		roundTrip(t, Rate(rapid.Float64Range(1e-9, fastest).Draw(t, "rate")))
		roundTrip(t, Percent(rapid.Float64Range(-largestPercent, largestPercent).Filter(func(f float64) bool { return f == 0 || math.Abs(f) > 1e-12 }).Draw(t, "percent")))
	})
}

func TestWhatDocumentsCannotHoldIsStillPrinted(t *testing.T) {
	for _, c := range []struct {
		v    fmt.Stringer
		want string
	}{
		{Duration(-time.Second), "-1s"},
		{Bytes(-5), "-5B"},
		{Count(-5), "-5"},
		{Rate(math.Inf(1)), "+Inf/s"},
		{Percent(math.NaN()), "NaN%"},
		{Percent(math.Inf(-1)), "-Inf%"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%T prints %s, want %s", c.v, got, c.want)
		}
	}
}

// fuzzQuantity checks that a parser never panics, that its errors say what was
// wanted and what to do, and that what it accepts round trips.
func fuzzQuantity[T comparable, P quantity[T]](f *testing.F, parse func(string) (T, error), seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parse(s)
		if err != nil {
			m, ok := errors.AsType[*misfit](err)
			if !ok || m.wants == "" || m.what == "" || m.hint == "" {
				t.Fatalf("error %#v lacks a part", err)
			}
			if strings.ContainsAny(err.Error(), "\n\x00\x1b") {
				t.Fatalf("error %q holds control characters", err)
			}
			return
		}
		roundTrip[T, P](t, v)
	})
}

func FuzzDuration(f *testing.F) {
	fuzzQuantity(f, ParseDuration, "30s", "1h30m", "1.5s", "5µs", "-1s", "9999999999999h", "1d", "0.1ns", "30")
}

func FuzzRate(f *testing.F) {
	fuzzQuantity(f, ParseRate, "5/s", "300/min", "0.5/h", "5", "-5/s", "5rps")
}

func FuzzBytes(f *testing.F) {
	fuzzQuantity(f, ParseBytes, "2GiB", "10MB", "1.5KiB", "2G", "0.3B", "-1B")
}

func FuzzPercent(f *testing.F) {
	fuzzQuantity(f, ParsePercent, "8%", "+8%", "-0.5%", "8", "0.08", "1e2%", "99999999%")
}

func FuzzCount(f *testing.F) { fuzzQuantity(f, ParseCount, "12", "32k", "1.5M", "1_000", "0x10", "-3") }
