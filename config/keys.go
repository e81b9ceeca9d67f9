package config

// Keys returns the top keys of a YAML document, to tell what kind of document it
// is before it is decoded; nil when it cannot be read, which Decode then explains.
func Keys(data []byte) []string {
	d := &document{data: data, limits: Limits{}.orDefault()}
	if !d.parse() || !d.root.IsMapping() {
		return nil
	}
	var keys []string
	for _, p := range d.root.Pairs() {
		keys = append(keys, p.Key)
	}
	return keys
}
