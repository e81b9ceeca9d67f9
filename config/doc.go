// Package config reads strict YAML into Go structs and says all that is wrong
// with a document at once.
package config
