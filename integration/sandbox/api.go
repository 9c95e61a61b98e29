package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of a run, for each provider.
const (
	maxCalls     = 200
	maxAnswer    = 4 << 20 // bytes
	callTime     = 60 * time.Second
	cleaningTime = 30 * time.Second
)

// api calls one provider at one address. It follows no redirect and sends nothing
// twice. It is safe for concurrent use.
type api struct {
	base    string
	http    *http.Client
	calls   atomic.Int64
	run     string   // marks what this run makes
	secrets []string // never printed
}

func newAPI(base string, transport http.RoundTripper, secrets ...string) *api {
	mark := make([]byte, 6)
	_, _ = rand.Read(mark) // never fails
	a := &api{base: base, run: fmt.Sprintf("samekey-%x", mark)}
	a.http = &http.Client{Transport: transport, Timeout: callTime, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	for _, s := range secrets {
		if s != "" {
			a.secrets = append(a.secrets, s, base64.StdEncoding.EncodeToString([]byte(s)))
		}
	}
	return a
}

func (a *api) made() int { return int(a.calls.Load()) }

// redact takes the secrets out of what is printed. None should be in it.
func (a *api) redact(s string) string {
	for _, secret := range a.secrets {
		s = strings.ReplaceAll(s, secret, "[secret]")
	}
	return s
}

// key returns an idempotency key of this run.
func (a *api) key(name string) string { return a.run + "-" + name }

// call is one request.
type call struct {
	method, path string
	header       map[string]string
	body         []byte
}

// answer is a provider's answer, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
	json   any
}

var errTooMany = errors.New("the run makes more calls than it may")

// do makes a call. An answer that says nothing of a fact, because the provider is
// busy or broken, is an error.
func (a *api) do(ctx context.Context, c call) (answer, error) {
	if a.calls.Add(1) > maxCalls {
		return answer{}, errTooMany
	}
	r, err := http.NewRequestWithContext(ctx, c.method, a.base+c.path, bytes.NewReader(c.body))
	if err != nil {
		return answer{}, err
	}
	r.GetBody = nil // net/http would send a keyed request again by itself
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	resp, err := a.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	got := answer{status: resp.StatusCode, header: resp.Header}
	if got.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil {
		return answer{}, err
	}
	_ = json.Unmarshal(got.body, &got.json) // nil where it is no JSON
	if got.status == http.StatusTooManyRequests || got.status >= http.StatusInternalServerError {
		return got, fmt.Errorf("%s %s: the provider answers %d: run this again later", c.method, c.path, got.status)
	}
	return got, nil
}

// at returns what stands at a path in the answer, as at("error", "type") or
// at("data", "0", "id"); nil if nothing does.
func (r answer) at(path ...string) any {
	v := r.json
	for _, step := range path {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(parent) {
				return nil
			}
			v = parent[i]
		default:
			return nil
		}
	}
	return v
}

func (r answer) text(path ...string) string {
	s, _ := r.at(path...).(string)
	return s
}

func (r answer) list(path ...string) []any {
	l, _ := r.at(path...).([]any)
	return l
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9_./ -]`)

// word bounds a code of a provider's that is printed.
func word(s string) string {
	s = notWord.ReplaceAllString(s, "?")
	return s[:min(len(s), 60)]
}

// want returns an error unless the answer has one of the statuses: what a
// scenario needs in order to go on.
func (r answer) want(what, told string, statuses ...int) error {
	for _, s := range statuses {
		if r.status == s {
			return nil
		}
	}
	return fmt.Errorf("%s: the answer is %s", what, told)
}

// eventually asks again until done says so, or fails, or patience is at its end.
func eventually(ctx context.Context, patience time.Duration, done func() (bool, error)) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(3 * time.Second):
		}
	}
}

// crowd is how many equal requests are sent at once.
const crowd = 6

var errNoMeeting = errors.New("no two of the requests met: run this again")

// together makes n equal calls at once.
func together(n int, do func() (answer, error)) ([]answer, error) {
	type outcome struct {
		answer answer
		err    error
	}
	outcomes := make(chan outcome, n)
	for range n {
		go func() {
			r, err := do()
			outcomes <- outcome{r, err}
		}()
	}
	var answers []answer
	var failed []error
	for range n {
		o := <-outcomes
		answers, failed = append(answers, o.answer), append(failed, o.err)
	}
	return answers, errors.Join(failed...)
}
