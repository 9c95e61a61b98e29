// Package grpcadapter adapts gRPC services to package outbound. It is for unary
// calls: the key stands in the metadata or in a field of the request, and statuses
// are judged by what the service documents.
//
//	conn, err := grpc.NewClient(target, append(grpcadapter.DialOptions(), creds)...)
//	adapter := grpcadapter.New(grpcadapter.Config{
//		Provider: "incidents", Account: "eu", Mode: "live", Conn: conn,
//		Methods: []grpcadapter.Method{create},
//	})
//	reply, err := client.Do(ctx, create.Call(cmd, request))
//
// It is a module of its own, so that a service without gRPC does not compile it.
package grpcadapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Method is one operation of a service.
type Method struct {
	// Row is the operation: Method "" and as Path the full method,
	// "/incidents.v1.Incidents/Create". Required. Places are metadata (Header) or
	// fields of the request (Custom), as "idempotency_key" or "options.key".
	Row rs.Operation

	Request  proto.Message // Required: the request's type. Its value does not matter.
	Response proto.Message // Required: the response's type.

	// Applied reads a response: what it says beside that the effect is applied. A
	// service that answers OK to what it has not done returns another Effect. Defaults
	// to applied, and no more.
	Applied func(response proto.Message) outbound.Verdict

	// Errors says what a status code means, where the service documents it:
	// ErrRejected, ErrRefused, ErrAuth, ErrRateLimited and ErrInvalid say that nothing
	// was executed; ErrInFlight and ErrFingerprintConflict speak of the key. A code that
	// is not here proves nothing. Of CANCELLED, UNKNOWN, DEADLINE_EXCEEDED,
	// RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL and UNAVAILABLE, which gRPC gives by
	// itself to calls that have reached the server, it counts only where the error has
	// details, as a RetryInfo.
	Errors map[codes.Code]outbound.Code

	// Reasons says it of the reason in an error's ErrorInfo, and goes before Errors.
	Reasons map[string]outbound.Code
}

// Config is what an author states about a service.
type Config struct {
	Provider string // Required. Never changed: it is part of every key.
	Account  string // Required: the provider's own id of the default account.
	Mode     string // Required: "live", "test", "sandbox".

	// Conn sends. Required. One that was made with DialOptions shows when nothing was
	// written, and counts what gRPC sends again by itself. Of any other each attempt
	// counts as one delivery, whatever it did.
	Conn grpc.ClientConnInterface

	Methods []Method // Required.

	// Frozen are the names of metadata that belong to the request: stored and sent at
	// every delivery. All other metadata of a call is dropped. Defaults to none.
	Frozen []string

	// Credentials returns metadata of one attempt, which is stored nowhere. An error
	// for which errors.Is(err, outbound.ErrAuth) says that there are none for the
	// account; any other is taken as a passing one. Defaults to none, as where the
	// connection has its own.
	Credentials func(ctx context.Context, account string) (metadata.MD, error)

	// Find looks up the operations whose row has a Lookup. Defaults to none.
	Find func(ctx context.Context, l *outbound.Lookup) (outbound.Finding, error)

	MaxResponse int // Bytes of a response, where outbound says nothing. Defaults to 4 MiB.
}

const (
	defaultMaxResponse = 4 << 20
	maxMetadata        = 64 << 10 // bytes of names and values, of a request and of a stored answer
)

// Adapter is an outbound.Adapter and outbound.Finder for gRPC. It is safe for
// concurrent use.
type Adapter struct {
	cfg      Config
	methods  map[string]Method // by operation
	problems error
}

var (
	_ outbound.Adapter = (*Adapter)(nil)
	_ outbound.Finder  = (*Adapter)(nil)
)

// New returns the adapter that cfg makes. What is wrong with cfg comes out of
// Profile, and so of outbound.New.
func New(cfg Config) *Adapter {
	a := &Adapter{cfg: cfg, methods: make(map[string]Method, len(cfg.Methods))}
	if a.cfg.MaxResponse <= 0 {
		a.cfg.MaxResponse = defaultMaxResponse
	}
	problems := []error{}
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for _, required := range []struct{ name, value string }{
		{"Provider", cfg.Provider}, {"Account", cfg.Account}, {"Mode", cfg.Mode},
	} {
		if strings.TrimSpace(required.value) == "" {
			refuse("Config.%s is required", required.name)
		}
	}
	if cfg.Conn == nil {
		refuse("Config.Conn is required")
	}
	if len(cfg.Methods) == 0 {
		refuse("Config.Methods is empty")
	}
	for i, name := range cfg.Frozen {
		if !isPlainName(name) {
			refuse("Config.Frozen[%d]: %q is no name of plain metadata", i, name)
		}
	}
	for _, m := range cfg.Methods {
		a.methods[m.Row.Name] = m
		for _, wrong := range m.faults(cfg.Find != nil) {
			refuse("operation %s: %s", m.Row.Name, wrong)
		}
	}
	a.problems = errors.Join(append(problems, rs.Check(a.rows()))...)
	return a
}

