package workload

import (
	"container/heap"
	"iter"
	"math"
	"strconv"
	"time"

	"github.com/assay-llm/assay/corpus"
)

// superposed are the arrivals of a model of clients: each client's own process,
// laid over one another.
//
// Within a window a client's gaps have the family, the shape and the rate that the
// model gives; a window without a family is Poisson. From one window to the next
// its time is stretched, as that of any process under a changing rate. The number
// of requests in a window is as random as its gaps make it. (The reference
// generator draws a fixed number of gaps and scales them to the window, so that
// counts hardly vary.)
type superposed struct {
	traffic *corpus.Traffic
	speed   float64
	start   float64 // nanoseconds of the model at which the plan starts
	end     float64 // nanoseconds, of the plan; +Inf: that of the model
	limit   int64
	seed    uint64
	name    string
}

// asked is one request of a client.
type asked struct {
	due     time.Duration
	client  int
	lengths int // index in the client's Lengths
}

// clientRate is the rate of one client, as a shape.
type clientRate struct {
	windows      []corpus.Window
	speed, start float64
}

func (c clientRate) walk(float64, Stream) func() (piece, bool) {
	gone := c.start
	k := -1
	return func() (piece, bool) {
		for k++; k < len(c.windows); k++ {
			w := c.windows[k]
			length := float64(w.Length)
			if gone >= length {
				gone -= length
				continue
			}
			length, gone = length-gone, 0
			return piece{length: length / c.speed, rate: w.Rate * c.speed, window: k}, true
		}
		return piece{}, false
	}
}
func (clientRate) mean(float64) float64 { return 0 }
func (clientRate) pace() float64        { return math.Inf(1) }
func (clientRate) String() string       { return "a client" }

// processOf is how a client asks in a window.
func processOf(w corpus.Window) process {
	switch w.Family {
	case "gamma":
		return gammaProcess(&Renewal{Shape: w.Shape})
	case "weibull":
		return weibullProcess(&Renewal{Shape: w.Shape})
	}
	return process{kind: "poisson", cv: 1}
}

// clientWalk walks the requests of one client.
type clientWalk struct {
	index   int
	client  *corpus.Client
	profile profile
	cursor  *cursor
	gaps    Stream
	process process
	window  int // that process is of; −1: none yet
	n       int64
	sum     float64 // integral of the rate up to the last request
	due     time.Duration
}

// next goes to the next request, and reports whether there is one. A gap has the
// distribution of the window in which it begins.
func (c *clientWalk) next() bool {
	for c.cursor.at.rate == 0 && c.n == 0 && c.cursor.advance() { // the first gap begins where there are requests
	}
	if k := c.cursor.at.window; k != c.window {
		c.window, c.process = k, processOf(c.client.Windows[k])
	}
	c.sum += float64(c.process.gap(c.gaps, c.n)) / unit
	c.n++
	if !(c.sum < c.profile.total) {
		return false
	}
	c.due = c.cursor.when(c.sum)
	return true
}

// queue orders clients by their next request.
type queue []*clientWalk

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].due < q[j].due || q[i].due == q[j].due && q[i].index < q[j].index
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*clientWalk)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// all yields the requests of all clients in due order.
func (s *superposed) all() iter.Seq2[int64, asked] {
	return func(yield func(int64, asked) bool) {
		var q queue
		for i := range s.traffic.Clients {
			c := &clientWalk{index: i, client: &s.traffic.Clients[i], window: -1, gaps: NewStream(s.seed, s.name, "arrivals", s.traffic.Clients[i].Name)}
			c.profile = profile{shape: clientRate{c.client.Windows, s.speed, s.start}, end: s.end}
			c.profile.total = c.profile.sum()
			if c.cursor = c.profile.walk(); c.next() {
				q = append(q, c)
			}
		}
		heap.Init(&q)
		for i := int64(0); i < s.limit && len(q) > 0; i++ {
			c := q[0]
			if !yield(i, asked{c.due, c.index, c.client.Windows[c.cursor.at.window].Lengths}) {
				return
			}
			if c.next() {
				heap.Fix(&q, 0)
			} else {
				heap.Pop(&q)
			}
		}
	}
}

// count returns the number of requests and the length of the schedule.
func (s *superposed) count() (c counted) {
	last := time.Duration(-1)
	for _, a := range s.all() {
		c.shots++
		last = a.due
	}
	if c.length = last + 1; c.shots < s.limit && !math.IsInf(s.end, 1) {
		c.length = time.Duration(s.end)
	}
	return c
}

// byClient makes shot i for a request of a client: lengths from its own tables,
// with a random number each, so that they are as independent as the model says.
// (The reference generator inverts both with one number.)
func (w *writer) byClient(i int64, a asked, text bool) Shot {
	s := w.shot(alone(i), false)
	c := &w.set.Traffic.Clients[a.client]
	l := &c.Lengths[a.lengths]
	s.Due, s.Tenant = a.due, c.Name
	if w.output == nil {
		s.MaxTokens = int64(l.Output.At(w.outputs.uniform(i)))
	}
	if text {
		w.begin(&s, alone(i))
		w.buf = corpus.AppendWords(w.buf, w.at(w.texts, i), int64(l.Input.At(w.inputs.uniform(i))))
		s.Messages = []corpus.Message{{Role: "user", Content: string(w.buf)}}
	}
	return s
}

// anyClient takes a request of a warm-up from one client after the other.
func (w *writer) anyClient(i int64) asked {
	clients := w.set.Traffic.Clients
	for k := range int64(len(clients)) {
		at := int((i + k) % int64(len(clients)))
		for _, win := range clients[at].Windows {
			if win.Rate > 0 {
				return asked{client: at, lengths: win.Lengths}
			}
		}
	}
	panic("workload: traffic without a request")
}

// requestName names the case of a request that a client makes.
func requestName(i int64) string { return "request-" + strconv.FormatInt(i+1, 10) }
