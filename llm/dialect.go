package llm

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// The APIs that a Target names beside APIChat and APICompletions.
const (
	APIMessages   = "messages"   // Anthropic: POST /v1/messages
	APIResponses  = "responses"  // OpenAI: POST /v1/responses
	APIOllama     = "ollama"     // POST /api/chat; /api/generate if the URL ends in it
	APITGI        = "tgi"        // POST /generate_stream, or /generate
	APIEmbeddings = "embeddings" // POST /v1/embeddings
	APIRerank     = "rerank"     // POST /v1/rerank
	APITemplate   = "template"   // whatever Target.Template says, at the URL as it is
)

// dialect is one API on the wire: all that differs between them. A client reads
// every API into the same chunk, and so into the same record.
type dialect struct {
	tail   string // path of a request below the API's root
	whole  string // of one that is not streamed, if it has a path of its own
	models string // of the list of models, or of what else tells that somebody is there
	root   string // put behind a URL that names no version; "": nothing
	base   string // what people put behind a URL that belongs to the paths
	accept string

	lines    bool // a stream is JSON lines, not server-sent events
	unstream bool // there are no streams
	timed    bool // the head of an answer tells times and tokens
	asIs     bool // the URL is the path of requests
	ranks    bool // requests may have a priority, as vLLM's

	missing string // what a JSON body lacks that is no answer
	auth    func(t *Target) [][2]string
	// body appends the JSON of a request.
	body func(b []byte, t *Target, r *Request) ([]byte, error)
	// read reads one event of the given name, or a whole answer, which has none.
	// It must not allocate for what servers usually send, and its errors must not
	// quote the input.
	read func(c *chunk, name, data []byte) error
	// check looks at a complete answer; nil: there is nothing of its own to hold.
	check func(t *tally) error
}

const (
	acceptEvents = "text/event-stream, application/json"
	acceptWhole  = "application/json"
	acceptLines  = "application/x-ndjson, application/json"
)

// apis are the names that a Target may give.
var apis = []string{APIChat, APICompletions, APIMessages, APIResponses, APIOllama, APITGI, APIEmbeddings, APIRerank, APITemplate}

// dialects are the APIs by name. The two paths of Ollama are two of them.
var dialects = map[string]*dialect{
	APIChat:        {tail: "/chat/completions", models: "/models", root: "/v1", accept: acceptEvents, ranks: true, missing: "choices", auth: bearer, body: appendChat, read: readOpenAI},
	APICompletions: {tail: "/completions", models: "/models", root: "/v1", accept: acceptEvents, ranks: true, missing: "choices", auth: bearer, body: appendCompletion, read: readOpenAI},
	APIMessages:    {tail: "/messages", models: "/models", root: "/v1", accept: acceptEvents, missing: "content", auth: messagesAuth, body: appendAnthropic, read: readMessages},
	APIResponses:   {tail: "/responses", models: "/models", root: "/v1", accept: acceptEvents, missing: "output", auth: bearer, body: appendResponses, read: readResponses},
	APIOllama:      {tail: "/api/chat", models: "/api/tags", base: "/api", accept: acceptLines, lines: true, missing: "message", auth: bearer, body: appendOllamaChat, read: readOllama},
	ollamaGenerate: {tail: "/api/generate", models: "/api/tags", base: "/api", accept: acceptLines, lines: true, missing: "response", auth: bearer, body: appendOllamaPrompt, read: readOllama},
	APITGI:         {tail: "/generate_stream", whole: "/generate", models: "/info", accept: acceptEvents, timed: true, missing: "generated_text", auth: bearer, body: appendTGI, read: readTGI},
	APIEmbeddings:  {tail: "/embeddings", models: "/models", root: "/v1", accept: acceptWhole, unstream: true, missing: "data", auth: bearer, body: appendEmbeddings, read: readEmbeddings, check: checkEmbeddings},
	APIRerank:      {tail: "/rerank", models: "/models", root: "/v1", accept: acceptWhole, unstream: true, missing: "results", auth: bearer, body: appendRerank, read: readRerank, check: checkRerank},
	APITemplate:    {accept: acceptEvents, asIs: true, missing: "what the template looks for", auth: bearer},
}

// The reasons of an end, in the words of OpenAI. The other APIs' words for the
// same are replaced, so that one metric and one clause fit all.
var (
	finishStop   = []byte("stop")
	finishLength = []byte("length")
	finishTools  = []byte("tool_calls")
	finishFilter = []byte("content_filter")
	finishAbort  = []byte("abort")
)

// dialectOf returns the dialect of an API at a URL's path; nil: there is none of
// that name.
func dialectOf(api, path string) *dialect {
	if api == "" {
		api = APIChat
	}
	if api == APIOllama && strings.HasSuffix(strings.TrimRight(path, "/"), "/generate") {
		api = ollamaGenerate
	}
	return dialects[api]
}

// dialect returns how to speak to the target.
func (t *Target) dialect() *dialect {
	if t.speak != nil {
		return t.speak
	}
	if t.API == APITemplate && t.Template != nil {
		d, _ := t.Template.dialect() // its faults are Validate's
		return d
	}
	if t.API != APIOllama {
		return dialectOf(t.API, "")
	}
	path := ""
	if u, err := url.Parse(t.URL); err == nil {
		path = u.Path
	}
	return dialectOf(t.API, path)
}

// Errors of a request that an API cannot express: left out, it would ask for
// another answer.
var errNoStop = errors.New("encoding request: this API has no stop sequences; leave them out, or give them as an extra field")

func bearer(t *Target) [][2]string {
	if t.Key == "" {
		return nil
	}
	return [][2]string{{"Authorization", "Bearer " + t.Key}}
}

func readOpenAI(c *chunk, _, data []byte) error {
	if c.scan(data) {
		return nil
	}
	return c.parse(data)
}

var versionSegment = regexp.MustCompile(`/v\d+[a-z0-9]*$`)

// endpoints returns the URLs of requests and of the list of models. A path that
// ends in a version is taken as the API's root, as SDKs do; one that ends in
// the API's own path is used as it is.
func endpoints(u *url.URL, api string) (post, models *url.URL) {
	d := dialectOf(api, u.Path)
	if d.asIs {
		return u, u
	}
	root := strings.TrimRight(u.Path, "/")
	for _, tail := range []string{d.tail, d.whole} {
		if cut, ok := strings.CutSuffix(root, tail); ok && tail != "" {
			return withPath(u, cut+d.tail), withPath(u, cut+d.models)
		}
	}
	if root = strings.TrimSuffix(root, d.base); !versionSegment.MatchString(root) {
		root += d.root
	}
	return withPath(u, root+d.tail), withPath(u, root+d.models)
}

// unstreamed returns the URL of requests that are not streamed, given the other.
func (d *dialect) unstreamed(post *url.URL) *url.URL {
	if d.whole == "" {
		return post
	}
	return withPath(post, strings.TrimSuffix(post.Path, d.tail)+d.whole)
}

func withPath(u *url.URL, path string) *url.URL {
	v := *u
	v.Path, v.RawPath = path, ""
	return &v
}
