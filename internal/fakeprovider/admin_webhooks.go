package fakeprovider

import (
	"errors"
	"fmt"
	"time"
)

// webhookJSON asks for an Endpoint.
type webhookJSON struct {
	URL      string   `json:"url"`
	Base     string   `json:"base,omitempty"`
	Events   []string `json:"events,omitempty"`
	Secret   string   `json:"secret,omitempty"`
	Hold     bool     `json:"hold,omitempty"`
	Repeat   int      `json:"repeat,omitempty"`
	Attempts int      `json:"attempts,omitempty"`
}

// endpointJSON is an Endpoint on the wire, with what waits for it.
type endpointJSON struct {
	ID        string   `json:"id"`
	URL       string   `json:"url"`
	Base      string   `json:"base"`
	Events    []string `json:"events,omitempty"`
	Secret    string   `json:"secret,omitempty"`
	Authority string   `json:"certificate_authority,omitempty"`
	Hold      bool     `json:"hold"`
	Repeat    int      `json:"repeat"`
	Attempts  int      `json:"attempts"`
	Waiting   int      `json:"waiting"`
	Dropped   int      `json:"dropped"`
}

func endpointToJSON(e Endpoint) endpointJSON {
	return endpointJSON{ID: e.ID, URL: e.URL, Base: e.Base, Events: e.Events, Secret: e.Secret, Authority: e.Authority,
		Hold: e.Hold, Repeat: e.Repeat, Attempts: e.Attempts}
}

func (f *Fake) adminAddWebhook(c adminCall, in webhookJSON) (endpointJSON, error) {
	e := Endpoint{URL: in.URL, Base: in.Base, Events: in.Events, Secret: in.Secret, Hold: in.Hold, Repeat: in.Repeat, Attempts: in.Attempts}
	if e.Base == "" {
		e.Base = "http://" + c.host
	}
	e, err := f.AddEndpoint(e)
	if err != nil {
		return endpointJSON{}, err
	}
	return endpointToJSON(e), nil
}

func (f *Fake) adminWebhooks(adminCall, none) ([]endpointJSON, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]endpointJSON, len(f.outbox.boxes))
	for i, m := range f.outbox.boxes {
		out[i] = endpointToJSON(m.Endpoint)
		out[i].Waiting, out[i].Dropped = len(m.waiting), m.dropped
	}
	return out, nil
}

func (f *Fake) adminRemoveWebhooks(adminCall, none) (none, error) {
	f.RemoveEndpoints()
	return none{}, nil
}

// deliverJSON delivers one event again, or all that wait.
type deliverJSON struct {
	Event string `json:"event,omitempty"`
	Times int    `json:"times,omitempty"`
	Order Order  `json:"order,omitempty"`
}

type dueJSON struct {
	Due int `json:"due"`
}

func (f *Fake) adminDeliver(_ adminCall, in deliverJSON) (dueJSON, error) {
	switch {
	case in.Event != "" && in.Order != "":
		return dueJSON{}, errors.New("give event, to deliver one again, or order, to deliver all that wait")
	case in.Event != "":
		if in.Times == 0 {
			in.Times = 1
		}
		n, err := f.DeliverAgain(in.Event, in.Times)
		return dueJSON{n}, err
	case in.Times != 0:
		return dueJSON{}, errors.New("times goes with event; an endpoint's repeat is for all events")
	}
	switch in.Order {
	case "":
		in.Order = OldestFirst
	case OldestFirst, NewestFirst, Shuffled:
	default:
		return dueJSON{}, fmt.Errorf("order %q: write oldest_first, newest_first or shuffled", clip(string(in.Order)))
	}
	return dueJSON{f.Deliver(in.Order)}, nil
}

// deliveryJSON is a DeliveryLog on the wire.
type deliveryJSON struct {
	At       time.Time `json:"at"`
	Endpoint string    `json:"endpoint"`
	Event    string    `json:"event"`
	Type     string    `json:"type"`
	Attempt  int       `json:"attempt"`
	Status   int       `json:"status"`
	Error    string    `json:"error,omitempty"`
}

func (f *Fake) adminDeliveries(c adminCall, _ none) ([]deliveryJSON, error) {
	_, limit, err := f.narrow(c.query)
	if err != nil {
		return nil, err
	}
	log := last(f.Deliveries(), limit)
	out := make([]deliveryJSON, len(log))
	for i, d := range log {
		out[i] = deliveryJSON(d)
	}
	return out, nil
}
