package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Secret refers to a secret by "env:NAME" or "file:PATH". It never holds the
// secret itself, so no way of printing it can show it. The zero Secret refers to
// nothing.
type Secret struct{ ref string }

var (
	envName     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	shellVar    = regexp.MustCompile(`^\$\{?([A-Z][A-Z0-9_]*)\}?$`)
	secretShape = `^(env:[A-Za-z_][A-Za-z0-9_]*|file:[^\x00-\x1f]+)$`
)

// longestSecret bounds a secret in bytes.
const longestSecret = 64 << 10

const wantsSecret = "wants a reference to a secret, env:NAME or file:PATH"

// ParseSecret reads a reference. The error never shows the text, which may be
// the secret itself.
func ParseSecret(s string) (Secret, error) {
	if name, ok := strings.CutPrefix(s, "env:"); ok {
		if envName.MatchString(name) && len(name) <= longestKey {
			return Secret{s}, nil
		}
		return Secret{}, &misfit{wantsSecret, "got env: and something that is no variable's name", "write env: and the name of an environment variable, such as env:API_KEY"}
	}
	if path, ok := strings.CutPrefix(s, "file:"); ok {
		if path != "" && len(path) <= 4096 && !strings.ContainsFunc(path, control) {
			return Secret{s}, nil
		}
		return Secret{}, &misfit{wantsSecret, "got file: and something that is no path", "write file: and the path of a file, such as file:api.key"}
	}
	if m := shellVar.FindStringSubmatch(s); m != nil {
		return Secret{}, &misfit{wantsSecret, "got a shell variable", "write env:" + m[1]}
	}
	return Secret{}, &misfit{
		wantsSecret,
		fmt.Sprintf("got a text of %s (not shown)", plural(utf8.RuneCountInString(s), "character")),
		"put the secret into an environment variable and write env:NAME; replace the secret if this file was shared",
	}
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// DecodeConfig reads the reference from a document.
func (s *Secret) DecodeConfig(n *Node) {
	if n.Kind() >= Mapping || n.Kind() == Null {
		n.Fault(wantsSecret+", got "+n.got(), "write env:NAME, without a space and without braces")
		return
	}
	v, err := ParseSecret(n.Scalar())
	if m, ok := errors.AsType[*misfit](err); ok {
		n.Fault(m.wants+"; "+m.what, m.hint)
		return
	}
	*s = v
}

// IsZero reports whether the secret refers to nothing.
func (s Secret) IsZero() bool { return s.ref == "" }

// String returns the reference.
func (s Secret) String() string { return s.ref }

// GoString returns the reference.
func (s Secret) GoString() string { return fmt.Sprintf("config.Secret(%q)", s.ref) }

// LogValue returns the reference.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.ref) }

// MarshalText returns the reference.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.ref), nil }

// UnmarshalText reads a reference; an empty text is the zero Secret.
func (s *Secret) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*s = Secret{}
		return nil
	}
	return set(s, text, ParseSecret)
}

// Resolve returns the secret. The zero Secret resolves to "". One newline at the
// end of a file is cut. A secret that is empty, larger than 64 KiB, or has a
// control character in it (it could not be sent in a header) is an error; errors
// name the reference and never show the secret.
func (s Secret) Resolve(getenv func(string) string, readFile func(string) ([]byte, error)) (string, error) {
	var value string
	switch kind, name, _ := strings.Cut(s.ref, ":"); kind {
	case "":
		return "", nil
	case "env":
		if value = getenv(name); value == "" {
			return "", fmt.Errorf("resolving the secret %s: the environment variable %s is not set or empty; set it", s.ref, name)
		}
	default:
		data, err := readFile(name)
		if err != nil {
			// The error of a reader could quote what it read; the kind says enough.
			return "", fmt.Errorf("resolving the secret %s: %w", s.ref, fileCause(err))
		}
		if len(data) > longestSecret {
			return "", fmt.Errorf("resolving the secret %s: the file has %s, more than %s; is it the right file?", s.ref, plural(len(data), "byte"), Bytes(longestSecret))
		}
		value = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
		if value == "" {
			return "", fmt.Errorf("resolving the secret %s: the file is empty; write the secret into it", s.ref)
		}
	}
	if len(value) > longestSecret {
		return "", fmt.Errorf("resolving the secret %s: it has %s, more than %s", s.ref, plural(len(value), "byte"), Bytes(longestSecret))
	}
	if strings.ContainsFunc(value, control) || !utf8.ValidString(value) {
		return "", fmt.Errorf("resolving the secret %s: it has more than one line or a control character in it; keep one line", s.ref)
	}
	return value, nil
}

// fileCause keeps of a reader's error what callers branch on and people need.
func fileCause(err error) error {
	for _, known := range []error{fs.ErrNotExist, fs.ErrPermission} {
		if errors.Is(err, known) {
			return known
		}
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return errors.New("the file cannot be read")
}
