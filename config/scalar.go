package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Plain scalars are typed by the union of what YAML 1.1 and 1.2 readers make of
// them: what one of them takes for a number or a boolean is not text here, so a
// document means the same to every reader.
var (
	numberLike = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$`)
	integer    = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)
	decimal    = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

const quotedStyles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func scalarKind(y *yaml.Node) Kind {
	if y.Style&quotedStyles != 0 {
		return Text
	}
	return plainKind(y.Value, y.Tag)
}

// plainKind types an unquoted scalar; tag is what the library resolved it to.
func plainKind(s, tag string) Kind {
	switch {
	case s == "" || tag == "!!null":
		return Null
	case tag == "!!bool":
		return Bool
	case tag == "!!int", tag == "!!float", numberLike.MatchString(s):
		return Number
	}
	return Text
}

// doubtful reports whether a YAML 1.1 reader takes the unquoted word for a
// boolean: the "Norway problem".
func doubtful(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	}
	return false
}

func boolOf(s string) string {
	switch strings.ToLower(s) {
	case "y", "yes", "on", "true":
		return "true"
	}
	return "false"
}

func decodeBool(n *Node, v reflect.Value) {
	s := n.Scalar()
	switch {
	case n.Kind() == Bool && (s == "true" || s == "false"):
		v.SetBool(s == "true")
	case n.Quoted() && (s == "true" || s == "false"):
		n.Fault("wants true or false, got "+n.got(), "write "+s+" without quotes")
	case n.Kind() == Bool || n.Kind() == Text && doubtful(s):
		n.Fault("wants true or false, got "+s, "write "+boolOf(s))
	default:
		n.Fault("wants true or false, got "+n.got(), "write true or false")
	}
}

func decodeInt(n *Node, v reflect.Value) {
	s := n.Scalar()
	if n.Kind() != Number || !integer.MatchString(s) {
		n.Fault("wants a whole number, got "+n.got(), integerHint(n))
		return
	}
	i, err := strconv.ParseInt(s, 10, v.Type().Bits())
	if err != nil {
		least := int64(math.MinInt64) >> (64 - v.Type().Bits())
		n.Fault("is out of range: "+clip(s), fmt.Sprintf("use a number from %d to %d", least, -(least+1)))
		return
	}
	v.SetInt(i)
}

func decodeUint(n *Node, v reflect.Value) {
	s := n.Scalar()
	if n.Kind() != Number || !integer.MatchString(s) {
		n.Fault("wants a whole number, got "+n.got(), integerHint(n))
		return
	}
	u, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, v.Type().Bits())
	if err != nil {
		n.Fault("is out of range: "+clip(s), fmt.Sprintf("use a number from 0 to %d", uint64(math.MaxUint64)>>(64-v.Type().Bits())))
		return
	}
	v.SetUint(u)
}

func decodeFloat(n *Node, v reflect.Value) {
	s := n.Scalar()
	if n.Kind() == Number && strings.HasPrefix(strings.TrimLeft(s, "+-"), ".") && !numberLike.MatchString(s) {
		n.Fault("wants a finite number, got "+s, "write a finite number")
		return
	}
	if n.Kind() != Number || !decimal.MatchString(s) {
		n.Fault("wants a number, got "+n.got(), decimalHint(n))
		return
	}
	f, err := strconv.ParseFloat(s, v.Type().Bits())
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	if err == nil && f == 0 && strings.ContainsAny(mantissa, "123456789") {
		n.Fault("is too small to be told from 0: "+clip(s), "write 0, or a larger number")
		return
	}
	if err != nil {
		n.Fault("is out of range: "+clip(s), "use a number of at most "+strconv.FormatFloat(maxFloat(v.Type().Bits()), 'g', 3, 64))
		return
	}
	v.SetFloat(f)
}

func maxFloat(bits int) float64 {
	if bits == 32 {
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

func integerHint(n *Node) string {
	s := n.Scalar()
	if n.Quoted() && integer.MatchString(s) {
		return "write " + clip(s) + " without quotes"
	}
	if whole, ok := wholeOf(s); ok && n.IsScalar() {
		return "write " + whole
	}
	return "write a whole number such as 12"
}

// wholeOf rewrites the ways to write a whole number that are refused.
func wholeOf(s string) (string, bool) {
	s = strings.NewReplacer("_", "", ",", "").Replace(s)
	if i, err := strconv.ParseInt(s, 0, 64); err == nil && strings.ContainsAny(s, "xXbBoO") {
		return strconv.FormatInt(i, 10), true // 0x10; but 010 is meant as 10 by most
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatFloat(f, 'f', -1, 64), true
	}
	return "", false
}

func decimalHint(n *Node) string {
	s := n.Scalar()
	if n.Quoted() && decimal.MatchString(s) {
		return "write " + clip(s) + " without quotes"
	}
	if n.Kind() == Number || n.Kind() == Text {
		if f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return "write " + strconv.FormatFloat(f, 'g', -1, 64)
		}
	}
	return "write a number such as 0.5"
}
