package contract

import (
	"slices"
	"strings"

	"github.com/assay-llm/assay/record"
)

// A declared metric is one that contracts may name although the load driver does
// not measure it: a check, an engine or a gateway does, and writes it on the
// record, or into a [Series], under the metric's name. Where nobody did there is
// no data, and a clause on it is inconclusive.
type declared struct {
	record.Metric
	needs string // who measures it
}

// written reads the value of that name that somebody wrote on the record.
func written(name string) func(*record.Record, []float64) []float64 {
	return func(r *record.Record, to []float64) []float64 {
		if v, ok := r.Values[name]; ok {
			return append(to, v)
		}
		return to
	}
}

// writtenAmount adds up the values of that name, each at the end of its request.
func writtenAmount(name string) func(*record.Record, func(record.Instant, float64)) {
	return func(r *record.Record, add func(record.Instant, float64)) {
		if v, ok := r.Values[name]; ok {
			add(max(r.EOF, r.Due), v)
		}
	}
}

func score(name, title, doc, needs string, higher bool) declared {
	return declared{record.Metric{Name: name, Title: title, Unit: record.Points, Doc: doc, Higher: higher, Values: written(name)}, needs}
}

func yesNo(name, title, doc, needs string) declared {
	return declared{record.Metric{Name: name, Title: title, Unit: record.Proportion, Doc: doc, Indicator: true, Values: written(name)}, needs}
}

// vocabulary is what contracts may name beyond the catalogue of package record.
var vocabulary = []declared{
	score("similarity", "similarity", "likeness of the candidate's answer to the baseline's for the same prompt, −1 to 1", "a check that compares paired answers", true),
	score("bleu4", "BLEU-4", "BLEU-4 of an answer against its reference, 0 to 1", "a check with reference answers", true),
	score("self_consistency", "self-consistency", "agreement of five answers to the same prompt, 0 to 1", "a check that asks each prompt five times", true),
	score("length_sd", "length deviation", "standard deviation of the output lengths of repeated answers to one prompt, in tokens", "a check that repeats prompts", false),
	score("length_sd_ratio", "length deviation ratio", "the larger standard deviation of output lengths of both variants over the smaller", "a check that compares paired answers", false),
	score("length_shift", "length shift", "absolute difference of the mean output lengths of both variants, in tokens", "a check that compares paired answers", false),
	score("slot_retention", "slot retention", "share of intents and slots of a dialogue that survive three turns, 0 to 1", "a check of dialogues", true),
	score("drift", "alignment drift", "distance of the answers to a probe suite from the aligned policy's, 0 to 1", "a probe suite for alignment", false),
	yesNo("value_conflict", "conflicting", "answers to a probe suite that conflict with a stated value", "a probe suite for alignment"),
	yesNo("prefill_failed", "prefill-failed", "requests whose prefill failed", "an engine that tells prefill failures"),
	yesNo("cache_missed", "cache-missing", "second and later turns of a session that found no KV cache", "an engine that tells cached tokens, and sessions"),
	{record.Metric{Name: "oom_kill", Title: "out-of-memory kills", Unit: record.Requests, Doc: "kills by the out-of-memory killer", Amount: writtenAmount("oom_kill")}, "a watch over the engine's processes"},
	{record.Metric{Name: "prefill", Title: "prefill", Unit: record.Nanoseconds, Doc: "time that the engine spent on the prompt", Values: written("prefill")}, "an engine that times prefill by the request"},
	score("gpu_streams", "active GPU streams", "active streams of an idle engine's context, at a checkpoint", "a reader of the GPU's contexts", false),
	score("gpu_residue", "GPU memory in use", "MiB of GPU memory that an idle engine holds, at a checkpoint", "a reader of the GPU's memory", false),
}

// find looks a metric up: in the catalogue of records, then among the declared,
// then among own, the values of the checks of a run. What a check writes is judged
// as that also where it is spelled value.CHECK.NAME.
func find(name string, own ...record.Metric) (record.Metric, bool) {
	if written := strings.TrimPrefix(name, "value."); written != name {
		if i := slices.IndexFunc(own, func(m record.Metric) bool { return m.Name == written }); i >= 0 {
			return own[i], true
		}
	}
	if m, ok := record.Find(name); ok {
		return m, true
	}
	if d, ok := declaredMetric(name); ok {
		return d.Metric, true
	}
	if i := slices.IndexFunc(own, func(m record.Metric) bool { return m.Name == name }); i >= 0 {
		return own[i], true
	}
	return record.Metric{}, false
}

func declaredMetric(name string) (declared, bool) {
	if g := stageOf(name); g != nil {
		return g.metric, true
	}
	i := slices.IndexFunc(vocabulary, func(d declared) bool { return d.Name == name })
	if i < 0 {
		return declared{}, false
	}
	return vocabulary[i], true
}
