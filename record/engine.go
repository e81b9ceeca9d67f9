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
