// Package llm speaks the wire of language models: OpenAI's chat, completions,
// responses and embeddings, Anthropic's messages, Ollama, TGI, rerank, and by a
// [Template] any other JSON API, streamed and not. As a server it speaks chat and
// completions.
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
// # APIs
//
// All that differs between APIs is a dialect: the paths, the header fields, the
// JSON of a request, and one reader of an event or a whole answer. Every reader
// fills the same chunk (text, reasoning, pieces of tool calls, usage, reason of
// the end, error), and all that comes behind it is one code: a first token, a
// truncated stream or a broken tool call means the same on every API. Reasons of
// an end are given in OpenAI's words where another API has its own for the same;
// docs/protocols.md has the table.
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
