package fakeprovider

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// receiver serves an endpoint's handler over in-memory connections, so that it
// sees requests as a server's handler does.
type receiver struct {
	http    *http.Server
	client  *http.Client
	serving sync.WaitGroup
}

// receiverPatience is how long a handler may go on when its endpoint is removed.
const receiverPatience = 5 * time.Second

func newReceiver(h http.Handler, client *http.Client) *receiver {
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	own := *client
	own.Transport = &http.Transport{DialContext: l.dial}
	r := &receiver{http: &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second}, client: &own}
	r.serving.Go(func() { _ = r.http.Serve(l) }) // ends with ErrServerClosed
	return r
}

// close waits until the handler is done, as long as it may go on.
func (r *receiver) close() {
	r.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), receiverPatience)
	defer cancel()
	if r.http.Shutdown(ctx) != nil {
		_ = r.http.Close() // its error is the listener's, which is gone either way
	}
	r.serving.Wait()
}
