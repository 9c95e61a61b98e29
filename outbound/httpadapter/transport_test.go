package httpadapter_test

import (
	"net/http"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
)

func TestDefaultTransportKeepsConnectionsOfOneHost(t *testing.T) {
	kept, ok := httpadapter.DefaultTransport().(*http.Transport)
	if !ok {
		t.Fatalf("it is a %T", httpadapter.DefaultTransport())
	}
	if kept.MaxIdleConnsPerHost != kept.MaxIdleConns || kept.MaxIdleConns < 64 {
		t.Errorf("it keeps %d connections to one host, of %d in all", kept.MaxIdleConnsPerHost, kept.MaxIdleConns)
	}
	if http.RoundTripper(kept) == http.DefaultTransport {
		t.Error("it is http.DefaultTransport itself, which others would change with it")
	}
}
