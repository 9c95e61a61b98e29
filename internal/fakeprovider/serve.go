package fakeprovider

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

var errNoSeeds = errors.New("this fake has no seeds")

// visit is one request on its way through the engine.
type visit struct {
	call      *Call
	dialect   Dialect // that recognised it, and words what is no execution
	fault     Fault
	entry     *LogEntry
	requestID string
	original  string
	replayed  bool
}

// ServeHTTP answers a request, or loses it as a fault says.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dialect, serial, open := f.enter()
	if !open {
		drop()
	}
	defer f.handlers.Done()
	reused := countRequest(r.Context())
	body, err := readBody(r, f.opts.MaxBody)
	if err != nil {
		drop() // the request never arrived whole
	}
	v := f.recognise(dialect, &Request{ID: dialect.RequestID(serial), Host: r.Host, Method: r.Method, Path: r.URL.Path,
		Query: r.URL.Query(), Header: r.Header, Body: body})
	if a, done := f.arrive(v, reused); done {
		f.send(w, v, a)
		return
	}
	f.meet(w, r, v)
}

// readBody reads a body, and of one that is larger than limit a byte more.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength >= 0 && r.ContentLength <= limit {
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	return io.ReadAll(io.LimitReader(r.Body, limit+1))
}

// recognise reads what a request asks for. No lock is held.
func (f *Fake) recognise(dialect Dialect, req *Request) *visit {
	var call Call
	why := Refusal("")
	if int64(len(req.Body)) > f.opts.MaxBody {
		why = TooLarge
	} else if e := req.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		why = UnreadableEncoding
	}
	if why == "" {
		call = dialect.Recognise(req)
	}
	call.Request = req
	if why != "" {
		a := dialect.Refuse(&call, why)
		call.Answer = &a
	}
	return &visit{call: &call, dialect: dialect, requestID: req.ID, entry: &LogEntry{
		Method: clip(req.Method), Path: clip(req.Path), Operation: call.Operation, RequestID: req.ID,
		KeyHash: hashKey(call.Key), BodyHash: sha256.Sum256(req.Body),
	}}
}

// arrive logs a request and takes its fault. A request that meets none is
// performed at once: the answer and true.
func (f *Fake) arrive(v *visit, reused bool) (Answer, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v.fault = f.faults.take(v.call, reused, f.luck)
	if v.fault.Kind.holds() && len(f.held) >= maxHeld {
		a := v.dialect.Refuse(v.call, MemoryFull)
		v.fault, v.call.Answer = Fault{}, &a
	}
	v.entry.At, v.entry.Fault = f.now(), v.fault.Kind
	f.ledger.arrive(v.entry, v.call.Key != "")
	f.changed()
	if v.fault.Kind != "" {
		return Answer{}, false
	}
	a := f.performLocked(v)
	v.entry.Status, v.entry.Replayed = a.Status, v.replayed
	return a, true
}

// clip bounds what the log keeps of a client's text.
func clip(s string) string {
	const most = 256
	if len(s) > most {
		return s[:most]
	}
	return s
}

// meet performs the request as its fault says.
func (f *Fake) meet(w http.ResponseWriter, r *http.Request, v *visit) {
	switch v.fault.Kind {
	case DropBeforeApply, ResetReused:
		drop()
	case DropAfterApply:
		f.perform(v)
		drop()
	case LateApply:
		f.later(v)
		drop()
	case Hang:
		if v.fault.Applied {
			f.perform(v)
		}
		f.mu.Lock()
		h := f.hold(v.fault)
		f.mu.Unlock()
		f.wait(r.Context(), h)
		drop()
	case SlowApply:
		a, ok := f.performSlowly(v)
		if !ok {
			drop()
		}
		f.send(w, v, a)
	case Truncate, Oversized, Empty:
		f.distort(w, v, f.perform(v))
	default:
		f.instead(w, v)
	}
}

// drop closes the connection without an answer. It does not return.
func drop() { panic(http.ErrAbortHandler) }

// perform takes the request through the key layer at once.
func (f *Fake) perform(v *visit) Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.performLocked(v)
}

func (f *Fake) performLocked(v *visit) Answer {
	if a, done := f.begin(v); done {
		return a
	}
	return f.execute(v)
}

// performSlowly holds the key while the fault lasts. It reports false if the
// fake was closed before the request was performed.
func (f *Fake) performSlowly(v *visit) (Answer, bool) {
	f.mu.Lock()
	a, done := f.begin(v)
	if done {
		f.mu.Unlock()
		return a, true
	}
	h := f.hold(v.fault)
	f.mu.Unlock()
	open := f.wait(context.Background(), h)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !open {
		return Answer{}, false
	}
	return f.execute(v), true
}

// later performs the request when the fault's wait is over.
func (f *Fake) later(v *visit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed() {
		return
	}
	if v.fault.Running {
		if _, done := f.begin(v); done {
			return
		}
	}
	h := f.hold(v.fault)
	f.working.Go(func() {
		switch {
		case !f.wait(context.Background(), h):
		case v.fault.Running:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.execute(v)
		default:
			f.perform(v)
		}
	})
}

