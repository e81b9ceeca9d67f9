package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// disk is a file system in memory that knows what is durable and what is not.
//
// It loses power: from operation number stopAt on, everything fails, and image
// gives one of the states in which a real disk may be found afterwards: data
// that was not synced is gone, torn, or zeros; entries of directories that were
// not synced are as before, as after, or any mixture. A process that is killed
// (SIGKILL) is no test of durability: the page cache outlives it, and a program
// that never syncs passes; kill mode exists here only to lead recovery into
// states that a power failure later makes worse.
type disk struct {
	mu     sync.Mutex
	rng    *rand.Rand
	root   *node
	locks  map[string]bool
	op     int                                   // operations that change something
	stopAt int                                   // fails from here on; 0: never
	fault  func(op int, kind, name string) error // fails this one operation only
	skip   string                                // site whose syncs do nothing
	sites  map[string]bool                       // every place that syncs
	frozen bool                                  // writes are a test failure
	wrote  []string                              // what was written while frozen
}

type node struct {
	dir          bool
	data, synced []byte
	now, durable map[string]*node
	pending      []func(map[string]*node) // changes of entries since the last sync
}

var errPower = errors.New("the power is gone")

func newDisk(seed uint64) *disk {
	return &disk{rng: rand.New(rand.NewPCG(seed, 7)), root: newDir(), locks: map[string]bool{}, sites: map[string]bool{}}
}

func newDir() *node {
	return &node{dir: true, now: map[string]*node{}, durable: map[string]*node{}}
}

// change counts an operation; last means that it is the one during which the
// power goes, so that it may or may not take effect.
func (d *disk) change(kind, name string) (last bool, err error) {
	if d.frozen {
		d.wrote = append(d.wrote, kind+" "+name)
		return false, syscall.EROFS
	}
	d.op++
	if d.fault != nil {
		if err := d.fault(d.op, kind, name); err != nil {
			return false, &fs.PathError{Op: kind, Path: name, Err: err}
		}
	}
	if d.stopAt > 0 && d.op > d.stopAt {
		return false, errPower
	}
	return d.op == d.stopAt, nil
}

func (d *disk) stopped() bool { return d.stopAt > 0 && d.op >= d.stopAt }

func (d *disk) find(name string) *node {
	n := d.root
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(name)), "/") {
		if part == "." || part == "" {
			continue
		}
		if n == nil || !n.dir {
			return nil
		}
		n = n.now[part]
	}
	return n
}

func (n *node) entry(do func(map[string]*node)) {
	do(n.now)
	n.pending = append(n.pending, do)
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

func (d *disk) Mkdir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.find(dir) != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrExist}
	}
	parent := d.find(path.Dir(dir))
	if parent == nil {
		return notExist("mkdir", dir)
	}
	if _, err := d.change("mkdir", dir); err != nil {
		return err
	}
	n := newDir()
	parent.entry(func(m map[string]*node) { m[path.Base(dir)] = n })
	return d.orPower()
}

func (d *disk) orPower() error {
	if d.stopped() {
		return errPower
	}
	return nil
}

func (d *disk) Open(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped() {
		return nil, errPower
	}
	n := d.find(name)
	if n == nil {
		return nil, notExist("open", name)
	}
	return &handle{d: d, n: n, name: name}, nil
}

func (d *disk) Edit(name string) (File, error) { return d.Open(name) }
func (d *disk) Append(name string) (File, error) {
	f, err := d.Open(name)
	if err == nil {
		h := f.(*handle)
		h.at = len(h.n.data)
	}
	return f, err
}

func (d *disk) Create(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	parent := d.find(path.Dir(name))
	if parent == nil {
		return nil, notExist("create", name)
	}
	if _, err := d.change("create", name); err != nil {
		return nil, err
	}
	n := d.find(name)
	if n == nil {
		n = &node{}
		parent.entry(func(m map[string]*node) { m[path.Base(name)] = n })
	}
	n.data = nil
	return &handle{d: d, n: n, name: name}, d.orPower()
}

func (d *disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.find(from)
	if n == nil {
		return notExist("rename", from)
	}
	if _, err := d.change("rename", to); err != nil {
		return err
	}
	d.find(path.Dir(to)).entry(func(m map[string]*node) {
		delete(m, path.Base(from))
		m[path.Base(to)] = n
	})
	return d.orPower()
}

func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.find(name) == nil {
		return notExist("remove", name)
	}
	if _, err := d.change("remove", name); err != nil {
		return err
	}
	d.find(path.Dir(name)).entry(func(m map[string]*node) { delete(m, path.Base(name)) })
	return d.orPower()
}

func (d *disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.find(dir)
	if n == nil {
		return notExist("syncdir", dir)
	}
	last, err := d.change("syncdir", dir)
	if err != nil {
		return err
	}
	if d.syncs("SyncDir") && (!last || d.rng.IntN(2) == 0) {
		n.durable, n.pending = maps.Clone(n.now), nil
	}
	return d.orPower()
}

