// Package fakeincident is a service that opens incidents from alerts, over REST,
// GraphQL and, with the server in module grpcadapter, gRPC. Each entrance
// deduplicates by a key. Whether they remember keys together is the test's choice.
package fakeincident

import (
	"errors"
	"fmt"
	"sync"
)

// The entrances.
const (
	REST    = "rest"
	GraphQL = "graphql"
	GRPC    = "grpc"
)

// Alert is what an incident is opened from.
type Alert struct {
	Alert    string `json:"alert"`
	Service  string `json:"service"`
	Severity string `json:"severity"`
}

// Incident is what was opened.
type Incident struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Alert    string `json:"alert"`
	Service  string `json:"service"`
	Severity string `json:"severity"`
}

// The errors of Open. None of them had an effect; the first two speak of another
// request with the key.
var (
	ErrMismatch = errors.New("the key was used for another alert")
	ErrInFlight = errors.New("the key's first request is processed")
	ErrNoKey    = errors.New("the key is missing")
	ErrNoAlert  = errors.New("the alert is missing")
)

// Service holds incidents. It is safe for concurrent use.
type Service struct {
	joined bool

	mu      sync.Mutex
	opened  []Incident
	keys    map[string]*stored
	seen    map[string][]string // keys by entrance, in order
	lost    map[string]int      // answers still to be lost, by entrance
	entered chan<- string
	release <-chan struct{}
}

type stored struct {
	alert    Alert
	incident Incident
	done     bool
}

// New returns a service without incidents. joined says that the entrances remember
// keys together.
func New(joined bool) *Service {
	return &Service{joined: joined, keys: map[string]*stored{}, seen: map[string][]string{}, lost: map[string]int{}}
}

// LoseNext makes the next n answers of an entrance get lost after their effect.
func (s *Service) LoseNext(entrance string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[entrance] = n
}

// Hold makes every request, once it is there, send its entrance's name to entered and
// wait until release is closed.
func (s *Service) Hold(entered chan<- string, release <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered, s.release = entered, release
}

// Incidents returns what was opened: the count of effects.
func (s *Service) Incidents() []Incident {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Incident(nil), s.opened...)
}

// Keys returns the keys that came in by an entrance, in order.
func (s *Service) Keys(entrance string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen[entrance]...)
}

// Open opens an incident, or gives the one that the key opened before. lost says that
// the entrance must not answer.
func (s *Service) Open(entrance, key string, alert Alert) (incident Incident, lost bool, err error) {
	entry, err := s.begin(entrance, key, alert)
	if err != nil {
		return Incident{}, false, err
	}
	s.mu.Lock()
	entered, release := s.entered, s.release
	s.mu.Unlock()
	if entered != nil {
		entered <- entrance
		<-release
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !entry.done {
		entry.done = true
		entry.incident = Incident{
			ID: fmt.Sprintf("inc_%d", len(s.opened)+1), Status: "triggered",
			Alert: alert.Alert, Service: alert.Service, Severity: alert.Severity,
		}
		s.opened = append(s.opened, entry.incident)
	}
	if s.lost[entrance] > 0 {
		s.lost[entrance]--
		lost = true
	}
	return entry.incident, lost, nil
}

// begin finds or makes the key's entry.
func (s *Service) begin(entrance, key string, alert Alert) (*stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case key == "":
		return nil, ErrNoKey
	case alert.Alert == "":
		return nil, ErrNoAlert
	}
	s.seen[entrance] = append(s.seen[entrance], key)
	place := key
	if !s.joined {
		place = entrance + " " + key
	}
	entry := s.keys[place]
	switch {
	case entry == nil:
		entry = &stored{alert: alert}
		s.keys[place] = entry
	case entry.alert != alert:
		return nil, ErrMismatch
	case !entry.done:
		return nil, ErrInFlight
	}
	return entry, nil
}
