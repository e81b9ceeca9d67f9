package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes the document as one object on one line, with the schema
// assay.report/1.
func JSON(w io.Writer, d *Document) error { return writeJSON(w, d) }

// CompareJSON writes the comparison as one object on one line, with the schema
// assay.comparison/1.
func CompareJSON(w io.Writer, c *Comparison) error { return writeJSON(w, c) }

func writeJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