func (a *Adapter) rows() []rs.Operation {
	rows := make([]rs.Operation, len(a.cfg.Methods))
	for i, m := range a.cfg.Methods {
		rows[i] = m.Row
	}
	return rows
}

// faults returns what this package cannot do with a row that is sound in itself.
func (m Method) faults(finds bool) (wrong []string) {
	say := func(bad bool, text string) {
		if bad {
			wrong = append(wrong, text)
		}
	}
	say(m.Row.Method != "", "a gRPC operation has no HTTP method")
	say(strings.Count(m.Row.Path, "/") != 2 || strings.ContainsAny(m.Row.Path, "{}"), "its Path is no full method, as /incidents.v1.Incidents/Create")
	say(m.Row.Lookup != "" && !finds, "the row says how it is looked up, and Config.Find is not set")
	if m.Request == nil || m.Response == nil {
		return append(wrong, "Method.Request and Method.Response are required")
	}
	shape := m.Request.ProtoReflect().Descriptor()
	for _, p := range slices.Concat(m.Row.Keys, m.Row.Marks) {
		say(p.Kind == rs.InHeader && !isPlainName(p.Name), fmt.Sprintf("%q is no name of plain metadata", p.Name))
		say(p.Kind == rs.InCustom && !isText(shape, p.Name), fmt.Sprintf("%q is no field of text in %s", p.Name, shape.FullName()))
		say(p.Kind != rs.InHeader && p.Kind != rs.InCustom || p.Quoted, "a key or mark stands in metadata (Header) or in a field (Custom)")
	}
	for _, p := range slices.Concat(m.Row.Volatile, m.Row.Unordered, m.Row.Sensitive, m.Row.Codes) {
		say(p.Kind != rs.InCustom || fieldsAt(shape, p.Name) == nil, fmt.Sprintf("%q is no field (Custom) of %s", p.Name, shape.FullName()))
	}
	return wrong
}

// isPlainName reports whether metadata of this name holds text and is not gRPC's own.
func isPlainName(name string) bool {
	other := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r))
	}
	lower := strings.ToLower(name)
	return name != "" && !strings.ContainsFunc(name, other) && !strings.HasSuffix(lower, "-bin") && !strings.HasPrefix(lower, "grpc-")
}

// Profile returns what the adapter states about itself, or everything that is wrong
// with its settings.
func (a *Adapter) Profile() (outbound.Profile, error) {
	if a.problems != nil {
		return outbound.Profile{}, a.problems
	}
	return outbound.Profile{
		Provider: a.cfg.Provider, Account: a.cfg.Account, Mode: a.cfg.Mode,
		Operations: a.rows(), Canonicals: []int{canonicalVersion}, Credentials: true,
	}, nil
}

// Find looks an effect up by Config.Find.
func (a *Adapter) Find(ctx context.Context, l *outbound.Lookup) (outbound.Finding, error) {
	if a.cfg.Find == nil {
		return outbound.Finding{}, errors.New("Config.Find is not set")
	}
	return a.cfg.Find(ctx, l)
}

// Operation is the row of a unary method, to which a class, a look-up and the like can
// be added. key is where the key goes: rs.Header or rs.Custom. window is how long the
// service keeps a key; 0 is not known.
func Operation(name, method string, key rs.Place, window time.Duration, facts ...rs.Fact) rs.Operation {
	return rs.Operation{Name: name, Path: method, Keys: []rs.Place{key}, Window: window, Resend: rs.Original, Facts: facts}
}

// Call makes the Call of the method. request is of the method's type; it is read and
// not kept. Its key need not be set.
func (m Method) Call(cmd outbound.Command, request proto.Message) outbound.Call {
	call := outbound.Call{Command: cmd, Operation: m.Row.Name, Message: outbound.Message{Target: m.Row.Path}}
	if request == nil || m.Request == nil || request.ProtoReflect().Descriptor().FullName() != m.Request.ProtoReflect().Descriptor().FullName() {
		call.Err = fmt.Errorf("%s: the request is not of the method's type", m.Row.Name)
		return call
	}
	var err error
	if call.Message.Body, err = marshal(request); err != nil {
		call.Err = fmt.Errorf("%s: the request does not encode", m.Row.Name)
	}
	return call
}

// Read returns the response of a reply, new or from the ledger.
func (m Method) Read(r *outbound.Reply) (proto.Message, error) {
	return m.response(r.Body)
}

func (m Method) response(body []byte) (proto.Message, error) {
	response := m.Response.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(body, response); err != nil {
		return nil, fmt.Errorf("%s: the answer is no %s", m.Row.Name, m.Response.ProtoReflect().Descriptor().FullName())
	}
	return response, nil
}

func marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}
