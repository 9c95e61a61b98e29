package fakeprovider

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Notifier is a Dialect whose provider delivers webhooks. The engine calls
// Webhook from many goroutines at once.
type Notifier interface {
	// Register fills in what the provider makes for a new endpoint: its id, and
	// what its webhooks are checked with.
	Register(e *Endpoint, random func(n int, alphabet string) string) error
	// Webhook words one delivery of an event, signed at a time of the real clock.
	Webhook(e Event, to Endpoint, at time.Time) (Webhook, error)
}

// Endpoint is where webhooks go.
type Endpoint struct {
	// ID is the provider's own: "we_…" at Stripe, the webhook's id at PayPal.
	ID string
	// URL is an address of this machine. Required, but for a Handler, which it
	// defaults to http://127.0.0.1/webhooks for.
	URL string
	// Handler takes the webhooks in this process, at the URL's path. Nothing listens
	// then. Defaults to what listens at URL.
	Handler http.Handler
	// Base is the provider's URL as webhooks name it. Required.
	Base string
	// Events are the types to deliver; "charge.*" is a family. Empty is all.
	Events []string
	// Secret signs webhooks where the provider signs with a secret. Defaults to
	// one that the provider makes.
	Secret string
	// Authority is the certificate (PEM) that webhooks are checked with, where the
	// provider signs with a certificate.
	Authority string
	// Hold keeps new events back until Deliver. Defaults to delivering at once.
	Hold bool
	// Repeat is how often each event is delivered. Defaults to 1.
	Repeat int
	// Attempts is how often a delivery is tried that gets no 2xx. Defaults to 8.
	Attempts int
}

// Webhook is one delivery as it is sent.
type Webhook struct {
	Header http.Header
	Body   []byte
}

// DeliveryLog is one attempt to deliver a webhook.
type DeliveryLog struct {
	At       time.Time // on the provider's clock
	Endpoint string
	Event    string
	Type     string
	Attempt  int    // from 1
	Status   int    // of the answer; 0 for none
	Error    string // why there was none
}

// Order is how Deliver sorts the webhooks that wait.
type Order string

// The orders.
const (
	OldestFirst Order = "oldest_first"
	NewestFirst Order = "newest_first"
	Shuffled    Order = "shuffled" // by the fake's seed
)

// Bounds of webhooks.
const (
	maxEndpoints  = 16
	maxRepeat     = 100
	maxEventTypes = 64
)

// AddEndpoint starts to deliver webhooks of the events to come, and returns the
// endpoint with what the provider made for it.
func (f *Fake) AddEndpoint(e Endpoint) (Endpoint, error) {
	n, ok := f.newDialect().(Notifier)
	if !ok {
		return Endpoint{}, errors.New("this fake has no webhooks")
	}
	if err := e.check(); err != nil {
		return Endpoint{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed() {
		return Endpoint{}, errors.New("the fake was closed")
	}
	if len(f.outbox.boxes) >= maxEndpoints {
		return Endpoint{}, fmt.Errorf("there are %d webhook endpoints already: remove them first", maxEndpoints)
	}
	if err := n.Register(&e, f.outbox.random); err != nil {
		return Endpoint{}, err
	}
	m := &mailbox{Endpoint: e, client: f.outbox.client, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	if e.Handler != nil {
		m.receiver = newReceiver(e.Handler, f.outbox.client)
		m.client = m.receiver.client
	}
	f.outbox.boxes = append(f.outbox.boxes, m)
	f.working.Go(func() { f.deliverTo(m) })
	return e, nil
}

// check refuses an endpoint that cannot be, and sets the defaults.
func (e *Endpoint) check() error {
	if e.URL == "" && e.Handler != nil {
		e.URL = "http://127.0.0.1/webhooks"
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !loopback(u.Hostname()) {
		return errors.New("a webhook's url must be on this machine: write it as http://127.0.0.1:8080/webhooks")
	}
	if base, err := url.Parse(e.Base); err != nil || len(e.Base) > 255 || base.Host == "" || strings.HasSuffix(e.Base, "/") {
		return errors.New("base must be the provider's URL without a slash at its end, as http://127.0.0.1:12112")
	}
	if e.Repeat == 0 {
		e.Repeat = 1
	}
	if e.Attempts == 0 {
		e.Attempts = len(retryDelays) + 1
	}
	switch {
	case e.Repeat < 1 || e.Repeat > maxRepeat:
		return fmt.Errorf("repeat must be between 1 and %d", maxRepeat)
	case e.Attempts < 1 || e.Attempts > len(retryDelays)+1:
		return fmt.Errorf("attempts must be between 1 and %d", len(retryDelays)+1)
	case len(e.Events) > maxEventTypes || slices.ContainsFunc(e.Events, func(t string) bool { return t == "" || len(t) > 100 }):
		return fmt.Errorf("events may name %d types of 1 to 100 characters", maxEventTypes)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Endpoints returns the endpoints, oldest first.
func (f *Fake) Endpoints() []Endpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Endpoint, len(f.outbox.boxes))
	for i, m := range f.outbox.boxes {
		out[i] = m.Endpoint
	}
	return out
}

// RemoveEndpoints ends all deliveries and forgets what waits.
func (f *Fake) RemoveEndpoints() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.outbox.boxes {
		close(m.gone)
	}
	f.outbox.boxes = nil
}

// publish keeps an event and posts it to the endpoints. The lock is held.
func (f *Fake) publish(e Event) {
	f.events.add(e)
	for _, m := range f.outbox.boxes {
		if m.wants(e.Type) {
			f.post(m, e, m.Repeat, m.Hold)
		}
	}
}

// post makes an event wait for its delivery. The lock is held.
func (f *Fake) post(m *mailbox, e Event, times int, hold bool) {
	p := parcel{event: e}
	if !hold {
		p.due = f.now()
	}
	for range times {
		if len(m.waiting) >= f.outbox.max {
			m.waiting[0] = nil
			m.waiting = m.waiting[1:]
			m.dropped++
		}
		next := p
		m.waiting = append(m.waiting, &next)
	}
	m.nudge()
}

// Deliver makes every webhook due that waits, held back or after a failure, in
// an order. It returns how many there are.
func (f *Fake) Deliver(order Order) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, now := 0, f.now()
	for _, m := range f.outbox.boxes {
		switch order {
		case NewestFirst:
			slices.Reverse(m.waiting)
		case Shuffled:
			f.luck.Shuffle(len(m.waiting), func(i, j int) { m.waiting[i], m.waiting[j] = m.waiting[j], m.waiting[i] })
		case OldestFirst:
		}
		for _, p := range m.waiting {
			p.due = now
		}
		n += len(m.waiting)
		m.nudge()
	}
	return n
}

// DeliverAgain delivers one event, by its id, times more to every endpoint. It
// returns how many deliveries that makes.
func (f *Fake) DeliverAgain(event string, times int) (int, error) {
	if times < 1 || times > maxRepeat {
		return 0, fmt.Errorf("times must be between 1 and %d", maxRepeat)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.events.all()
	i := slices.IndexFunc(all, func(e Event) bool { return e.ID == event })
	if i < 0 {
		return 0, fmt.Errorf("there is no event %q, or it is forgotten", clip(event))
	}
	for _, m := range f.outbox.boxes {
		f.post(m, all[i], times, false)
	}
	return times * len(f.outbox.boxes), nil
}

// Deliveries returns the last attempts, oldest first, at most Options.MaxLog.
func (f *Fake) Deliveries() []DeliveryLog {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.outbox.log.all())
}
