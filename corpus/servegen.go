package corpus

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Traffic is a model of a service's clients: for each of them how often it asks,
// how unevenly, and how long its prompts and answers are, window by window.
// Requests are drawn for each client alone and laid over one another; drawing from
// the sum of all clients loses the bursts of the few that ask most.
type Traffic struct {
	Clients []Client
	Source  string // who published it, and under which licence
}

// Client is one client of Traffic. Its windows follow one another without a gap.
type Client struct {
	Name    string
	Windows []Window
	Lengths []Lengths // the distinct ones; Window.Lengths points into them
}

// Window is a stretch of a client's time.
type Window struct {
	Length  int64   // nanoseconds
	Rate    float64 // requests per second; 0: none, also if the lengths are not known
	CV      float64 // measured coefficient of variation of the gaps
	Family  string  // gamma, weibull, or "": no model of the gaps
	Shape   float64 // of the family
	Lengths int     // index in Client.Lengths
}

// Lengths are the distributions of tokens of prompts and answers.
type Lengths struct{ Input, Output Table }

// Table is a distribution over whole numbers of tokens.
type Table struct {
	Values     []int32   // rising
	Cumulative []float64 // probability of a value up to this one; the last is 1
}

// At returns the value at u, which is in (0, 1): the inverse of the distribution
// function.
func (t Table) At(u float64) int32 {
	i, _ := slices.BinarySearch(t.Cumulative, u)
	return t.Values[min(i, len(t.Values)-1)]
}

// The bounds of an archive.
const (
	maxMember  = 64 << 20
	maxClients = 10_000
	maxWindows = 100_000   // of a client, and as many of lengths
	maxRows    = 2_000_000 // windows of all clients
	maxEntries = 1 << 25   // of all tables
	minShape   = 0.005
	maxShape   = 10_000
	lowestK    = 0.2 // shape of a Weibull distribution, of CV 15.8
	maxPerSec  = 1_000_000
)

const serveGenSource = "ServeGen, Alibaba, Apache-2.0"

var memberName = regexp.MustCompile(`(?:^|/)chunk-([0-9]{1,6})-(trace\.csv|dataset\.json)$`)

// clientele collects the clients of an archive.
type clientele struct {
	name    string
	set     *Set
	rows    int // windows
	entries int
	clients map[int]*Client
	windows map[int][]start
	lengths map[int][]start
	members map[string]bool
}

// start is where a window of rates or of lengths begins, and what begins there.
type start struct {
	at     int64 // seconds
	window Window
	known  bool // of lengths: they are not empty
	table  Lengths
}

// readServeGen reads a tar archive, compressed with gzip or not, that holds
// chunk-N-trace.csv and chunk-N-dataset.json for each client N.
func readServeGen(most bounds, name string, r io.Reader) (*Set, error) {
	in := &limited{r: r, name: name, most: most.file, left: most.file}
	var magic [2]byte
	n, err := io.ReadFull(in, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, reading(name, err)
	}
	var plain io.Reader = io.MultiReader(bytes.NewReader(magic[:n]), in)
	if string(magic[:n]) == "\x1f\x8b" {
		z, err := gzip.NewReader(plain)
		if err != nil {
			return nil, &Fault{File: name, What: "not a gzip file: " + err.Error(), Hint: "fetch it again"}
		}
		plain = &limited{r: z, name: name, most: most.file, left: most.file} // of what it unpacks to
	}
	c := &clientele{
		name: name, set: &Set{Name: name, Format: "servegen"}, clients: map[int]*Client{},
		windows: map[int][]start{}, lengths: map[int][]start{}, members: map[string]bool{},
	}
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, c.broken(err)
		}
		m := memberName.FindStringSubmatch(header.Name)
		if m == nil || header.Typeflag != tar.TypeReg {
			continue
		}
		if err := c.member(archive, m); err != nil {
			return nil, err
		}
	}
	return c.finish()
}

// broken is an error of the archive itself, or of the reader below it.
func (c *clientele) broken(err error) error {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		return &Fault{File: c.name, What: "the archive is broken: " + err.Error(), Hint: "pack the chunk files of one model: tar czf r1.tar.gz deepseek-r1/"}
	}
	return fmt.Errorf("reading %s: %w", c.name, err)
}

func (c *clientele) member(r io.Reader, m []string) error {
	data, err := io.ReadAll(io.LimitReader(r, maxMember+1))
	name := "chunk-" + m[1] + "-" + m[2]
	id, _ := strconv.Atoi(m[1])
	switch file := c.name + ": " + name; {
	case err != nil:
		return c.broken(err)
	case len(data) > maxMember:
		return &Fault{File: file, What: "the file is larger than " + mebibytes(maxMember)}
	case c.members[fmt.Sprint(id, m[2])]:
		return &Fault{File: file, What: "this client is there twice", Hint: "pack one model"}
	case len(c.clients) == maxClients:
		return &Fault{File: file, What: fmt.Sprintf("more than %d clients", maxClients)}
	}
	c.members[fmt.Sprint(id, m[2])] = true
	if c.clients[id] == nil {
		c.clients[id] = &Client{Name: "client-" + strconv.Itoa(id)}
	}
	if m[2] == "trace.csv" {
		return c.trace(name, id, data)
	}
	return c.dataset(name, id, data)
}

