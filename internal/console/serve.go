package console

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"time"
)

// stopTime is how long pages that are being made may still take when a console
// stops.
const stopTime = 5 * time.Second

// Serve serves h on l until ctx ends, then lets the requests under way end.
func Serve(ctx context.Context, l net.Listener, h http.Handler, failures *log.Logger) error {
	server := &http.Server{
		Handler: h, ErrorLog: failures,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: maxWork + 10*time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	err := server.Shutdown(stopping)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
