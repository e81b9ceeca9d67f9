package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Delivery is how a message was delivered, or how far it came.
type Delivery struct {
	Host   string `json:"host"`
	Tries  int    `json:"tries"`
	Status int    `json:"status,omitempty"` // of the last answer; 0: none came
	Before bool   `json:"before,omitempty"` // delivered by an earlier run of the command; nothing was sent
}

const (
	tries       = 5
	tryTimeout  = 10 * time.Second
	firstPause  = time.Second
	longestWait = time.Minute // that a receiver may ask for
)

// Post sends body as JSON to an address until it is taken (2xx). It tries again, up
// to five times with growing pauses or as the receiver asks (Retry-After, up to a
// minute), when there was no answer or one that says to come back (408, 425, 429
// and 5xx). Every try carries the key as Idempotency-Key. Redirects are not
// followed. Errors name the host only.
func Post(ctx context.Context, address, key string, body []byte) (Delivery, error) {
	return post(ctx, &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}, address, key, body)
}

func post(ctx context.Context, wire http.RoundTripper, address, key string, body []byte) (Delivery, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return Delivery{}, errors.New("the address is no http(s) address\n  hint: the secret must hold such as https://hooks.example.com/services/…")
	}
	d := Delivery{Host: u.Host}
	client := &http.Client{
		Transport:     wire,
		Timeout:       tryTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for wait := firstPause; ; wait *= 2 {
		d.Tries++
		again, after, err := once(ctx, client, address, key, body, &d)
		if err == nil {
			return d, nil
		}
		err = fmt.Errorf("posting to %s: %w", d.Host, err)
		if !again || d.Tries == tries {
			return d, err
		}
		select {
		case <-ctx.Done():
			return d, err
		case <-time.After(max(wait, after)):
		}
	}
}

// once sends the message and says whether it is worth trying again, and after how
// long the receiver wants to be asked again.
func once(ctx context.Context, client *http.Client, address, key string, body []byte, d *Delivery) (again bool, after time.Duration, err error) {
	d.Status = 0
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("the address cannot be used")
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Idempotency-Key", key)
	r, err := client.Do(q)
	if err != nil {
		if cause, ok := errors.AsType[*url.Error](err); ok { // its text has the address
			err = cause.Err
		}
		return true, 0, err
	}
	defer r.Body.Close()
	_, _ = io.CopyN(io.Discard, r.Body, 4<<10)
	d.Status = r.StatusCode
	if r.StatusCode/100 == 2 {
		return false, 0, nil
	}
	switch r.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		again = true
	}
	if s, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && s > 0 {
		after = min(time.Duration(min(s, 3600))*time.Second, longestWait)
	}
	return again || r.StatusCode >= 500, after, fmt.Errorf("the answer was %d %s", r.StatusCode, http.StatusText(r.StatusCode))
}
