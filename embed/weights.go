package embed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// The bounds of a file of weights.
const (
	maxHeader  = 16 << 20
	maxWeights = 2 << 30
)

// tensor is a matrix by rows, or a vector (rows 1).
type tensor struct {
	rows, cols int
	data       []float32
}

// readSafetensors reads every tensor of float32 in a safetensors file: a length, a
// JSON header, the numbers. Other types are left out; whoever wants one finds it
// missing.
func readSafetensors(r io.Reader) (map[string]tensor, error) {
	var size [8]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, fmt.Errorf("reading the length of the header: %w", err)
	}
	n := binary.LittleEndian.Uint64(size[:])
	if n < 2 || n > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes: want up to %d; is it a safetensors file?", n, maxHeader)
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	var entries map[string]struct {
		Type    string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(header, &entries); err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(r, maxWeights+1))
	if err != nil {
		return nil, fmt.Errorf("reading the weights: %w", err)
	}
	if len(body) > maxWeights {
		return nil, fmt.Errorf("more than %d bytes of weights", maxWeights)
	}
	all := make(map[string]tensor)
	for name, e := range entries {
		if name == "__metadata__" || e.Type != "F32" {
			continue
		}
		t, err := cut(body, e.Shape, e.Offsets)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		all[name] = t
	}
	return all, nil
}

func cut(body []byte, shape []int, at [2]int64) (tensor, error) {
	t := tensor{rows: 1, cols: 1}
	switch len(shape) {
	case 1:
		t.cols = shape[0]
	case 2:
		t.rows, t.cols = shape[0], shape[1]
	default:
		return t, fmt.Errorf("%d dimensions: want one or two", len(shape))
	}
	if t.rows < 1 || t.cols < 1 || t.rows > maxWeights/4/t.cols {
		return t, fmt.Errorf("a shape of %v", shape)
	}
	n := int64(t.rows) * int64(t.cols)
	if at[0] < 0 || at[1] > int64(len(body)) || at[1]-at[0] != 4*n {
		return t, errors.New("its numbers are not where the header says: the file is cut or broken")
	}
	t.data = make([]float32, n)
	for i := range t.data {
		x := math.Float32frombits(binary.LittleEndian.Uint32(body[at[0]+4*int64(i):]))
		if x != x || math.IsInf(float64(x), 0) {
			return t, fmt.Errorf("number %d is %v", i, x)
		}
		t.data[i] = x
	}
	return t, nil
}
