package config_test

import (
	"fmt"

	"github.com/assay-llm/assay/config"
)

type variant struct {
	URL     string          `yaml:"url,required" doc:"where it answers"`
	API     string          `yaml:"api" oneof:"chat,completions"`
	Timeout config.Duration `yaml:"timeout" min:">0s" max:"1h"`
	Key     config.Secret   `yaml:"key"`
}

type suite struct {
	Version  int                 `yaml:"version,required" min:"1" max:"1"`
	Variants config.Map[variant] `yaml:"variants,required"`
}

func ExampleDecode() {
	var s suite
	err := config.Decode("suite.yaml", []byte(`version: 1
variants:
  baseline: {url: http://a/v1, api: chta, timeout: 30}
  candidate: {key: sk-live-0123456789, tiemout: 5s}
`), &s)
	fmt.Println(err)
	// Output:
	// suite.yaml:3:37: variants.baseline.api: wants chat or completions, got the text "chta"
	//   hint: did you mean chat?
	// suite.yaml:3:52: variants.baseline.timeout: wants a duration such as "30s", got the number 30
	//   hint: write 30s, if seconds are meant
	// suite.yaml:4:14: variants.candidate.url: is missing
	//   hint: add url: …
	// suite.yaml:4:20: variants.candidate.key: wants a reference to a secret, env:NAME or file:PATH; got a text of 18 characters (not shown)
	//   hint: put the secret into an environment variable and write env:NAME; replace the secret if this file was shared
	// suite.yaml:4:40: variants.candidate.tiemout: unknown key
	//   hint: did you mean timeout?
}

func ExampleEncode() {
	var s suite
	err := config.Decode("suite.yaml", []byte(`{version: 1, variants: {zeta: {url: http://z/v1, timeout: 90s}, alpha: {url: http://a/v1, key: env:KEY}}}`), &s)
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := config.Encode(s)
	fmt.Print(string(data), err)
	// Output:
	// version: 1
	// variants:
	//   zeta:
	//     url: http://z/v1
	//     timeout: 1m30s
	//   alpha:
	//     url: http://a/v1
	//     key: env:KEY
	// <nil>
}

// processes is a union: it reads itself.
type processes struct {
	Rate  config.Rate
	Users int
}

func (p *processes) DecodeConfig(n *config.Node) {
	for _, entry := range n.Pairs() {
		switch entry.Key {
		case "poisson":
			entry.Value.Decode(&p.Rate)
		case "concurrency":
			entry.Value.Decode(&p.Users)
		default:
			entry.KeyNode.Fault("is no process of arrivals", "use poisson or concurrency")
		}
	}
	if p.Rate > 0 && p.Users > 0 || !n.IsMapping() {
		n.Fault("wants either poisson or concurrency", "write {poisson: 5/s}")
	}
}

func ExampleDecoder() {
	var w struct {
		Arrivals processes `yaml:"arrivals"`
	}
	for _, doc := range []string{"arrivals: {poisson: 300/min}", "arrivals: {poison: 5/s}", "arrivals: {poisson: 5/s, concurrency: 3}"} {
		w.Arrivals = processes{}
		fmt.Println(config.Decode("w.yaml", []byte(doc), &w), w.Arrivals)
	}
	// Output:
	// <nil> {5/s 0}
	// w.yaml:1:12: arrivals.poison: is no process of arrivals
	//   hint: use poisson or concurrency {0/s 0}
	// w.yaml:1:11: arrivals: wants either poisson or concurrency
	//   hint: write {poisson: 5/s} {5/s 3}
}