// begin asks the key layer. It returns an answer and true if there is nothing
// to execute; otherwise the key is held. The lock is held.
func (f *Fake) begin(v *visit) (Answer, bool) {
	c := v.call
	if c.Answer != nil {
		return *c.Answer, true
	}
	if c.Key == "" {
		if f.strict && c.TakesKey {
			return f.dialect.Refuse(c, KeyMissing), true
		}
		return Answer{}, false
	}
	now := f.now()
	e := f.keys.get(c, now)
	switch {
	case e == nil:
		if !f.keys.start(c, now, v.requestID) {
			return f.dialect.Refuse(c, MemoryFull), true
		}
		return Answer{}, false
	case e.differs(c):
		return f.dialect.Refuse(c, Mismatch), true
	case e.running:
		return f.dialect.Refuse(c, InFlightConflict), true
	}
	v.replayed, v.original = true, e.saved.RequestID
	return f.dialect.Replay(&Tx{Now: now, RequestID: v.requestID, fake: f, call: c}, c, e.saved), true
}

// execute runs the operation and saves or forgets its key. The lock is held.
func (f *Fake) execute(v *visit) Answer {
	c := v.call
	v.original = v.requestID
	a := f.dialect.Execute(&Tx{Now: f.now(), RequestID: v.requestID, fake: f, call: c}, c)
	if c.Key != "" {
		f.keys.finish(c, a)
	}
	f.changed()
	return a
}

// instead gives another answer than the request's own.
func (f *Fake) instead(w http.ResponseWriter, v *visit) {
	fault := v.fault
	if fault.Applied {
		f.perform(v)
	}
	v.replayed, v.original = false, ""
	a := f.faultAnswer(v)
	if fault.Stored && v.call.KeepsFailures && v.call.Key != "" {
		f.mu.Lock()
		if f.keys.overwrite(v.call, f.now(), v.requestID, a) {
			v.original = v.requestID
		}
		f.mu.Unlock()
	}
	if fault.RetryAfter > 0 {
		a.Header = maps.Clone(a.Header)
		if a.Header == nil {
			a.Header = http.Header{}
		}
		a.Header.Set("Retry-After", strconv.Itoa(int((fault.RetryAfter+time.Second-1)/time.Second)))
	}
	f.send(w, v, a)
}

func (f *Fake) faultAnswer(v *visit) Answer {
	refusals := map[Kind]Refusal{
		Status500: Internal, Status503: Unavailable, Status424: FailedDependency, RateLimit: RateLimited,
		LockTimeout: LockTimedOut, Unauthorized: NotAuthenticated, InFlight: InFlightConflict,
	}
	switch v.fault.Kind {
	case HTML502:
		return Answer{Status: http.StatusBadGateway, Header: http.Header{"Content-Type": {"text/html"}},
			Body: []byte("<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n")}
	case Redirect:
		to := v.fault.Location
		if to == "" {
			to = "/redirected"
		}
		return Answer{Status: http.StatusFound, Header: http.Header{"Location": {to}, "Content-Type": {"text/html"}}}
	}
	return v.dialect.Refuse(v.call, refusals[v.fault.Kind])
}

// header puts the answer's headers into w and notes the answer in the log, where
// arrive has not.
func (f *Fake) header(w http.ResponseWriter, v *visit, a Answer) {
	h := w.Header()
	for name, values := range a.Header {
		h[name] = slices.Clone(values)
	}
	if v.fault.Kind != "" {
		f.mu.Lock()
		v.entry.Status, v.entry.Replayed = a.Status, v.replayed
		f.mu.Unlock()
	}
	if h.Get("Date") == "" { // net/http would tell this machine's time
		h.Set("Date", v.entry.At.Format(http.TimeFormat))
	}
	if v.fault.Kind == HTML502 {
		return // a proxy knows none of the provider's headers
	}
	if h.Get("Content-Type") == "" && a.Status != http.StatusNoContent {
		h.Set("Content-Type", "application/json")
	}
	v.dialect.Finish(Delivery{Call: v.call, RequestID: v.requestID, Status: a.Status, Original: v.original, Replayed: v.replayed}, h)
}

func (f *Fake) send(w http.ResponseWriter, v *visit, a Answer) {
	f.header(w, v, a)
	if a.Status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // a client that has gone is no error of the provider
}

// distort sends the answer cut, padded or empty.
func (f *Fake) distort(w http.ResponseWriter, v *visit, a Answer) {
	f.header(w, v, a)
	switch v.fault.Kind {
	case Empty:
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(a.Status)
	case Truncate:
		w.Header().Set("Content-Length", strconv.Itoa(max(len(a.Body), 2)))
		w.WriteHeader(a.Status)
		_, _ = w.Write(a.Body[:len(a.Body)/2])
		_ = http.NewResponseController(w).Flush()
		drop()
	case Oversized:
		size := v.fault.Size
		if size == 0 {
			size = defaultOversize
		}
		w.WriteHeader(a.Status)
		_, err := w.Write(a.Body)
		blank := make([]byte, 64<<10)
		for i := range blank {
			blank[i] = ' '
		}
		for left := size - int64(len(a.Body)); left > 0 && err == nil; left -= int64(len(blank)) {
			_, err = w.Write(blank[:min(left, int64(len(blank)))])
		}
	}
}

// connKey is the context key of a connection's request counter.
type connKey struct{}

// ConnContext marks a connection, so that ResetReused can tell a reused one. It
// is for http.Server.ConnContext; NewHTTPServer sets it.
func ConnContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, connKey{}, new(atomic.Int64))
}

// countRequest reports whether the connection has served a request before.
func countRequest(ctx context.Context) bool {
	n, ok := ctx.Value(connKey{}).(*atomic.Int64)
	return ok && n.Add(1) > 1
}
