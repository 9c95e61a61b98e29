package fakeprovider

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

const maxAdminBody = 1 << 20

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the description of the admin API, an OpenAPI 3.1 document in
// JSON. GET /openapi.json serves it.
func OpenAPI() []byte { return slices.Clone(openAPI) }

// Admin returns the handler of the admin API. It has no authentication: serve it
// on the loopback interface.
func (f *Fake) Admin() http.Handler {
	routes := map[string]map[string]adminRoute{} // by path and method
	for _, r := range adminRoutes() {
		if routes[r.path] == nil {
			routes[r.path] = map[string]adminRoute{}
		}
		routes[r.path][r.method] = r
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods := routes[r.URL.Path]
		rt, ok := methods[r.Method]
		switch {
		case methods == nil:
			refuse(w, &adminError{http.StatusNotFound, "no such path: GET openapi.json lists them"})
		case !ok:
			allowed := slices.Sorted(maps.Keys(methods))
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			refuse(w, &adminError{http.StatusMethodNotAllowed, r.URL.Path + " takes " + strings.Join(allowed, ", ")})
		default:
			f.administer(w, r, rt)
		}
	})
}

// adminRoutes are all endpoints of the admin API. openapi.json describes them.
func adminRoutes() []adminRoute {
	return []adminRoute{
		on("GET", "/openapi.json", (*Fake).adminOpenAPI),
		on("GET", "/operations", (*Fake).adminOperations),
		on("POST", "/faults", (*Fake).adminInject),
		on("GET", "/faults", (*Fake).adminFaults),
		on("DELETE", "/faults", (*Fake).adminClearFaults),
		on("POST", "/release", (*Fake).adminRelease),
		on("GET", "/effects", (*Fake).adminEffects),
		on("GET", "/effects/log", (*Fake).adminEffectLog, "operation", "limit"),
		on("GET", "/requests", (*Fake).adminRequests, "operation", "limit"),
		on("GET", "/clock", (*Fake).adminClock),
		on("POST", "/advance", (*Fake).adminAdvance),
		on("GET", "/settings", (*Fake).adminSettings),
		on("PATCH", "/settings", (*Fake).adminSet),
		on("GET", "/seed", (*Fake).adminSeeds),
		on("POST", "/seed", (*Fake).adminSeed),
		on("POST", "/reset", (*Fake).adminReset),
		on("POST", "/webhooks", (*Fake).adminAddWebhook),
		on("GET", "/webhooks", (*Fake).adminWebhooks),
		on("DELETE", "/webhooks", (*Fake).adminRemoveWebhooks),
		on("POST", "/deliver", (*Fake).adminDeliver),
		on("GET", "/deliveries", (*Fake).adminDeliveries, "limit"),
	}
}

// adminRoute is one endpoint.
type adminRoute struct {
	method, path string
	query        []string     // the names of its parameters
	in, out      reflect.Type // of the JSON bodies; none where there is none
	serve        func(f *Fake, c adminCall, body []byte) (any, error)
}

// none is a body that there is not.
type none struct{}

// adminCall is a request to the admin API.
type adminCall struct {
	host  string
	query url.Values
}

// on makes a route of a function that takes an In and answers with an Out.
func on[In, Out any](method, path string, serve func(*Fake, adminCall, In) (Out, error), query ...string) adminRoute {
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	return adminRoute{method, path, query, in, out, func(f *Fake, c adminCall, body []byte) (any, error) {
		var v In
		if in != reflect.TypeFor[none]() {
			if err := decode(body, &v); err != nil {
				return nil, err
			}
		}
		return serve(f, c, v)
	}}
}

func (f *Fake) administer(w http.ResponseWriter, r *http.Request, rt adminRoute) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, errors.New("the query is malformed: escape it"))
		return
	}
	for name := range query {
		if !slices.Contains(rt.query, name) {
			refuse(w, fmt.Errorf("parameter %q: %s takes %q", clip(name), rt.path, rt.query))
			return
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
	if err != nil {
		refuse(w, &adminError{http.StatusRequestEntityTooLarge, "the body is unreadable or over 1 MiB"})
		return
	}
	out, err := rt.serve(f, adminCall{r.Host, query}, body)
	switch {
	case err != nil:
		refuse(w, err)
	case rt.out == reflect.TypeFor[none]():
		w.WriteHeader(http.StatusNoContent)
	default:
		reply(w, http.StatusOK, out)
	}
}

// adminError is a refusal with a status other than 400.
type adminError struct {
	status int
	text   string
}

func (e *adminError) Error() string { return e.text }

// errorJSON is every answer that is no success.
type errorJSON struct {
	Error string `json:"error"`
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	if e, ok := errors.AsType[*adminError](err); ok {
		status = e.status
	}
	reply(w, status, errorJSON{err.Error()})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

func decode(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the value")
		}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fmt.Errorf("the body is not the JSON expected here (GET openapi.json): %w", err)
	}
	return nil
}

// duration is a time.Duration written as "1.5s".
type duration time.Duration

func (d duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

func (d *duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return errors.New(`a duration is a string such as "1.5s" or "25h"`)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`duration %q: write one such as "1.5s" or "25h"`, clip(s))
	}
	*d = duration(v)
	return nil
}
