package report

import (
	"fmt"
	"html/template"
	"io"
)

var htmlPage = template.Must(template.New("page").Parse(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:"><title>{{.Run.Name}}</title></head><body><h1>{{.Grade}} {{.Run.Name}}</h1><p>{{.Reason}}</p><p>{{.Client.Line}}</p>
{{range .Workloads}}<h2>{{.Name}}</h2><table>{{range .Rows}}<tr><th>{{.Name}}</th>{{range .Cells}}<td>{{.Shown.Value}} {{.Shown.Interval}}</td>{{end}}{{with .Change}}<td>{{.Shown.Value}} {{.Shown.Interval}}</td>{{end}}</tr>{{end}}</table>{{end}}
<ol>{{range .Footnotes}}<li>{{.}}</li>{{end}}</ol><details><summary>suite</summary><pre>{{.Suite}}</pre></details></body></html>
`))

// HTML writes the report as one self-contained page.
func HTML(w io.Writer, d *Document) error {
	if err := htmlPage.Execute(w, d); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
