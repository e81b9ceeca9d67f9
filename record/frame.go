package record

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The journal is a header and then frames, all numbers little-endian:
//
//	header: magic[8] version:u32 crc32c(magic, version):u32
//	frame:  marker[4] length:u32 crc32c(length, payload):u32 payload[length]
//
// The marker lets a reader find frames again behind damage, to count them. The
// checksum covers the length, so that a stretch of zeros is no frame.
const (
	journalVersion = 1
	headerSize     = 16
	frameHead      = 12
	maxFrame       = 16 << 20 // bytes of payload; maxEvents of any kind fit
)

var (
	journalMagic = [8]byte{0x89, 'A', 'S', 'Y', '\r', '\n', 0x1a, '\n'} // as PNG's: a text transfer breaks it
	frameMarker  = [4]byte{0xF5, 'R', 'e', 'c'}                         // 0xF5 is never in UTF-8
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

// ErrNewer is returned for records in a format newer than this program.
var ErrNewer = errors.New("the records were written in a newer format")

func newerError(name string, version any) error {
	return fmt.Errorf("reading %s: version %v: %w\n  hint: use the version of assay that made them, or a later one", name, version, ErrNewer)
}

func journalHeader() []byte {
	b := binary.LittleEndian.AppendUint32(append([]byte(nil), journalMagic[:]...), journalVersion)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// appendFrameHead makes room for a frame's head; closeFrame fills it in when the
// payload has been appended behind it.
func appendFrameHead(b []byte) []byte {
	var head [frameHead]byte
	copy(head[:], frameMarker[:])
	return append(b, head[:]...)
}

func closeFrame(frame []byte) {
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(frame)-frameHead))
	binary.LittleEndian.PutUint32(frame[8:], frameSum(frame[4:8], frame[frameHead:]))
}

func frameSum(length, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, payload)
}

// damage says why the bytes at the scanner's offset are no frame.
type damage string

// scanner reads frames off a journal, and stops at its end or at the first
// damage. Its memory is one frame.
type scanner struct {
	name    string
	r       *bufio.Reader
	at      int64 // offset of the next frame
	size    int64
	payload []byte
}

func newScanner(name string, r io.ReaderAt, size int64) *scanner {
	return &scanner{name: name, r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), int(min(size, 256<<10))), size: size}
}

// header reads the journal's header.
func (s *scanner) header() (damage, error) {
	if s.size < headerSize {
		return "torn header", nil
	}
	var b [headerSize]byte
	if _, err := io.ReadFull(s.r, b[:]); err != nil {
		return "", fmt.Errorf("reading %s: %w", s.name, err)
	}
	if !bytes.HasPrefix(b[:], journalMagic[:]) || binary.LittleEndian.Uint32(b[12:]) != crc32.Checksum(b[:12], castagnoli) {
		return "bad header", nil
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != journalVersion {
		return "", newerError(s.name, v)
	}
	s.at = headerSize
	return "", nil
}

// next returns the next frame's payload, valid until the call after; at the
// clean end it is nil. The scanner stays where damage begins. An error is one of
// reading, not of what was read.
func (s *scanner) next() ([]byte, damage, error) {
	left := s.size - s.at
	if left == 0 {
		return nil, "", nil
	}
	var head [frameHead]byte
	n, err := io.ReadFull(s.r, head[:min(left, frameHead)])
	if err != nil {
		return nil, "", fmt.Errorf("reading %s at offset %d: %w", s.name, s.at, err)
	}
	if k := min(n, len(frameMarker)); !bytes.Equal(head[:k], frameMarker[:k]) {
		if bytes.Equal(head[:n], make([]byte, n)) {
			return nil, "zero bytes", nil
		}
		return nil, "bad marker", nil
	}
	if left < frameHead {
		return nil, "torn record", nil
	}
	length := int64(binary.LittleEndian.Uint32(head[4:]))
	switch {
	case length == 0 || length > maxFrame:
		return nil, "bad length", nil
	case length > left-frameHead:
		return nil, "torn record", nil
	}
	s.payload = resize(s.payload, int(length))
	if _, err := io.ReadFull(s.r, s.payload); err != nil {
		return nil, "", fmt.Errorf("reading %s at offset %d: %w", s.name, s.at, err)
	}
	if frameSum(head[4:8], s.payload) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, "bad checksum", nil
	}
	return s.payload, "", nil
}

// accept moves past the frame that next returned.
func (s *scanner) accept() { s.at += frameHead + int64(len(s.payload)) }

func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n, n+n/2)
	}
	return b[:n]
}

// stranded counts the frames with a good checksum at or after the offset from.
// They lie behind damage: how many records are missing between cannot be known,
// so they are counted, and never read. The work is bounded: a file made of
// markers stops the count early.
func stranded(r io.ReaderAt, from, size int64) (n int64, err error) {
	budget := 4*(size-from) + maxFrame // bytes that may be summed
	window := make([]byte, 64<<10)
	var payload []byte
	for at := from; at+frameHead < size && budget > 0; {
		w := window[:min(int64(len(window)), size-at)]
		if _, err := r.ReadAt(w, at); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		i := bytes.Index(w, frameMarker[:])
		if i < 0 {
			at += int64(len(w) - len(frameMarker) + 1)
			continue
		}
		if at += int64(i); at+frameHead >= size {
			break
		}
		var head [frameHead]byte
		if _, err := r.ReadAt(head[:], at); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		length := int64(binary.LittleEndian.Uint32(head[4:]))
		if length == 0 || length > maxFrame || length > size-at-frameHead {
			at++
			continue
		}
		payload = resize(payload, int(length))
		if _, err := r.ReadAt(payload, at+frameHead); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		budget -= length
		if frameSum(head[4:8], payload) != binary.LittleEndian.Uint32(head[8:]) {
			at++
			continue
		}
		n++
		at += frameHead + length
	}
	return n, nil
}