// trace reads the windows of a client: start in seconds, rate, CV, family, shape,
// scale. The scale is not used: the rate says the mean.
func (c *clientele) trace(name string, id int, data []byte) error {
	line := 0
	for row := range bytes.Lines(data) {
		line++
		if row = bytes.TrimSpace(row); len(row) == 0 {
			continue
		}
		c.rows++
		w, err := windowOf(row)
		all := c.windows[id]
		switch {
		case err == nil && len(all) > 0 && w.at <= all[len(all)-1].at:
			err = bad("", "the window is not after the one before it")
		case len(all) == maxWindows || c.rows > maxRows:
			return &Fault{File: c.name + ": " + name, Line: line, What: fmt.Sprintf("more than %d windows of a client, or %d in all", maxWindows, maxRows), Hint: "pack fewer clients"}
		}
		if err == nil {
			c.windows[id] = append(all, w)
			continue
		}
		c.set.Skipped++
		if len(c.set.Faults) < maxFaults {
			in := reader{name: c.name + ": " + name}
			c.set.Faults = append(c.set.Faults, in.fault(line, row, err))
		}
	}
	return nil
}

func windowOf(row []byte) (s start, err error) {
	fields := bytes.Split(row, []byte(","))
	if len(fields) != 6 {
		return s, bad("fields are start, rate, CV, family, shape, scale", "want 6 fields, got %d", len(fields))
	}
	at, ok := fixedPoint(fields[0], 0)
	if !ok || at > maxSpan/second {
		return s, bad("", "not the start of a window in seconds: %s", quote(string(fields[0])))
	}
	s.at = at
	numbers := [3]float64{}
	for i, k := range []int{1, 2, 4} {
		if numbers[i], ok = float(string(fields[k])); !ok || numbers[i] < 0 {
			return s, bad("", "want a number of at least 0, got %s", quote(string(fields[k])))
		}
	}
	s.window = Window{Rate: numbers[0], CV: numbers[1], Family: strings.ToLower(string(fields[3]))}
	switch w := &s.window; {
	case w.Rate > maxPerSec:
		return s, bad("", "a rate of more than %d/s", maxPerSec)
	case w.Family == "gamma" || w.Family == "weibull":
		if w.Shape = numbers[2]; w.Shape < minShape || w.Shape > maxShape || w.Family == "weibull" && w.Shape < lowestK {
			return s, bad("", "the shape %v of the %s distribution is out of range", w.Shape, w.Family)
		}
	case w.Family != "":
		return s, bad("families are Gamma and Weibull", "unknown family %s", quote(string(fields[3])))
	}
	return s, nil
}

// float reads a plain decimal number, with or without an exponent.
func float(s string) (float64, bool) {
	c := &cursor{data: []byte(s)}
	if text, err := c.number(); err != nil || len(text) != len(s) {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsInf(x, 0)
}

// dataset reads the lengths of a client: {"seconds": {"input_tokens": "{tokens:
// probability, ...}", ...}, ...}.
func (c *clientele) dataset(name string, id int, data []byte) error {
	in := &cursor{data: data}
	err := in.object(func(key string) error {
		at, ok := fixedPoint([]byte(key), 0)
		if !ok || at > maxSpan/second {
			return bad("", "not the start of a window in seconds: %s", quote(key))
		}
		if len(c.lengths[id]) == maxWindows {
			return bad("", "more than %d windows", maxWindows)
		}
		s := start{at: at}
		err := in.object(func(field string) error {
			in.space()
			place := in.pos
			text, err := in.text()
			if err != nil {
				return err
			}
			table, err := tableOf(text, field != "reason_ratio")
			if err != nil {
				return in.fail(place, "%s: %v", quote(field), err)
			}
			switch field {
			case "input_tokens", "text_tokens":
				s.table.Input = table
			case "output_tokens":
				s.table.Output = table
			}
			c.entries += len(table.Values)
			return nil
		})
		s.known = len(s.table.Input.Values) > 0 && len(s.table.Output.Values) > 0
		c.lengths[id] = append(c.lengths[id], s)
		return err
	})
	if err == nil {
		err = in.end()
	}
	if err == nil && c.entries > maxEntries {
		err = bad("pack fewer clients", "more than %d entries of tables in all", maxEntries)
	}
	if err != nil {
		r := reader{name: c.name + ": " + name}
		return r.fault(1, data, err)
	}
	slices.SortFunc(c.lengths[id], func(a, b start) int { return cmp.Compare(a.at, b.at) })
	return nil
}

// tableOf reads the text of a Python dictionary of numbers to probabilities, and
// nothing else: it is not evaluated. The empty one is a table of nothing. Where
// tokens is false, keys may be fractions, and are forgotten.
func tableOf(text string, tokens bool) (t Table, err error) {
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return t, errors.New("not a table {tokens: probability, ...}")
	}
	body := text[1 : len(text)-1]
	if strings.TrimSpace(body) == "" {
		return t, nil
	}
	type entry struct {
		value int32
		p     float64
	}
	var entries []entry
	sum := 0.0
	for pair := range strings.SplitSeq(body, ",") {
		key, value, colon := strings.Cut(strings.TrimSpace(pair), ":")
		k, isKey := float(strings.TrimSpace(key))
		p, isP := float(strings.TrimSpace(value))
		switch {
		case !colon || !isKey || !isP:
			return t, fmt.Errorf("not tokens and their probability: %s", quote(clip(pair)))
		case p < 0 || p > 1+1e-6:
			return t, fmt.Errorf("%v is no probability", p)
		case tokens && (k != math.Trunc(k) || k < 0 || k > maxRowTokens):
			return t, fmt.Errorf("want whole tokens from 0 to %d, got %v", maxRowTokens, k)
		}
		if sum += p; tokens && p > 0 {
			entries = append(entries, entry{int32(max(k, 1)), p}) // nobody can send, or limit an answer to, no token
		}
	}
	if math.Abs(sum-1) > 1e-6 {
		return t, fmt.Errorf("the probabilities add up to %v, not to 1", sum)
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.value, b.value) })
	total := 0.0
	for i, e := range entries {
		if i > 0 && e.value == entries[i-1].value && e.value > 1 {
			return Table{}, fmt.Errorf("%d tokens are there twice", e.value)
		}
		total += e.p / sum
		t.Values, t.Cumulative = append(t.Values, e.value), append(t.Cumulative, total)
	}
	if n := len(t.Cumulative); n > 0 {
		t.Cumulative[n-1] = 1
	}
	return t, nil
}

