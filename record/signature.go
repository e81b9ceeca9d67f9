package record

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
)

// Signature says how a number of a check came about. Two numbers of different
// signatures are not comparable.
type Signature struct {
	Value     string `json:"value"`               // CHECK.NAME
	Data      string `json:"data,omitempty"`      // hex SHA-256 of the cases; "": they have none
	Judge     string `json:"judge,omitempty"`     // who judged: model, prompt and calibration; "": no judge
	Estimator string `json:"estimator,omitempty"` // how each number was computed: "exact match, NFKC", "13a|smooth:exp"
	Cluster   string `json:"cluster,omitempty"`   // what is independent of each other: case, session, document
	N         int    `json:"n"`                   // records that should have the number, of all variants
	Missing   int    `json:"missing"`             // of them without
	Probe     string `json:"probe,omitempty"`     // by which an embedder is known again, see [Sketch]; "": none has a part in it
}

// Differs says why a number with this signature and one with the other are not
// comparable; "" if they are.
func (s *Signature) Differs(o *Signature) string {
	for _, part := range []struct{ what, is, was string }{
		{"the cases", short(s.Data), short(o.Data)}, {"who judges", s.Judge, o.Judge}, {"how it is computed", s.Estimator, o.Estimator}, {"what depends on each other", s.Cluster, o.Cluster},
	} {
		if part.is != part.was {
			return fmt.Sprintf("%s: %s, and was %s", part.what, named(part.is), named(part.was))
		}
	}
	if (s.Probe == "") != (o.Probe == "") {
		return "the embedder: it was probed in one of the runs only"
	}
	return moved(s.Probe, o.Probe)
}

func short(digest string) string {
	if len(digest) > 12 && len(digest)%64 == 0 {
		return digest[:12] + "…"
	}
	return digest
}

func named(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// SameCosine is how near the vector of each probe must be to what it was for an
// embedder to be the same.
const SameCosine = 0.9999

// sketched is of how many numbers a vector's sketch is.
const sketched = 64

// Sketch keeps vectors of any length in 64 numbers each, such that the distance of
// two vectors, as unit vectors, is that of their sketches: squared, to about a fifth. Each
// coordinate is added to one of the numbers, with a sign, both drawn by a hash (Charikar,
// Chen & Farach-Colton, Theor. Comput. Sci. 312, 2004). It is base64 of little-endian float32;
// "" of no vectors, or of one that is 0 or no number.
func Sketch(vectors [][]float32) string {
	out := make([]byte, 0, 4*sketched*len(vectors))
	for _, v := range vectors {
		var sum [sketched]float64
		norm := 0.0
		for i, x := range v {
			h := (uint64(i) + 1) * 0x9e3779b97f4a7c15
			h ^= h >> 29
			h *= 0xbf58476d1ce4e5b9
			sign := 1.0
			if h>>63 == 1 {
				sign = -1
			}
			sum[h>>32%sketched] += sign * float64(x)
			norm += float64(x) * float64(x)
		}
		if !(norm > 0) || math.IsInf(norm, 0) {
			return ""
		}
		for _, x := range sum {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x/math.Sqrt(norm))))
		}
	}
	return base64.RawStdEncoding.EncodeToString(out)
}

// moved says how far the vectors of a sketch have moved; "" if no further than an
// embedder that is the same.
func moved(is, was string) string {
	if is == was {
		return ""
	}
	a, errA := base64.RawStdEncoding.DecodeString(is)
	b, errB := base64.RawStdEncoding.DecodeString(was)
	if errA != nil || errB != nil || len(a) != len(b) || len(a)%(4*sketched) != 0 {
		return "the embedder: it was probed by other texts"
	}
	number := func(data []byte, i int) float64 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
	least := 1.0
	for from := 0; from < len(a)/4; from += sketched {
		d := 0.0
		for i := from; i < from+sketched; i++ {
			x := number(a, i) - number(b, i)
			d += x * x
		}
		if cosine := 1 - d/2; !(cosine >= least) {
			least = cosine
		}
	}
	if least >= SameCosine {
		return ""
	}
	return fmt.Sprintf("the embedder: a text by which it is known again has a cosine of about %.4f with what it was, below %v", least, SameCosine)
}
