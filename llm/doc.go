// Package llm speaks the OpenAI-compatible wire: chat completions and
// completions, streamed and not, as a client and as a server.
//
// # The client
//
// A [Client] asks one [Target]. [Client.Do] sends one [Request], reads the
// answer to its end and writes what became of it on a [record.Record]: every
// instant, every event, the server's token counts, and exactly one outcome. It
// returns the text as an [Answer]. The caller owns the record and the schedule;
// the client keeps neither. Do may be called by any number of goroutines; on
// HTTP/1.1 it runs wholly in its caller's, so a stream costs one goroutine.
//
// The numbers are only as good as the stamps, so these rule the design:
//
//   - HTTP/1.1 is this package's own, on net.Conn. A request leaves in one
//     write. The clock is read when a read returns, before a byte of it is
//     looked at. Events that came in one read share its stamp and its ordinal,
//     since the gaps between them carry no information.
//   - On Linux the kernel's own receive stamp (SO_TIMESTAMPNS) comes with each
//     read of a TCP socket, also below TLS. [record.Event.Lag] is the
//     difference: what the client itself added. It is unknown on other systems
//     and connections, for HTTP/2 and proxies, and for the first reads after the
//     system's first such socket, as the kernel begins to stamp a moment later.
//   - Reads are large and nothing waits for a slow consumer: the server is never
//     held back. An event costs about 0.3 µs and no allocation; encoding/json is
//     asked only about JSON of a shape that the scanner does not know.
//   - [Client.Open] connects beforehand, so that no request pays for a dial.
//
// HTTP/2 and proxies go through net/http, behind the same small interface. Their
// stamps are taken when a read of the body returns.
//
// # What is never success
//
// An answer is complete when its JSON is whole, or when the stream said
// finish_reason for every choice or [DONE]. The client stops there, and does not
// wait for the socket. An error inside a 200 answer, a stream that just ends, an
// answer without output that the server does not account for, broken framing or
// JSON, a token limit not kept: each is a failure of its own class. Text of a
// server that reaches a record is bounded, printable, and holds neither the key
// nor a stretch of the prompt.
//
// The one retry: a kept connection that fails before any byte of the answer had
// been closed by the server while idle; the request goes out once more, on a new
// connection, and the record says so. Nothing else is sent twice. A refusal,
// also 429, is a data point.
//
// # The decoder and the server's side
//
// [Decoder] reads server-sent events by the WHATWG rules, wherever the input is
// cut. [ParseRequest] and the Append functions are the other end of the wire, for
// the simulated engine: they parse what a client sends, and write chunks, whole
// answers, usage and errors. A server may put a comment ": emit N" into an
// event's block, the instant in Unix nanoseconds at which it wrote the event;
// [AppendEvent] does. The client keeps it as [record.Event.Emit], the ground
// truth of its own stamps; other clients skip it.
package llm
