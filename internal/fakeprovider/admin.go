package fakeprovider

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

const maxAdminBody = 1 << 20

// Admin returns the handler of the admin API, which the package comment
// describes. It has no authentication: serve it on the loopback interface.
func (f *Fake) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /faults", f.adminInject)
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) {
		list := f.Faults()
		out := make([]faultJSON, len(list))
		for i, x := range list {
			out[i] = toJSON(x)
		}
		reply(w, http.StatusOK, out)
	})
	mux.HandleFunc("DELETE /faults", func(w http.ResponseWriter, _ *http.Request) {
		f.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /effects", func(w http.ResponseWriter, _ *http.Request) {
		r := f.Report()
		reply(w, http.StatusOK, map[string]any{
			"effects": r.Effects, "total": r.Total, "duplicates": r.Duplicates, "requests": r.Requests,
		})
	})
	mux.HandleFunc("GET /requests", f.adminRequests)
	mux.HandleFunc("POST /advance", f.adminAdvance)
	mux.HandleFunc("POST /release", func(w http.ResponseWriter, _ *http.Request) {
		f.Release()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, _ *http.Request) {
		f.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /seed", f.adminSeed)
	return mux
}

// faultJSON is a Fault on the wire. It has no Until: POST /release ends waits.
type faultJSON struct {
	Kind       Kind     `json:"kind"`
	Operation  string   `json:"operation,omitempty"`
	Times      int      `json:"times,omitempty"`
	Skip       int      `json:"skip,omitempty"`
	Chance     float64  `json:"chance,omitempty"`
	Delay      duration `json:"delay,omitempty"`
	RetryAfter duration `json:"retry_after,omitempty"`
	Applied    bool     `json:"applied,omitempty"`
	Stored     bool     `json:"stored,omitempty"`
	Running    bool     `json:"running,omitempty"`
	Location   string   `json:"location,omitempty"`
	Size       int64    `json:"size,omitempty"`
}

func toJSON(f Fault) faultJSON {
	return faultJSON{f.Kind, f.Operation, f.Times, f.Skip, f.Chance, duration(f.Delay), duration(f.RetryAfter),
		f.Applied, f.Stored, f.Running, f.Location, f.Size}
}

func (j faultJSON) fault() Fault {
	return Fault{Kind: j.Kind, Operation: j.Operation, Times: j.Times, Skip: j.Skip, Chance: j.Chance,
		Delay: time.Duration(j.Delay), RetryAfter: time.Duration(j.RetryAfter),
		Applied: j.Applied, Stored: j.Stored, Running: j.Running, Location: j.Location, Size: j.Size}
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
		return fmt.Errorf(`duration %q: write one such as "1.5s" or "25h"`, s)
	}
	*d = duration(v)
	return nil
}

func (f *Fake) adminInject(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	var list []faultJSON
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		if !decode(w, body, &list) {
			return
		}
	} else {
		list = make([]faultJSON, 1)
		if !decode(w, body, &list[0]) {
			return
		}
	}
	faults := make([]Fault, len(list))
	for i, j := range list {
		faults[i] = j.fault()
	}
	if err := f.Inject(faults...); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, http.StatusOK, map[string]int{"armed": len(f.Faults())})
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

func (f *Fake) adminRequests(w http.ResponseWriter, r *http.Request) {
	log := f.Requests(r.URL.Query().Get("operation"))
	if s := r.URL.Query().Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			refuse(w, http.StatusBadRequest, "limit: write a number from 1")
			return
		}
		log = log[max(0, len(log)-n):]
	}
	out := make([]requestJSON, len(log))
	for i, e := range log {
		out[i] = requestJSON{At: e.At, Method: e.Method, Path: e.Path, Operation: e.Operation,
			BodyHash: hex.EncodeToString(e.BodyHash[:]), Delivery: e.Delivery, RequestID: e.RequestID,
			Status: e.Status, Replayed: e.Replayed, Fault: e.Fault}
		if e.KeyHash != [32]byte{} {
			out[i].KeyHash = hex.EncodeToString(e.KeyHash[:])
		}
	}
	reply(w, http.StatusOK, out)
}

func (f *Fake) adminAdvance(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	var in struct {
		Duration duration `json:"duration"`
	}
	if !decode(w, body, &in) {
		return
	}
	if in.Duration <= 0 {
		refuse(w, http.StatusBadRequest, `duration: the clock moves forward only, as by {"duration":"25h"}`)
		return
	}
	f.Advance(time.Duration(in.Duration))
	reply(w, http.StatusOK, map[string]time.Time{"now": f.Now()})
}

func (f *Fake) adminSeed(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	var in struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if !decode(w, body, &in) {
		return
	}
	seeds := map[string]any{}
	if s, ok := f.newDialect().(Seeder); ok {
		seeds = s.Seeds()
	}
	zero, ok := seeds[in.Type]
	if !ok {
		names := make([]string, 0, len(seeds))
		for name := range seeds {
			names = append(names, name)
		}
		slices.Sort(names)
		refuse(w, http.StatusBadRequest, fmt.Sprintf("type %q: this fake seeds %s", in.Type, strings.Join(names, ", ")))
		return
	}
	object := reflect.New(reflect.TypeOf(zero))
	if len(in.Object) > 0 && !decode(w, in.Object, object.Interface()) {
		return
	}
	id, err := f.Seed(object.Elem().Interface())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	reply(w, http.StatusOK, map[string]string{"id": id})
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAdminBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "the body is unreadable or over 1 MiB")
		return nil, false
	}
	return body, true
}

func decode(w http.ResponseWriter, body []byte, into any) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body is not the JSON expected here: "+err.Error())
		return false
	}
	return true
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]string{"error": message})
}
