package interop

import (
	"fmt"
	"strings"
)

// deepest bounds how far into a report aggregates are looked for.
const deepest = 8

// private are the keys of a report below which nothing is kept: they hold what a
// user typed.
var private = map[string]bool{"input_config": true, "config": true, "args": true, "telemetry_data": true, "messages": true}

// aggregates reads a report that holds no requests: inference-perf's, or AIPerf's
// profile_export_aiperf.json. Its numbers become notes, a line an object.
func (p *parser) aggregates(file string, data []byte) error {
	d := newDocument(file, data, 1)
	s := &source{file: file, asked: "load"}
	left := mostNumbers
	if err := s.numbers(d, "", 0, &left); err != nil {
		return err
	}
	if !d.done() {
		return d.fault("", "more than one JSON value", "is this a file of lines? say which tool wrote it with --from")
	}
	if len(s.notes) == 0 {
		return d.fault("", "no number in it", "is this the file of another tool? say which with --from")
	}
	if left == 0 {
		s.notes = append(s.notes, fmt.Sprintf("%s says more than these %d numbers; the rest was left out", clean(file, 200), mostNumbers))
	}
	p.add(s)
	return nil
}

// numbers gathers the numbers of the next object.
func (s *source) numbers(d *document, path string, depth int, left *int) error {
	var own []string
	unit := ""
	at := len(s.notes)
	err := d.object(path, func(key, path string) error {
		switch {
		case private[key] || *left == 0 || depth > deepest:
			return d.skip(path)
		case d.opens('{'):
			return s.numbers(d, path, depth+1, left)
		case key == "unit" || key == "aiperf_version" || key == "start_time":
			var t text
			if err := d.value(path, &t); err != nil {
				return err
			}
			switch key {
			case "unit":
				unit = " (" + clean(string(t), 20) + ")"
			case "aiperf_version":
				s.version = string(t)
			}
			return nil
		}
		var v anything
		if err := d.value(path, &v); err != nil {
			return err
		}
		if v.number != "" {
			own = append(own, clean(key, 60)+" "+v.number)
			*left--
		}
		return nil
	})
	if err != nil || len(own) == 0 {
		return err
	}
	name := path
	if name == "" {
		name = "its own numbers"
	}
	note := fmt.Sprintf("%s says: %s%s: %s", clean(s.file, 200), name, unit, strings.Join(own, ", "))
	s.notes = append(s.notes[:at], append([]string{note}, s.notes[at:]...)...)
	return nil
}

// opens reports whether the next value begins with that character.
func (d *document) opens(c byte) bool {
	for i := int(d.dec.InputOffset()); i < len(d.data); i++ {
		switch d.data[i] {
		case ' ', '\t', '\r', '\n', ':', ',':
			continue
		case c:
			return true
		}
		return false
	}
	return false
}
