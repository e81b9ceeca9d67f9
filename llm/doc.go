// Package llm speaks the wire protocols of language model servers.
package llm