// syncs notes the place in the package that syncs, and reports whether the sync
// is to be done: a mutation leaves it out.
func (d *disk) syncs(kind string) bool {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	site := kind
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "/record.") && !strings.HasSuffix(f.File, "_test.go") {
			site += fmt.Sprintf(" < %s:%d", f.Function[strings.LastIndex(f.Function, "/record.")+len("/record."):], f.Line)
		}
		if !more {
			break
		}
	}
	d.sites[site] = true
	return site != d.skip
}

func (d *disk) Lock(name string) (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locks[name] {
		return nil, ErrLocked
	}
	d.locks[name] = true
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locks, name)
		return nil
	}, nil
}

// revive lets the operations go on: another process on the same machine.
func (d *disk) revive(stopAt int) {
	d.locks = map[string]bool{}
	d.stopAt = 0
	if stopAt > 0 {
		d.stopAt = d.op + stopAt
	}
}

// image is one of the disks that may be found after the power came back.
func (d *disk) image() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := newDisk(d.rng.Uint64())
	found.skip, found.sites = d.skip, d.sites
	found.root = d.survivor(d.root, map[*node]*node{})
	return found
}

func (d *disk) survivor(n *node, seen map[*node]*node) *node {
	if s := seen[n]; s != nil {
		return s
	}
	if !n.dir {
		data := d.torn(n)
		s := &node{data: data, synced: data}
		seen[n] = s
		return s
	}
	s := newDir()
	seen[n] = s
	entries := maps.Clone(n.durable)
	mode, until := d.rng.IntN(6), d.rng.IntN(len(n.pending)+1)
	if d.skip != "" {
		mode = 3 // a mutation is found soonest in a mixture
	}
	for i, do := range n.pending {
		if mode == 1 || mode == 2 && i < until || mode > 2 && d.rng.IntN(2) == 0 {
			do(entries)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		s.now[name] = d.survivor(entries[name], seen)
	}
	s.durable = maps.Clone(s.now)
	return s
}

// torn is what may be left of a file.
func (d *disk) torn(n *node) []byte {
	if bytes.Equal(n.data, n.synced) {
		return bytes.Clone(n.synced)
	}
	if !bytes.HasPrefix(n.data, n.synced) { // cut or written over: all or nothing
		return bytes.Clone([][]byte{n.data, n.synced}[d.rng.IntN(2)])
	}
	fresh := len(n.data) - len(n.synced)
	switch d.rng.IntN(4) {
	case 0:
		return bytes.Clone(n.synced)
	case 1:
		return bytes.Clone(n.data)
	case 2:
		return bytes.Clone(n.data[:len(n.synced)+d.rng.IntN(fresh+1)])
	default: // the size was written, some of the data was not
		data := bytes.Clone(n.data)
		clear(data[len(n.synced)+d.rng.IntN(fresh):])
		return data
	}
}

// handle is an open file.
type handle struct {
	d    *disk
	n    *node
	name string
	at   int
}

func (h *handle) ReadAt(b []byte, off int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if h.d.stopped() {
		return 0, errPower
	}
	if off >= int64(len(h.n.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.n.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) Write(b []byte) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	last, err := h.d.change("write", h.name)
	part := b
	if last || errors.Is(err, syscall.ENOSPC) {
		part = b[:h.d.rng.IntN(len(b)+1)]
	} else if err != nil {
		return 0, err
	}
	h.n.data = append(slices.Clip(h.n.data[:h.at]), part...)
	h.at += len(part)
	if last {
		err = errPower
	}
	return len(part), err
}

func (h *handle) Close() error { return nil }

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return int64(len(h.n.data)), nil
}

func (h *handle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if _, err := h.d.change("truncate", h.name); err != nil {
		return err
	}
	h.n.data = slices.Clip(h.n.data[:size])
	return h.d.orPower()
}

func (h *handle) Sync() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	last, err := h.d.change("sync", h.name)
	if err != nil {
		return err
	}
	if h.d.syncs("Sync") && (!last || h.d.rng.IntN(2) == 0) {
		h.n.synced = bytes.Clone(h.n.data)
	}
	return h.d.orPower()
}

// put places a file on the disk, durable.
func (d *disk) put(name string, data []byte) {
	if d.find(path.Dir(name)) == nil {
		if err := makeDir(d, path.Dir(name)); err != nil {
			panic(err)
		}
	}
	dir := d.find(path.Dir(name))
	dir.now[path.Base(name)] = &node{data: bytes.Clone(data), synced: bytes.Clone(data)}
	dir.durable = maps.Clone(dir.now)
}

// get returns a file's bytes, or nil.
func (d *disk) get(name string) []byte {
	if n := d.find(name); n != nil {
		return n.data
	}
	return nil
}
