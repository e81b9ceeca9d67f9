package check

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// Seal encrypts the private answers of a run, those that may do harm to who reads
// them, before they are kept. It is AES-256 in Galois counter mode with a random
// nonce, bound to the key of its question, under a key that HKDF-SHA256 derives from
// a secret. It is safe for concurrent use.
type Seal struct{ aead cipher.AEAD }

// leastSecret is how many bytes a secret has at least: shorter ones can be guessed.
const leastSecret = 16

// ErrSeal says that an answer was sealed with another secret, or was changed.
var ErrSeal = errors.New("the answer is sealed with another secret, or was changed")

// NewSeal makes a Seal of a secret of 16 bytes or more.
func NewSeal(secret string) (*Seal, error) {
	if len(secret) < leastSecret {
		return nil, fmt.Errorf("a secret of %d bytes seals nothing: it takes %d\n  hint: make one with openssl rand -hex 32", len(secret), leastSecret)
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "assay.seal/1", 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of the seal: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("making the cipher of the seal: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("making the cipher of the seal: %w", err)
	}
	return &Seal{aead}, nil
}

// shut returns what is kept of an answer: its outcome, and all else sealed.
func (s *Seal) shut(key string, a *Answer) (*Answer, error) {
	plain, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return &Answer{Outcome: a.Outcome, Sealed: s.aead.Seal(nonce, nonce, plain, []byte(key))}, nil
}

// Open returns the answer to the question of that key as it was before it was
// sealed. An answer that is not sealed is returned as it is.
func (s *Seal) Open(key string, a *Answer) (*Answer, error) {
	if a.Sealed == nil {
		return a, nil
	}
	n := s.aead.NonceSize()
	if len(a.Sealed) < n {
		return nil, ErrSeal
	}
	plain, err := s.aead.Open(nil, a.Sealed[:n], a.Sealed[n:], []byte(key))
	if err != nil {
		return nil, ErrSeal
	}
	out := new(Answer)
	if err := json.Unmarshal(plain, out); err != nil {
		return nil, fmt.Errorf("reading an answer that was sealed: %w", err)
	}
	return out, nil
}

// Memory returns a memory of private answers that keeps them sealed in another.
func (s *Seal) Memory(kept Memory) Memory { return &sealed{kept, s} }

type sealed struct {
	kept Memory
	seal *Seal
}

func (m *sealed) Recall(key string) (*Answer, bool, error) {
	a, ok, err := m.kept.Recall(key)
	if err != nil || !ok {
		return nil, false, err
	}
	a, err = m.seal.Open(key, a)
	return a, err == nil, err
}

func (m *sealed) Save(key, endpoint string, a *Answer) error {
	shut, err := m.seal.shut(key, a)
	if err != nil {
		return err
	}
	return m.kept.Save(key, endpoint, shut)
}

// private asks so that answers are kept nowhere in clear.
type private struct{ Asker }

// Private returns an asker whose questions are all private: those of a judge that
// is shown what may do harm, and may quote it.
func Private(a Asker) Asker { return private{a} }

// Ask asks a private copy of the question.
func (p private) Ask(ctx context.Context, q *Question) (*Answer, error) {
	own := *q
	own.Private = true
	return p.Asker.Ask(ctx, &own)
}
