package record

// EngineSide is what the engine of one variant said of itself while it served one
// workload: differences of its counters and means of its gauges over the
// windows of that variant and workload, added up. The names are those of
// docs/format/engine.md. A figure that is not known is not in Values.
type EngineSide struct {
	Variant  string             `json:"variant"`
	Workload string             `json:"workload"`
	Engine   string             `json:"engine"` // vllm, sglang, tgi, trtllm, triton, llamacpp, dcgm
	Windows  int                `json:"windows"`
	Blind    int                `json:"windows_without_scrapes,omitempty"`
	Scrapes  int                `json:"scrapes"`
	Failed   int                `json:"scrapes_failed,omitempty"`
	Seconds  float64            `json:"seconds"` // from first to last scrape, windows added up
	Values   map[string]float64 `json:"values"`
	Lost     map[string]string  `json:"lost,omitempty"`  // figures that the engine shows and that could not be told, and why
	Notes    []string           `json:"notes,omitempty"` // where the engine's account and the client's are apart
}

// CacheProof is the evidence that the prefix cache of a variant was cold before a
// workload: a canary prompt that nobody has sent was sent twice, the cache was
// emptied, and it was sent again.
type CacheProof struct {
	Variant  string     `json:"variant"`
	Workload string     `json:"workload"`
	State    string     `json:"state"` // cold, warm or unknown
	Why      string     `json:"why"`   // with the figures
	Said     string     `json:"said"`  // what the engine answered when it was asked to empty its cache
	First    CacheProbe `json:"first"`
	Again    CacheProbe `json:"again"` // sent at once behind First
	After    CacheProbe `json:"after"` // sent when the cache was to be empty
}

// CacheProbe is one sending of the canary.
type CacheProbe struct {
	Outcome Outcome `json:"outcome"`
	Prompt  Count   `json:"prompt_tokens"`
	Cached  Count   `json:"cached_tokens"` // as the answer's usage tells
	Counted Count   `json:"counted_hits"`  // as the engine's counter grew meanwhile
	TTFT    Count   `json:"ttft_ns"`       // from the first byte sent
}

// Hits is how many prompt tokens came from the cache: by the usage, else by the
// counter; ok is false when neither tells.
func (p CacheProbe) Hits() (n int64, ok bool) {
	if n, ok := p.Cached.N(); ok {
		return n, true
	}
	return p.Counted.N()
}

// EngineWindow is what an engine said of itself while one variant served one block
// of a workload, from scrape to scrape. The names are those of
// docs/format/engine.md; what is not known is in neither map.
type EngineWindow struct {
	Variant, Workload string
	Block             int
	Engine            string                    // as in EngineSide
	Counters          map[string][]EngineGrowth // NAME_sum and NAME_count of histograms too
	Gauges            map[string][]EngineGrowth // readings: of what was read at To; the edges of the window left out
	Lost              map[string]string         // figures that the engine shows and that could not be told in this window, and why
}

// EngineGrowth is by how much a counter grew between two scrapes, or what a gauge
// read at the second of them.
type EngineGrowth struct {
	From, To Instant
	By       float64
}
