package fakeprovider

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (f *Fake) adminOpenAPI(adminCall, none) (json.RawMessage, error) { return openAPI, nil }

type operationsJSON struct {
	Operations []string `json:"operations"`
}

func (f *Fake) adminOperations(adminCall, none) (operationsJSON, error) {
	return operationsJSON{append([]string{}, f.Operations()...)}, nil
}

type effectsJSON struct {
	Effects    map[string]int `json:"effects"`
	Total      int            `json:"total"`
	Duplicates int            `json:"duplicates"`
	Requests   int            `json:"requests"`
}

func (f *Fake) adminEffects(adminCall, none) (effectsJSON, error) {
	r := f.Report()
	return effectsJSON(r), nil
}

// effectJSON is an Effect on the wire.
type effectJSON struct {
	At        time.Time `json:"at"`
	Operation string    `json:"operation"`
	Object    string    `json:"object"`
	KeyHash   string    `json:"key_sha256,omitempty"`
}

func (f *Fake) adminEffectLog(c adminCall, _ none) ([]effectJSON, error) {
	operation, limit, err := f.narrow(c.query)
	if err != nil {
		return nil, err
	}
	out := []effectJSON{}
	for _, e := range f.EffectList() {
		if operation == "" || e.Operation == operation {
			out = append(out, effectJSON{e.At, e.Operation, e.Object, hashText(e.KeyHash)})
		}
	}
	return last(out, limit), nil
}

// requestJSON is a LogEntry on the wire.
type requestJSON struct {
	At        time.Time `json:"at"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Operation string    `json:"operation"`
	KeyHash   string    `json:"key_sha256,omitempty"`
	BodyHash  string    `json:"body_sha256"`
	Delivery  int       `json:"delivery,omitempty"`
	RequestID string    `json:"request_id"`
	Status    int       `json:"status"`
	Replayed  bool      `json:"replayed"`
	Fault     Kind      `json:"fault,omitempty"`
}

func (f *Fake) adminRequests(c adminCall, _ none) ([]requestJSON, error) {
	operation, limit, err := f.narrow(c.query)
	if err != nil {
		return nil, err
	}
	log := last(f.Requests(operation), limit)
	out := make([]requestJSON, len(log))
	for i, e := range log {
		out[i] = requestJSON{At: e.At, Method: e.Method, Path: e.Path, Operation: e.Operation,
			KeyHash: hashText(e.KeyHash), BodyHash: hex.EncodeToString(e.BodyHash[:]), Delivery: e.Delivery,
			RequestID: e.RequestID, Status: e.Status, Replayed: e.Replayed, Fault: e.Fault}
	}
	return out, nil
}

// narrow reads operation and limit. A limit of 0 is none.
func (f *Fake) narrow(query url.Values) (operation string, limit int, err error) {
	operation = query.Get("operation")
	if operation != "" && !f.Knows(operation) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return "", 0, f.unknownOperation(operation)
	}
	if s := query.Get("limit"); s != "" {
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 {
			return "", 0, errors.New("limit: write a number from 1")
		}
	}
	return operation, limit, nil
}

// last returns the last n items, all of them where n is 0.
func last[T any](items []T, n int) []T {
	if n == 0 {
		return items
	}
	return items[max(0, len(items)-n):]
}

func hashText(h [32]byte) string {
	if h == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(h[:])
}

type clockJSON struct {
	Now time.Time `json:"now"`
}

func (f *Fake) adminClock(adminCall, none) (clockJSON, error) { return clockJSON{f.Now()}, nil }

type advanceJSON struct {
	Duration duration `json:"duration"`
}

// maxAdvance keeps the clock within times that JSON can carry.
const maxAdvance = 100 * 365 * 24 * time.Hour

func (f *Fake) adminAdvance(_ adminCall, in advanceJSON) (clockJSON, error) {
	d := time.Duration(in.Duration)
	if d <= 0 {
		return clockJSON{}, errors.New(`duration: the clock moves forward only, as by {"duration":"25h"}`)
	}
	if f.Now().Add(d).Sub(f.clock()) > maxAdvance {
		return clockJSON{}, errors.New("duration: the clock moves 100 years at most; POST /reset brings it back")
	}
	f.Advance(d)
	return clockJSON{f.Now()}, nil
}

type settingsJSON struct {
	Strict *bool `json:"strict"`
}

func (f *Fake) adminSettings(adminCall, none) (settingsJSON, error) {
	now := f.Strict()
	return settingsJSON{&now}, nil
}

func (f *Fake) adminSet(_ adminCall, in settingsJSON) (settingsJSON, error) {
	if in.Strict == nil {
		return settingsJSON{}, errors.New(`strict is missing: write {"strict":true} or {"strict":false}`)
	}
	f.SetStrict(*in.Strict)
	return in, nil
}

type seedsJSON struct {
	// Types are the zero values of what can be seeded, by type.
	Types map[string]any `json:"types"`
}

func (f *Fake) adminSeeds(adminCall, none) (seedsJSON, error) {
	if s, ok := f.newDialect().(Seeder); ok {
		return seedsJSON{s.Seeds()}, nil
	}
	return seedsJSON{map[string]any{}}, nil
}

type seedJSON struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object,omitempty"`
}

type idJSON struct {
	ID string `json:"id"`
}

func (f *Fake) adminSeed(_ adminCall, in seedJSON) (idJSON, error) {
	seeds, _ := f.adminSeeds(adminCall{}, none{})
	zero, ok := seeds.Types[in.Type]
	if !ok {
		names := slices.Sorted(maps.Keys(seeds.Types))
		return idJSON{}, fmt.Errorf("type %q: this fake seeds %s", clip(in.Type), strings.Join(names, ", "))
	}
	object := reflect.New(reflect.TypeOf(zero))
	if len(in.Object) > 0 {
		if err := decode(in.Object, object.Interface()); err != nil {
			return idJSON{}, err
		}
	}
	id, err := f.Seed(object.Elem().Interface())
	return idJSON{id}, err
}

func (f *Fake) adminReset(adminCall, none) (none, error) {
	f.Reset()
	return none{}, nil
}
