// Package console shows a ledger in a browser: what is open and since when, one
// record's life, rates, what the reconcilers are doing. Its pages are made on the
// server, need no JavaScript, and load nothing from elsewhere.
//
// It reads the ledger and talks to no provider. With Options.AllowResolve people
// settle records by their verdict, each against the version that they saw. It is
// for the program samekey; services have outbound.Client.
package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore"
)

//go:embed templates/*.html static/style.css static/icon.svg
var files embed.FS

// Ledger is what the console asks of a store: all of it reads but Resolve.
type Ledger interface {
	recordstore.Lister

	// Get is recordstore.Store's.
	Get(ctx context.Context, id recordstore.ID) (recordstore.Record, time.Time, error)

	// Trail is recordstore.Desk's.
	Trail(ctx context.Context, id recordstore.ID) ([]recordstore.Entry, error)

	// Resolve is recordstore.Desk's.
	Resolve(ctx context.Context, v recordstore.Verdict) (recordstore.Record, error)

	// Backlog is recordstore.Queue's.
	Backlog(ctx context.Context, provider string) (recordstore.Backlog, error)
}

// Options are the settings of a console. Without a Token it needs Hosts.
type Options struct {
	// Token is what people sign in with: MinToken bytes or more, hard to guess.
	// Defaults to none: whoever reaches the console reads. AllowResolve and Sealer
	// need one.
	Token string

	// Hosts are the names that a browser may have called the console by, each with
	// its port where it is not the scheme's own: a page of another name that leads
	// here gets nothing. Defaults to any.
	Hosts []string

	// Secure is for a console that browsers reach by HTTPS: its cookie goes nowhere
	// else. Defaults to false.
	Secure bool

	AllowResolve bool            // Defaults to false: read only.
	Sealer       outbound.Sealer // Opens the bodies of one record where somebody asks for them. Defaults to none: no bodies.
	// Horizon is how long after its last lease a request of an operation may still be
	// executed; 0 stands for 15 minutes. Defaults to that for all.
	Horizon func(provider, operation string) time.Duration

	Log *slog.Logger // Signing in, acts and failures; no bodies, no token. Defaults to none.
}

// MinToken is the shortest token, in bytes.
const MinToken = 20

// Bounds of one request. A page that is read for longer than maxWork is given up.
const (
	maxWork   = 20 * time.Second
	maxAtOnce = 32 // Requests at once.
	maxForm   = 16 << 10
	pageSize  = 100 // Records of a list.
)

// console is the handler's state. All of it but sessions stays as New made it.
type console struct {
	Options
	ledger   Ledger
	pages    map[string]*template.Template
	sessions sessions
	now      func() time.Time // Of sessions; ages come from the ledger's clock.
}

// New returns a console for one ledger. The handler is safe for concurrent use.
func New(ledger Ledger, o Options) (http.Handler, error) {
	switch {
	case o.Token != "" && len(o.Token) < MinToken:
		return nil, fmt.Errorf("the console's token has %d bytes: give %d or more, as `openssl rand -hex 20` makes them", len(o.Token), MinToken)
	case o.Token == "" && (o.AllowResolve || o.Sealer != nil):
		return nil, errors.New("a console that acts or shows bodies needs a token")
	case o.Token == "" && len(o.Hosts) == 0:
		return nil, errors.New("a console without a token needs the names of its hosts, so that no page of another name reads it")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	pages, err := parsePages()
	if err != nil {
		return nil, err
	}
	c := &console{Options: o, ledger: ledger, pages: pages, now: time.Now}
	return c.guard(c.routes()), nil
}

func (c *console) routes() http.Handler {
	mux := http.NewServeMux()
	static, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	serveFile := http.FileServerFS(static)
	mux.Handle("GET /style.css", serveFile)
	mux.Handle("GET /icon.svg", serveFile)
	mux.Handle("GET /login", c.open(c.loginPage))
	mux.Handle("POST /login", http.HandlerFunc(c.login))
	mux.Handle("POST /logout", c.act(c.logout))
	mux.Handle("GET /{$}", c.closed(c.openRecords))
	mux.Handle("GET /search", c.closed(c.search))
	mux.Handle("GET /records/{mark}", c.closed(c.record))
	mux.Handle("GET /records/{mark}/bodies", c.closed(c.bodies))
	mux.Handle("POST /records/{mark}/resolve", c.act(c.resolve))
	mux.Handle("GET /rates", c.closed(c.rates))
	mux.Handle("GET /reconciler", c.closed(c.reconciler))
	mux.Handle("GET /", c.closed(func(*http.Request, *session) (view, error) { return view{}, errNoPage }))
	return mux
}
