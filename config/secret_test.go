package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
)

const hidden = "sk-live-0123456789"

func TestSecretsNeverShow(t *testing.T) {
	s, err := ParseSecret("env:API_KEY")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Resolve(func(string) string { return hidden }, nil); err != nil || v != hidden {
		t.Fatalf("Resolve = %q, %v", v, err)
	}
	type holder struct {
		Key Secret `yaml:"key" json:"key"`
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "key", s, "holder", holder{s})
	asJSON, err := json.Marshal(holder{s})
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := Encode(holder{s})
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{
		fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s, s, s), fmt.Sprintf("%v %+v %#v", holder{s}, holder{s}, &holder{s}),
		string(asJSON), string(asYAML), logged.String(),
	} {
		if strings.Contains(out, hidden) || !strings.Contains(out, "env:API_KEY") {
			t.Errorf("printed as %s, want the reference and not the secret", out)
		}
	}
	var zero holder
	if err := json.Unmarshal([]byte(`{"key":""}`), &zero); err != nil || !zero.Key.IsZero() {
		t.Errorf("an empty text is read as %v, %v, want the zero secret", zero.Key, err)
	}
	if err := json.Unmarshal([]byte(`{"key":"`+hidden+`"}`), &zero); err == nil || strings.Contains(err.Error(), hidden) {
		t.Errorf("a secret in JSON is answered with %v, want an error that does not show it", err)
	}
	var back holder
	if err := json.Unmarshal(asJSON, &back); err != nil || back.Key != s {
		t.Errorf("read back from %s as %v, %v", asJSON, back.Key, err)
	}
}

func TestRefusedSecretsAreNotShown(t *testing.T) {
	for _, ref := range []string{hidden, "env:" + hidden, "ENV:" + hidden, "file:\n" + hidden, `"` + hidden + `"`, "[" + hidden + "]", "{env: " + hidden + "}", "", "env:", "file:", "0123", "true"} {
		if s, err := ParseSecret(ref); err == nil {
			t.Errorf("ParseSecret(%q) = %v, want an error", ref, s)
		} else if strings.Contains(err.Error(), hidden) {
			t.Errorf("ParseSecret(%q) shows it: %v", ref, err)
		}
		var v sample
		err := Decode("x.yaml", []byte("version: 1\nname: x\nvariants: {a: {url: http://a, key: "+ref+"}}\n"), &v)
		if err == nil {
			t.Errorf("Decode accepts the key %q", ref)
		} else if strings.Contains(err.Error(), hidden) {
			t.Errorf("Decode shows the key %q: %v", ref, err)
		}
	}
}

func TestSecretsResolve(t *testing.T) {
	getenv := func(name string) string { return map[string]string{"K": "v", "TWO": "a\nb", "BAD": "\xff"}[name] }
	readFile := func(path string) ([]byte, error) {
		switch path {
		case "gone":
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		case "odd":
			return nil, errors.New("read " + hidden)
		case "loop":
			return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("too many links")}
		case "large":
			return bytes.Repeat([]byte("x"), longestSecret+1), nil
		case "full":
			return bytes.Repeat([]byte("x"), longestSecret), nil
		}
		return []byte(path), nil
	}
	for _, c := range []struct{ ref, want, err string }{
		{"env:K", "v", ""},
		{"env:NONE", "", "resolving the secret env:NONE: the environment variable NONE is not set or empty; set it"},
		{"env:TWO", "", "resolving the secret env:TWO: it has more than one line or a control character in it; keep one line"},
		{"env:BAD", "", "resolving the secret env:BAD: it has more than one line or a control character in it; keep one line"},
		{"file:v", "v", ""},
		{"file:gone", "", "resolving the secret file:gone: file does not exist"},
		{"file:odd", "", "resolving the secret file:odd: the file cannot be read"},
		{"file:loop", "", "resolving the secret file:loop: too many links"},
		{"file:large", "", "resolving the secret file:large: the file has 65537 bytes, more than 64KiB; is it the right file?"},
		{"file:full", strings.Repeat("x", longestSecret), ""},
	} {
		s, err := ParseSecret(c.ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Resolve(getenv, readFile)
		if got != c.want || fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
			t.Errorf("%s resolves to %.20q, %v, want %.20q, %s", c.ref, got, err, c.want, c.err)
		}
	}
	for content, want := range map[string]string{"v\n": "v", "v\r\n": "v", "v \n": "v ", "v": "v"} {
		s, _ := ParseSecret("file:x")
		got, err := s.Resolve(getenv, func(string) ([]byte, error) { return []byte(content), nil })
		if got != want || err != nil {
			t.Errorf("a file of %q resolves to %q, %v, want %q", content, got, err, want)
		}
	}
	for _, content := range []string{"", "\n", "\r\n", "a\n\n", "a\x00b"} {
		s, _ := ParseSecret("file:x")
		if got, err := s.Resolve(getenv, func(string) ([]byte, error) { return []byte(content), nil }); err == nil || !strings.Contains(err.Error(), "file:x") {
			t.Errorf("a file of %q resolves to %q, %v, want an error that names file:x", content, got, err)
		}
	}
	if got, err := (Secret{}).Resolve(nil, nil); got != "" || err != nil || !(Secret{}).IsZero() {
		t.Errorf("the zero secret resolves to %q, %v, want nothing", got, err)
	}
}
