package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// structInfo is what the tags of a struct say.
type structInfo struct {
	fields  []field
	byName  map[string]int
	names   []string
	inlined [][]int // indexes of inlined structs, for their Checkers
}

// field is one key of a struct.
type field struct {
	name     string
	index    []int // for reflect.Value.FieldByIndex; no pointers on the way
	typ      reflect.Type
	required bool
	doc      string
	oneOf    []string
	min, max string // limits as written in the tag; "" is none
	most     int    // items of a list, or keys of a mapping; 0 is no limit
}

// infoOf reads the tags of a struct type. It panics on tags that cannot work:
// that is a fault of the program, not of the document.
func infoOf(t reflect.Type) *structInfo {
	info := &structInfo{byName: make(map[string]int)}
	info.add(t, nil)
	return info
}

func (info *structInfo) add(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), at...), i)
		tag, tagged := f.Tag.Lookup("yaml")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case name == "-", !tagged && !f.Anonymous, !f.IsExported() && !f.Anonymous:
			continue
		case options == "inline", !tagged && f.Anonymous && f.Type.Kind() == reflect.Struct:
			if f.Type.Kind() != reflect.Struct {
				panic(fmt.Sprintf("config: %s.%s: only structs can be inlined", t, f.Name))
			}
			info.inlined = append(info.inlined, index)
			info.add(f.Type, index)
			continue
		case !tagged:
			continue
		}
		if name == "" {
			panic(fmt.Sprintf("config: %s.%s: the yaml tag has no name", t, f.Name))
		}
		if _, twice := info.byName[name]; twice {
			panic(fmt.Sprintf("config: %s: two fields are called %s", t, name))
		}
		fd := field{name: name, index: index, typ: f.Type, doc: f.Tag.Get("doc"), min: f.Tag.Get("min"), max: f.Tag.Get("max")}
		if most := f.Tag.Get("most"); most != "" {
			n, err := strconv.Atoi(most)
			if k := f.Type.Kind(); err != nil || n < 1 || k != reflect.Slice && k != reflect.Map {
				panic(fmt.Sprintf("config: %s.%s: most is a number of items of a list, or of keys of a mapping", t, f.Name))
			}
			fd.most = n
		}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "required":
				fd.required = true
			case "", "omitempty":
			default:
				panic(fmt.Sprintf("config: %s.%s: unknown option %s in the yaml tag", t, f.Name, option))
			}
		}
		if words := f.Tag.Get("oneof"); words != "" {
			fd.oneOf = strings.Split(words, ",")
		}
		info.byName[name] = len(info.fields)
		info.names = append(info.names, name)
		info.fields = append(info.fields, fd)
	}
}

func (d *document) info(t reflect.Type) *structInfo {
	if info := d.types[t]; info != nil {
		return info
	}
	if d.types == nil {
		d.types = make(map[reflect.Type]*structInfo)
	}
	info := infoOf(t)
	d.types[t] = info
	return info
}
