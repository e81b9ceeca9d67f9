//go:build !(linux && (amd64 || arm64 || riscv64 || ppc64le || s390x || loong64))

package llm

import "net"

// kernelReader is never attached: this system gives no receive stamps.
type kernelReader struct{}

func (*kernelReader) attached() bool                   { return false }
func (*kernelReader) attach(net.Conn)                  {}
func (*kernelReader) read([]byte) (int, int64, error)  { panic("llm: no kernel stamps here") }
func (*kernelReader) fill(*buffer) (int, int64, error) { panic("llm: no kernel stamps here") }
func (*kernelReader) exchange([]byte, *buffer) (writing, int, int64, error) {
	panic("llm: no kernel stamps here")
}

// stale cannot look without reading: the retry rule covers dead connections.
func stale(net.Conn) bool { return false }
