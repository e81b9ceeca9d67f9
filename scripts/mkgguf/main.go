// Mkgguf writes small language models with random weights as GGUF files, which
// llama.cpp and everything built on it loads. Their text means nothing, but
// prefill, decode, the KV cache, batching and sampling cost what they cost in a
// real model of that shape, and no weights need to be downloaded.
//
// Usage:
//
//	mkgguf [flags] -o FILE.gguf
//
// The architecture is llama's. The same flags give the same file, byte for
// byte, on every machine of one processor architecture; another seed gives a
// model of equal cost with other answers, which serves as another version of it.
//
// Models never end by themselves and never write anything but whole characters:
// an answer has exactly as many tokens as the request allows. See [network].
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	switch err := run(os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "mkgguf: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("mkgguf", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var s shape
	flags.IntVar(&s.dim, "dim", 256, "width of the residual stream")
	flags.IntVar(&s.layers, "layers", 8, "number of layers")
	flags.IntVar(&s.heads, "heads", 8, "number of attention heads; divides dim")
	flags.IntVar(&s.kvHeads, "kv", 4, "number of key and value heads; divides heads")
	flags.IntVar(&s.ffn, "ffn", 768, "width of the feed-forward layers")
	flags.IntVar(&s.vocab, "vocab", 2048, "number of tokens")
	flags.IntVar(&s.context, "ctx", 4096, "context length in tokens")
	flags.Float64Var(&s.sharpness, "sharp", 3, "how peaked the distribution of the next token is")
	flags.Uint64Var(&s.seed, "seed", 1, "seed of the weights")
	kind := flags.String("type", "f32", "type of the matrices: f32 or q8_0")
	out := flags.String("o", "", "file to write (required)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if s.matrix, err = parseKind(*kind); err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("want -o FILE.gguf and no other argument")
	}
	m := network(s)
	n, err := writeFile(*out, m)
	if err != nil {
		return fmt.Errorf("writing %s: %w", *out, err)
	}
	fmt.Fprintf(stdout, "%s: %d parameters in %d tensors, %d bytes\n", *out, m.parameters(), len(m.tensors), n)
	return nil
}
