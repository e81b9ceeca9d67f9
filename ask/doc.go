// Package ask makes askers and embedders of package check out of endpoints on
// the wire.
//
// An [Asker] sends each question as one request whose answer is not streamed and
// reads all that the API says of it: the text, the API's own refusal field, why it
// ended, log-probabilities, token counts, the server's name of itself. It judges
// nothing: an empty text, a refusal and a cut answer are answers. What is none is
// said by the Outcome of the answer. A service whose filter refuses a request, by
// status 400 or by its finish_reason, gives record.Filtered, which is neither an
// answer nor a failure of transport.
//
// Log-probabilities are passed on as they came. Where one of them is null or not
// there, the answer has none at all: an average over those that are left would be
// of other tokens.
//
// A prompt is scored by the completions API of the same server, whatever API the
// target names, since a chat's template would stand in between. There are two
// ways to ask for it, of which the asker finds out the one that works: echo with
// logprobs, and vLLM's prompt_logprobs. Tokens are placed by their texts, which have
// to make up the prompt; what a server adds before or behind it is left out.
//
// An [Embedder] sends texts in batches and returns their vectors, or an error.
//
// Neither tries anything again, counts or remembers: the driver of package check
// does.
package ask
