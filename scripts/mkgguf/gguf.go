package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
)

// alignment of every tensor in the file, in bytes; GGUF's default.
const alignment = 32

// blockLen is the number of values that share one scale in q8_0.
const blockLen = 32

// kind is the type of a tensor's values, by its number in GGUF.
type kind uint32

const (
	f32  kind = 0
	q8_0 kind = 8
)

func parseKind(s string) (kind, error) {
	switch s {
	case "f32":
		return f32, nil
	case "q8_0":
		return q8_0, nil
	}
	return 0, fmt.Errorf("type %q: want f32 or q8_0", s)
}

// fileType is the number that general.file_type has for a file whose matrices
// are of this kind.
func (k kind) fileType() uint32 {
	if k == q8_0 {
		return 7
	}
	return 0
}

// size returns the bytes that n values take.
func (k kind) size(n int) int64 {
	if k == q8_0 {
		return int64(n / blockLen * (2 + blockLen))
	}
	return int64(n) * 4
}

// A tensor is a vector or a matrix of rows that are made when they are written:
// a model is larger than the memory that it needs to be made.
type tensor struct {
	name string
	cols int // the dimension whose values are adjacent
	rows int // 0 for a vector
	kind kind
	fill func(row int, into []float32) // called once for each row, in order
}

func (t tensor) values() int { return t.cols * max(t.rows, 1) }

// A property is one key of the file's metadata; its value is a uint32, float32,
// bool, string, []int32, []float32 or []string.
type property struct {
	key   string
	value any
}

// A model can be written once: writing draws its weights.
type model struct {
	properties []property
	tensors    []tensor
}

func (m model) parameters() int {
	n := 0
	for _, t := range m.tensors {
		n += t.values()
	}
	return n
}

// writeFile writes the model under a name of its own and renames it at the end,
// so that a file with the given name is whole. It returns the file's size.
func writeFile(name string, m model) (int64, error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing left to remove
	n, err := writeModel(f, m)
	if err != nil {
		f.Close()
		return 0, err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, err
	}
	return n, os.Rename(f.Name(), name)
}

// writeModel writes the model in GGUF version 3 and returns its size in bytes.
func writeModel(to io.Writer, m model) (int64, error) {
	buf := bufio.NewWriterSize(to, 1<<20)
	w := &encoder{w: buf}
	w.bytes([]byte("GGUF"))
	w.uint32(3)
	w.uint64(uint64(len(m.tensors)))
	w.uint64(uint64(len(m.properties)))
	for _, p := range m.properties {
		w.string(p.key)
		w.value(p.value)
	}
	var offset int64 // from the end of the head
	for _, t := range m.tensors {
		w.string(t.name)
		if t.rows == 0 {
			w.uint32(1)
			w.uint64(uint64(t.cols))
		} else {
			w.uint32(2)
			w.uint64(uint64(t.cols))
			w.uint64(uint64(t.rows))
		}
		w.uint32(uint32(t.kind))
		w.uint64(uint64(offset))
		offset += (t.kind.size(t.values()) + alignment - 1) / alignment * alignment
	}
	w.pad()
	for _, t := range m.tensors {
		row := make([]float32, t.cols)
		for i := range max(t.rows, 1) {
			t.fill(i, row)
			if t.kind == q8_0 {
				w.q8(row)
			} else {
				w.f32s(row)
			}
		}
		w.pad()
	}
	if w.err == nil {
		w.err = buf.Flush()
	}
	return w.n, w.err
}

// An encoder writes GGUF's primitives and keeps the first error.
type encoder struct {
	w   io.Writer
	n   int64
	buf []byte
	err error
}

func (e *encoder) bytes(p []byte) {
	if e.err != nil {
		return
	}
	n, err := e.w.Write(p)
	e.n += int64(n)
	e.err = err
}

func (e *encoder) uint32(v uint32) {
	e.buf = binary.LittleEndian.AppendUint32(e.buf[:0], v)
	e.bytes(e.buf)
}

func (e *encoder) uint64(v uint64) {
	e.buf = binary.LittleEndian.AppendUint64(e.buf[:0], v)
	e.bytes(e.buf)
}

func (e *encoder) string(s string) {
	e.uint64(uint64(len(s)))
	e.bytes([]byte(s))
}

func (e *encoder) pad() {
	if rest := e.n % alignment; rest != 0 {
		e.bytes(make([]byte, alignment-rest))
	}
}

func (e *encoder) f32s(row []float32) {
	e.buf = e.buf[:0]
	for _, v := range row {
		e.buf = binary.LittleEndian.AppendUint32(e.buf, math.Float32bits(v))
	}
	e.bytes(e.buf)
}

// q8 writes blocks of a half-precision scale and one signed byte a value.
func (e *encoder) q8(row []float32) {
	e.buf = e.buf[:0]
	for ; len(row) > 0; row = row[blockLen:] {
		var largest float32
		for _, v := range row[:blockLen] {
			largest = max(largest, float32(math.Abs(float64(v))))
		}
		scale := largest / 127
		e.buf = binary.LittleEndian.AppendUint16(e.buf, half(scale))
		for _, v := range row[:blockLen] {
			var q int8
			if scale > 0 {
				q = int8(math.RoundToEven(float64(v / scale)))
			}
			e.buf = append(e.buf, byte(q))
		}
	}
	e.bytes(e.buf)
}

// The numbers of the types of metadata in GGUF.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9
)

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case uint32:
		e.uint32(typeUint32)
		e.uint32(v)
	case float32:
		e.uint32(typeFloat32)
		e.uint32(math.Float32bits(v))
	case bool:
		e.uint32(typeBool)
		e.bytes(map[bool][]byte{false: {0}, true: {1}}[v])
	case string:
		e.uint32(typeString)
		e.string(v)
	case []int32:
		e.array(typeInt32, len(v))
		for _, x := range v {
			e.uint32(uint32(x))
		}
	case []float32:
		e.array(typeFloat32, len(v))
		e.f32s(v)
	case []string:
		e.array(typeString, len(v))
		for _, x := range v {
			e.string(x)
		}
	default:
		panic(fmt.Sprintf("gguf: no encoding of %T", v))
	}
}

func (e *encoder) array(of uint32, n int) {
	e.uint32(typeArray)
	e.uint32(of)
	e.uint64(uint64(n))
}

// half returns the IEEE 754 half-precision number nearest to f, ties to even.
func half(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	switch abs := math.Float32frombits(bits & 0x7fffffff); {
	case abs != abs:
		return sign | 0x7e00
	case abs >= 65520: // halfway between the largest half and the next power of two
		return sign | 0x7c00
	case abs < 0x1p-14: // subnormal: a whole number of 2^-24
		return sign | uint16(math.RoundToEven(float64(abs)*0x1p24))
	}
	// Adding the fraction that is cut rounds; a carry runs into the exponent,
	// where it belongs.
	bits &= 0x7fffffff
	bits += 0xfff + bits>>13&1
	return sign | uint16(bits>>13-(127-15)<<10)
}