// clip shortens a text for a message.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "..."
	}
	return s
}

// finish joins windows with their lengths: a window uses the latest lengths that
// start at or before it. A window whose lengths are empty sends nothing.
func (c *clientele) finish() (*Set, error) {
	in := reader{name: c.name, set: c.set, rows: c.rows}
	if _, err := in.judge(); err != nil {
		return nil, err
	}
	traffic := &Traffic{Source: serveGenSource}
	asked := false
	ids := make([]int, 0, len(c.clients))
	for id := range c.clients {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		client := c.clients[id]
		windows, lengths := c.windows[id], c.lengths[id]
		for part, have := range map[string]bool{"trace.csv": len(windows) > 0, "dataset.json": len(lengths) > 0} {
			if !have {
				return nil, &Fault{File: c.name, What: fmt.Sprintf("client %d has no chunk-%d-%s, or nothing in it", id, id, part), Hint: "each client needs both files"}
			}
		}
		for _, l := range lengths {
			client.Lengths = append(client.Lengths, l.table)
		}
		k := -1
		for i, s := range windows {
			for k+1 < len(lengths) && lengths[k+1].at <= s.at {
				k++
			}
			w := s.window
			if w.Length = lastLength(windows, i); k < 0 || !lengths[k].known {
				w.Rate = 0
			}
			w.Lengths = max(k, 0)
			asked = asked || w.Rate > 0
			client.Windows = append(client.Windows, w)
		}
		if first := windows[0].at; first > 0 { // quiet until then
			client.Windows = slices.Insert(client.Windows, 0, Window{Length: first * second})
		}
		traffic.Clients = append(traffic.Clients, *client)
	}
	if !asked {
		return nil, &Fault{File: c.name, What: "no client asks anything: there are no chunk-N-trace.csv with a rate", Hint: "pack the chunk files of one model: tar czf r1.tar.gz deepseek-r1/"}
	}
	c.set.Traffic = traffic
	c.set.Digest = traffic.digest()
	return c.set, nil
}

// lastLength returns the length of window i: up to the next, the last one as long
// as the one before it, ten minutes if it is the only one.
func lastLength(windows []start, i int) int64 {
	switch {
	case i+1 < len(windows):
		return (windows[i+1].at - windows[i].at) * second
	case i > 0:
		return (windows[i].at - windows[i-1].at) * second
	}
	return 600 * second
}

// digest is of the content alone.
func (t *Traffic) digest() string {
	d := digester{h: sha256.New()}
	real := func(x float64) { d.buf = binary.LittleEndian.AppendUint64(d.buf, math.Float64bits(x)) }
	d.text("assay.traffic/1")
	d.number(uint64(len(t.Clients)))
	for i := range t.Clients {
		c := &t.Clients[i]
		d.text(c.Name)
		d.number(uint64(len(c.Windows)))
		for _, w := range c.Windows {
			d.number(uint64(w.Length))
			real(w.Rate)
			real(w.CV)
			d.text(w.Family)
			real(w.Shape)
			d.number(uint64(w.Lengths))
		}
		d.number(uint64(len(c.Lengths)))
		for _, l := range c.Lengths {
			for _, table := range []Table{l.Input, l.Output} {
				d.number(uint64(len(table.Values)))
				for k, v := range table.Values {
					d.number(uint64(v))
					real(table.Cumulative[k])
				}
				d.text("")
			}
		}
	}
	d.flush()
	return hex.EncodeToString(d.h.Sum(nil))
}
