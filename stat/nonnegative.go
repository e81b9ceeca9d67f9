package stat

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// mostColumns bounds Nonnegative, which tries every set of columns.
const mostColumns = 8

// Nonnegative returns the coefficients, none below 0, by which the columns of rows
// add up to y with the least sum of squares. It tries every set of columns for
// which the solution is not negative, so that its answer is exact (the conditions
// of Lawson and Hanson 1974, chapter 23); there may be at most eight.
// All rows have as many columns. Without rows, or with a number that is not finite,
// it is an error.
func Nonnegative(rows [][]float64, y []float64) ([]float64, error) {
	if len(rows) == 0 || len(rows) != len(y) {
		return nil, errors.New("nothing to fit")
	}
	columns := len(rows[0])
	if columns == 0 || columns > mostColumns {
		return nil, errors.New("wants 1 to 8 columns")
	}
	for i, row := range rows {
		if len(row) != columns {
			return nil, errors.New("rows of different lengths")
		}
		for _, x := range append([]float64{y[i]}, row...) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, errors.New("a number that is not finite")
			}
		}
	}
	best, least := make([]float64, columns), squares(rows, y, make([]float64, columns))
	for set := 1; set < 1<<columns; set++ {
		c, ok := fitted(rows, y, set)
		if !ok {
			continue
		}
		if s := squares(rows, y, c); s < least {
			best, least = c, s
		}
	}
	return best, nil
}

// fitted is the least-squares solution of one set of columns; ok is false if it is
// negative somewhere, or not determined.
func fitted(rows [][]float64, y []float64, set int) (c []float64, ok bool) {
	var used []int
	for k := range rows[0] {
		if set&(1<<k) != 0 {
			used = append(used, k)
		}
	}
	if len(rows) < len(used) {
		return nil, false
	}
	a := mat.NewDense(len(rows), len(used), nil)
	for i, row := range rows {
		for j, k := range used {
			a.Set(i, j, row[k])
		}
	}
	var x mat.VecDense
	if err := x.SolveVec(a, mat.NewVecDense(len(y), y)); err != nil {
		return nil, false // columns that say the same
	}
	c = make([]float64, len(rows[0]))
	for j, k := range used {
		if c[k] = x.AtVec(j); c[k] < 0 {
			return nil, false
		}
	}
	return c, true
}

func squares(rows [][]float64, y, c []float64) (sum float64) {
	for i, row := range rows {
		e := y[i]
		for k, x := range row {
			e -= c[k] * x
		}
		sum += e * e
	}
	return sum
}
