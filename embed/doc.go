// Package embed turns texts into vectors whose directions tell how alike the texts
// are, without a server: the offline default of checks that compare meanings.
//
// [Load] reads a BERT encoder as sentence-transformers publishes it (all-MiniLM-L6-v2
// and its kin: model.safetensors, tokenizer.json, config.json) and computes it in plain
// Go on one core; about eight sentences a second. [Hashing] needs no weights: it
// counts character n-grams, so it sees wording and not meaning, and is for smoke
// tests. A server's embedder is asked through package ask; all of them are
// check.Embedders.
//
// A cosine has no scale of its own: unrelated texts have 0.1 with one embedder and
// 0.7 with another, and both call "approved" and "not approved" alike. [Calibrate]
// measures what unrelated texts of the suite have, so that scores of different
// embedders can be read alike; [Score] compares two texts sentence by sentence on that
// scale; and package verify's facts guard what a cosine does not see. [Probe] tells
// whether an embedder is still the one that was calibrated.
package embed
