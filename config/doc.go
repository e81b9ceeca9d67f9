// Package config reads strict YAML into Go structs and says all that is wrong
// with a document at once, each fault with its file, line, column and path, its
// cause, and one next step:
//
//	suite.yaml:12:14: variants.candidate.timeout: wants a duration such as "30s", got the number 30
//	  hint: write 30s, if seconds are meant
//
// It knows nothing of suites or contracts: other packages declare structs, and
// this one fills them ([Decode]), writes them back ([Encode]) and describes them
// to editors ([Schema]). It is the only package that knows a YAML library.
//
// # Structs and tags
//
// A field is part of the document if it has a yaml tag. Fields of embedded and
// inlined structs belong to the outer one.
//
//	type Variant struct {
//		URL     string           `yaml:"url,required" doc:"where it answers"`
//		API     string           `yaml:"api" oneof:"chat,completions"`
//		Timeout config.Duration  `yaml:"timeout" min:">0s" max:"1h"`
//		Limits                   `yaml:",inline"`
//		Seed    *uint64          `yaml:"seed"` // nil: not given
//	}
//
// "required" asks for a key with a value that is not empty. The limits min and
// max are written as the document would write them, with > and < for limits that
// are not allowed themselves; they are checked where a value is given. most bounds
// the items of a list, or the keys of a mapping, before they are looked at, as in
// most:"100". doc goes into the schema. Tags that cannot work panic, since the
// program is wrong and not the document.
//
// Fields may be booleans, integers, floats, strings, slices, maps with string
// keys, structs, pointers to all of these, any, time.Duration, and the types of
// this package: the quantities [Duration], [Rate], [Bytes], [Percent] and
// [Count], each with its grammar, which never take a bare number for what needs a
// unit; [Secret], a reference that holds no secret; and [Map], which keeps the
// order of the file. A type that is none of these reads itself: see [Decoder],
// [Schemer] and encoding.TextUnmarshaler. Rules across fields go into a
// [Checker], which sees only values that had no fault of their own. A Decoder
// that wants the usual rules for a part of the node calls [Node.Decode]; for
// itself it converts its pointer to a type without methods first.
//
// A field that the document does not mention keeps the value that it had, so
// defaults can be set before. After an error the value is incomplete.
//
// # What a document may hold
//
// A document means the same to every YAML reader or it is refused. Text that YAML
// 1.1 takes for a boolean (no, on, y), and numbers where text is wanted, must be
// quoted; numbers are plain decimal, finite and in range; a key stands once.
// Anchors, aliases, merge keys, tags, a second document, byte order marks,
// characters that are invisible, and bytes that are not UTF-8 are refused.
// Columns count characters, from 1.
//
// # Hostile documents
//
// A file has at most 4 MiB, 64 levels, 100,000 values and 200,000 lines; a comment
// counts as two values. Size, values and lines are bounded before the YAML parser
// sees the file: each value needs a mark of its own (a comma, a dash, a colon), and
// marks are counted whatever is quoted. The few long texts with more than 100,000
// commas and colons are refused by that, too. Anchors are refused without being
// followed. Every document of the test of hostile documents is decoded or refused
// in less than 100 ms of one processor, in a process of at most 64 MB.
//
// The library matters. go.yaml.in/yaml/v3 caps nesting at 10,000 and refuses a
// billion laughs in about 1 ms even when it resolves aliases, which is not done
// here. goccy/go-yaml 1.19.2 is unsafe for files that others write: 18 kB of "["
// cost it 139 MB, 200 kB of it did not finish in 15 s and held 2.8 GB, and 1 MB of
// "? " held 4.4 GB. sigs.k8s.io/yaml silently accepts repeated keys unless
// UnmarshalStrict is called.
//
// yaml/v3 tells of a syntax error only a line, often that of the enclosing value.
// The true line is found by parsing the file's beginnings: the first one that
// fails in the same way ends with it. Files above 64 KiB are spared that, and the
// line told is reported.
package config
