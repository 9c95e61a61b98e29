package fakeprovider

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// retryDelays, on the provider's clock, are the waits after failed attempts. Both
// providers deliver again for about three days, with growing waits.
var retryDelays = [...]time.Duration{
	5 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 41 * time.Hour,
}

// parcel is an event on its way to an endpoint.
type parcel struct {
	event   Event
	due     time.Time // on the provider's clock; zero is held back
	attempt int       // attempts so far
}

// mailbox is an endpoint with what waits for it.
type mailbox struct {
	Endpoint
	client   *http.Client
	receiver *receiver // of the Handler, nil for none
	waiting  []*parcel
	dropped  int
	wake     chan struct{} // has room for one
	gone     chan struct{}
}

func (m *mailbox) nudge() {
	select {
	case m.wake <- struct{}{}:
	default: // it is going to look anyway
	}
}

func (m *mailbox) wants(typ string) bool {
	return len(m.Events) == 0 || slices.ContainsFunc(m.Events, func(want string) bool {
		family, all := strings.CutSuffix(want, "*")
		return want == typ || all && strings.HasPrefix(typ, family)
	})
}

// outbox holds the endpoints. The fake's lock guards it.
type outbox struct {
	client    *http.Client
	max       int
	boxes     []*mailbox
	log       *ring[DeliveryLog]
	delivered int // attempts so far
	names     *rand.Rand
}

func newOutbox(o *Options) *outbox {
	transport := o.Webhooks
	if transport == nil {
		transport = &http.Transport{DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, IdleConnTimeout: 10 * time.Second}
	}
	return &outbox{
		client: &http.Client{
			Transport:     transport,
			Timeout:       10 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		max:   o.MaxLog,
		log:   &ring[DeliveryLog]{max: o.MaxLog},
		names: rand.New(rand.NewPCG(o.Seed, 3)),
	}
}

// forget drops what waits and the log. Endpoints stay.
func (o *outbox) forget() {
	o.log, o.delivered = &ring[DeliveryLog]{max: o.max}, 0
	for _, m := range o.boxes {
		m.waiting, m.dropped = nil, 0
	}
}

func (o *outbox) random(n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[o.names.IntN(len(alphabet))]
	}
	return string(b)
}

// deliverTo delivers what is due, one after the other, until the endpoint is
// removed or the fake closed.
func (f *Fake) deliverTo(m *mailbox) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f.working.Go(func() { // ends an attempt that is going on
		select {
		case <-m.gone:
		case <-f.closed:
		}
		cancel()
	})
	for ctx.Err() == nil {
		p, wait := f.nextParcel(m)
		if p != nil {
			f.attempt(ctx, m, p)
			continue
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-timer:
		case <-m.wake:
		case <-ctx.Done():
		}
	}
	m.client.CloseIdleConnections()
	if m.receiver != nil {
		m.receiver.close()
	}
}

// nextParcel takes the first parcel that is due. Without one it returns how long
// the next one waits, 0 if none does.
func (f *Fake) nextParcel(m *mailbox) (*parcel, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	var wait time.Duration
	for i, p := range m.waiting {
		if p.due.IsZero() {
			continue
		}
		left := p.due.Sub(now)
		if left <= 0 {
			m.waiting = slices.Delete(m.waiting, i, i+1)
			return p, 0
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return nil, wait
}

// attempt delivers a parcel once, and lets it wait again if that failed.
func (f *Fake) attempt(ctx context.Context, m *mailbox, p *parcel) {
	p.attempt++
	status, err := f.transmit(ctx, m, p)
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	entry := DeliveryLog{At: f.now(), Endpoint: m.ID, Event: p.event.ID, Type: p.event.Type, Attempt: p.attempt, Status: status}
	if err != nil {
		entry.Error = clip(err.Error())
	}
	f.outbox.log.add(entry)
	f.outbox.delivered++
	if (err != nil || status/100 != 2) && p.attempt < m.Attempts {
		p.due = f.now().Add(retryDelays[p.attempt-1])
		m.waiting = append(m.waiting, p)
	}
	f.changed()
}

func (f *Fake) transmit(ctx context.Context, m *mailbox, p *parcel) (int, error) {
	f.mu.Lock()
	n, ok := f.dialect.(Notifier)
	f.mu.Unlock()
	if !ok {
		return 0, errors.New("this fake has no webhooks")
	}
	w, err := n.Webhook(p.event, m.Endpoint, f.clock())
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(w.Body))
	if err != nil {
		return 0, err
	}
	req.Header = w.Header
	resp, err := m.client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
