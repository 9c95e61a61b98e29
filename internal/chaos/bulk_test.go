package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// The provider of these tests moves money in groups and lists a group's marks in
// one answer, so that one look-up can answer for hundreds of records.

var bulkTransfer = rs.Operation{
	Name: "transfer.create", Method: http.MethodPost, Path: "/transfers",
	Keys: []rs.Place{rs.Header("Idempotency-Key")}, Window: time.Hour, Resend: rs.Original,
	Marks: []rs.Place{rs.JSON("/mark")}, Lookup: "list the group, compare the marks",
	Absence: "the group is listed whole",
	Facts:   []rs.Fact{{States: "made up for tests", URL: "https://example.com", Read: "2026-11-30"}},
}

const bulkAccount = "B1"

// bulkBody is a transfer on the wire.
type bulkBody struct {
	Group string `json:"group"`
	Mark  string `json:"mark,omitempty"`
	Note  string `json:"note,omitempty"`
}

func bulkCall(cmd outbound.Command, account string, b bulkBody) outbound.Call {
	call := httpadapter.JSONCall(bulkTransfer, cmd, nil, b)
	call.Account = account
	return call
}

// newBulk is the provider's adapter with a codec.
func newBulk(c httpadapter.Codec, baseURL string, rt http.RoundTripper) *httpadapter.Adapter {
	return httpadapter.New(c, httpadapter.Config{
		Provider: "bulk", Account: bulkAccount, Mode: "test", BaseURL: baseURL, Transport: rt,
		Operations: []rs.Operation{bulkTransfer},
		Authorize: func(_ context.Context, account string, _ []outbound.Field, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+account)
			return nil
		},
	})
}

// bulkCodec reads the provider's answers.
type bulkCodec struct{}

func (bulkCodec) Judge(x *httpadapter.Exchange) outbound.Verdict {
	switch {
	case x.Status == http.StatusOK:
		return outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: "transfer"}
	case x.Status == http.StatusTooManyRequests:
		return outbound.Verdict{Effect: outbound.EffectNone, Code: outbound.ErrRateLimited}
	}
	return outbound.Verdict{}
}

func (c bulkCodec) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	all, err := c.FindAll(ctx, get, []*outbound.Lookup{l})
	if err != nil {
		return outbound.Finding{}, err
	}
	return all[0], nil
}

// FindAll lists each group once.
func (bulkCodec) FindAll(ctx context.Context, get httpadapter.Get, ls []*outbound.Lookup) ([]outbound.Finding, error) {
	lists := map[string]map[string]bool{}
	findings := make([]outbound.Finding, len(ls))
	for i, l := range ls {
		var b bulkBody
		if err := json.Unmarshal(l.Message.Body, &b); err != nil {
			return nil, err
		}
		if lists[b.Group] == nil {
			marks, err := listGroup(ctx, get, b.Group)
			if err != nil {
				return nil, err
			}
			lists[b.Group] = marks
		}
		findings[i].Effect = outbound.EffectNone
		if lists[b.Group][l.Mark] {
			findings[i] = outbound.Finding{Effect: outbound.EffectApplied, ExternalRef: "transfer",
				Answer: &outbound.Answer{Status: http.StatusOK, Body: []byte("{}")}}
		}
	}
	return findings, nil
}

func listGroup(ctx context.Context, get httpadapter.Get, group string) (map[string]bool, error) {
	x, err := get(ctx, "/transfers", url.Values{"group": {group}})
	if err != nil {
		return nil, err
	}
	var list []string
	if err := json.Unmarshal(x.Body, &list); err != nil || x.Status != http.StatusOK {
		return nil, errors.New("the list cannot be read")
	}
	marks := make(map[string]bool, len(list))
	for _, m := range list {
		marks[m] = true
	}
	return marks, nil
}

// bulkDialect is the fake's side.
type bulkDialect struct{ groups map[string][]string }

func newBulkDialect() fakeprovider.Dialect { return &bulkDialect{map[string][]string{}} }

func (d *bulkDialect) RequestID(n uint64) string { return fmt.Sprint("bulk-", n) }

func (d *bulkDialect) Recognise(r *fakeprovider.Request) fakeprovider.Call {
	if r.Method == http.MethodGet {
		return fakeprovider.Call{Operation: "transfer.list", Args: bulkBody{Group: r.Query.Get("group")}}
	}
	var b bulkBody
	c := fakeprovider.Call{Operation: bulkTransfer.Name, Write: true, Key: r.Header.Get("Idempotency-Key"),
		KeyScope: r.Header.Get("Authorization"), Window: bulkTransfer.Window}
	if err := json.Unmarshal(r.Body, &b); err != nil {
		c.Answer = &fakeprovider.Answer{Status: http.StatusBadRequest}
	}
	c.Args = b
	return c
}

func (d *bulkDialect) Execute(tx *fakeprovider.Tx, c *fakeprovider.Call) fakeprovider.Answer {
	b := c.Args.(bulkBody)
	if !c.Write {
		body, err := json.Marshal(append([]string{}, d.groups[b.Group]...))
		if err != nil {
			return fakeprovider.Answer{Status: http.StatusInternalServerError}
		}
		return fakeprovider.Answer{Status: http.StatusOK, Body: body}
	}
	d.groups[b.Group] = append(d.groups[b.Group], b.Mark)
	tx.Effect(b.Mark)
	return fakeprovider.Answer{Status: http.StatusOK, Body: []byte(`{"note":"` + b.Note + `"}`), Keep: true}
}

func (d *bulkDialect) Replay(_ *fakeprovider.Tx, _ *fakeprovider.Call, saved fakeprovider.Saved) fakeprovider.Answer {
	return saved.Answer
}

func (d *bulkDialect) Refuse(_ *fakeprovider.Call, why fakeprovider.Refusal) fakeprovider.Answer {
	status := http.StatusServiceUnavailable
	if why == fakeprovider.RateLimited {
		status = http.StatusTooManyRequests
	}
	return fakeprovider.Answer{Status: status, Body: []byte("{}")}
}

func (d *bulkDialect) Finish(fakeprovider.Delivery, http.Header) {}

// Seed puts a transfer in place.
func (d *bulkDialect) Seed(_ *fakeprovider.Tx, object any) (string, error) {
	b := object.(bulkBody)
	d.groups[b.Group] = append(d.groups[b.Group], b.Mark)
	return b.Mark, nil
}

func (d *bulkDialect) Seeds() map[string]any { return map[string]any{"transfer": bulkBody{}} }

// poisoned is a codec that panics where a request says so.
type poisoned struct{ bulkCodec }

const poison = "poison"

func (p poisoned) Judge(x *httpadapter.Exchange) outbound.Verdict {
	if strings.Contains(string(x.Body), poison) {
		panic("a codec's bug in Judge")
	}
	return p.bulkCodec.Judge(x)
}

func (p poisoned) Find(ctx context.Context, get httpadapter.Get, l *outbound.Lookup) (outbound.Finding, error) {
	all, err := p.FindAll(ctx, get, []*outbound.Lookup{l})
	if err != nil {
		return outbound.Finding{}, err
	}
	return all[0], nil
}

func (p poisoned) FindAll(ctx context.Context, get httpadapter.Get, ls []*outbound.Lookup) ([]outbound.Finding, error) {
	for _, l := range ls {
		if strings.Contains(string(l.Message.Body), poison) {
			panic("a codec's bug in Find")
		}
	}
	return p.bulkCodec.FindAll(ctx, get, ls)
}
