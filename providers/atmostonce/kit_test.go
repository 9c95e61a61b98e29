package atmostonce_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/atmostonce"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Two operations of an imaginary API: letters can be looked up by a tag, mails get an
// answer without a body and are found by nothing.
func letterSend() rs.Operation {
	o := atmostonce.Operation("letter.send", http.MethodPost, "/v1/letters")
	o.Marks = []rs.Place{rs.JSON("/tag")}
	o.Lookup = "the list of letters: the one whose tag is the mark"
	return o
}

func mailSend() rs.Operation {
	return atmostonce.Operation("mail.send", http.MethodPost, "/v1/mails")
}

func findLetter(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	letter, err := httpadapter.List{Target: "/v1/letters", Items: "/letters", Mark: "/tag"}.Find(ctx, get, l)
	if letter == nil || err != nil {
		return outbound.Finding{}, err
	}
	return httpadapter.Found(httpadapter.Plain{}, l.Operation, letter), nil
}

func adapter(_ testing.TB, baseURL string, rt http.RoundTripper) outbound.Adapter {
	return atmostonce.New(httpadapter.Config{
		Provider: "post", Account: "P1", Mode: "live", BaseURL: baseURL, Transport: rt,
		Operations: []rs.Operation{letterSend(), mailSend()},
		Authorize:  httpadapter.Credential("Authorization", "Bearer ", "token-of-the-post"),
	}, &atmostonce.Options{NoBody: []string{"mail.send"}, Find: findLetter})
}

func send(row rs.Operation, to string) func(outbound.Command, string) outbound.Call {
	return func(cmd outbound.Command, _ string) outbound.Call {
		return httpadapter.JSONCall(row, cmd, nil, map[string]any{"to": to, "text": "Your order is on its way."})
	}
}

// fake sends whenever it is asked, as often as it is asked.
func fake() providertest.JSONProvider {
	post := func(c *providertest.JSONCall) providertest.JSONAnswer {
		if c.Body["to"] == "" {
			return c.Reject(http.StatusUnprocessableEntity, "to_missing")
		}
		return c.Create(map[string]any{"tag": c.Body["tag"]})
	}
	return providertest.JSONProvider{
		RequestIDHeader: "X-Request-Id",
		ErrorBody:       func(e providertest.JSONError) any { return map[string]any{"code": e.Code} },
		Operations: []providertest.JSONOperation{
			{Name: "letter.send", Path: "/v1/letters", Status: http.StatusCreated, Handle: post},
			{
				Name: "letter.list", Path: "/v1/letters", Read: true,
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					letters := []any{}
					for _, o := range c.Objects() {
						letters = append(letters, o.Fields)
					}
					return c.Answer(map[string]any{"letters": letters})
				},
			},
			{
				Name: "mail.send", Path: "/v1/mails", Status: http.StatusAccepted,
				Handle: func(c *providertest.JSONCall) providertest.JSONAnswer {
					a := post(c)
					if a.Status == http.StatusAccepted {
						a.Body = nil
					}
					return a
				},
			},
		},
	}
}

func TestKit(t *testing.T) {
	providertest.Run(t, providertest.Kit{
		New: adapter, Provider: providertest.JSONDialect(fake()),
		Samples: []providertest.Sample{
			{Call: send(letterSend(), "Ann"), Other: send(letterSend(), "Bob"), Rejected: send(letterSend(), "")},
			{Call: send(mailSend(), "ann@example.com"), Other: send(mailSend(), "bob@example.com"), Rejected: send(mailSend(), "")},
		},
	})
}

// A row with a key is one that could be resent: another package's business.
func TestKeyIsRefused(t *testing.T) {
	row := mailSend()
	row.Keys, row.Resend = []rs.Place{rs.Header("Idempotency-Key")}, rs.Original
	_, err := atmostonce.New(httpadapter.Config{
		Provider: "post", Account: "P1", Mode: "live", BaseURL: "https://post.example", Operations: []rs.Operation{row},
	}, nil).Profile()
	if err == nil || !strings.Contains(err.Error(), "mail.send has a key") {
		t.Errorf("the error is %v", err)
	}
}
