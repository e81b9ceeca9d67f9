package lock

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// DiffSchema names the JSON form of a Comparison.
const DiffSchema = "assay.diff/1"

// Text writes the class and every difference, for people. a and b are the names of the
// sides.
func (c *Comparison) Text(w io.Writer, a, b string) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n", strings.ToUpper(c.Class.String()), c.Reason)
	if len(c.Differ)+len(c.Unknown) > 0 {
		fmt.Fprintf(&out, "  a: %s\n  b: %s\n", a, b)
	}
	for _, f := range c.Differ {
		class := f.Class.String()
		if f.UnderTest {
			class = "under test"
		}
		fmt.Fprintf(&out, "\n%s (%s)\n  a: %s\n  b: %s\n", f.Path, class, f.A, f.B)
		if !f.UnderTest {
			fmt.Fprintf(&out, "  %s\n", f.Why)
		}
	}
	for _, f := range c.Unknown {
		fmt.Fprintf(&out, "\n%s (unknown)\n  a: %s\n  b: %s\n", f.Path, f.A, f.B)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// JSON writes the comparison as one object of DiffSchema.
func (c *Comparison) JSON(nameA, nameB string, a, b *Lock) ([]byte, error) {
	type side struct {
		Name   string `json:"name"`
		Digest string `json:"digest"`
	}
	return json.Marshal(struct {
		Schema string `json:"schema"`
		A      side   `json:"a"`
		B      side   `json:"b"`
		*Comparison
	}{DiffSchema, side{nameA, a.Digest()}, side{nameB, b.Digest()}, c})
}
