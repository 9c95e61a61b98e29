package fakeprovider_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
	"github.com/seed-6b5e302b/samekey/internal/fakeprovider/stripe"
)

// connections is how many clients a benchmark has.
const connections = 64

// BenchmarkFake prints how many keyed POSTs a second a fake serves to 64
// connections, and what processor time of this process one takes, the clients'
// part included. It fails if the fake does not count each effect once.
func BenchmarkFake(b *testing.B) {
	const payment = "amount=1250&currency=eur&payment_method=pm_card_visa&confirm=true&metadata%5Border%5D=42"
	const order = `{"intent":"CAPTURE","purchase_units":[{"custom_id":"42","amount":{"currency_code":"EUR","value":"12.50"}}]}`
	stripes := func(n int) func() fakeprovider.Dialect { return stripe.New(stripe.Config{MaxObjects: 2*n + 10}) }
	paypals := func(n int) func() fakeprovider.Dialect {
		return paypal.New(paypal.Config{Lenient: true, MaxObjects: n + 10})
	}
	for _, c := range []struct {
		name      string
		dialect   func(n int) func() fakeprovider.Dialect
		head      string
		body      string
		keyHeader string
		keys      int // how many requests share a key
	}{
		{"stripe/payment", stripes, "POST /v1/payment_intents HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n", payment, "Idempotency-Key", 1},
		{"stripe/replayed", stripes, "POST /v1/payment_intents HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n", payment, "Idempotency-Key", 4},
		{"stripe/customer", stripes, "POST /v1/customers HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n", "email=a%40example.com", "Idempotency-Key", 1},
		{"paypal/order", paypals, "POST /v2/checkout/orders HTTP/1.1\r\nContent-Type: application/json\r\n", order, "PayPal-Request-Id", 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := fakeprovider.New(c.dialect(b.N+connections), &fakeprovider.Options{MaxKeys: b.N + connections})
			s, err := fakeprovider.Listen(f)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			head := c.head + "Host: provider.test\r\nAuthorization: Bearer sk_test_1\r\nContent-Length: " + strconv.Itoa(len(c.body)) + "\r\n" + c.keyHeader + ": "
			share := b.N/connections + 1
			b.ResetTimer()
			start, cpu := time.Now(), processorTime(b)
			var clients sync.WaitGroup
			for i := range connections {
				clients.Go(func() {
					post(b, strings.TrimPrefix(s.URL, "http://"), share, func(n int) string {
						return fmt.Sprintf("%s%d-%d\r\n\r\n%s", head, i, n/c.keys, c.body)
					})
				})
			}
			clients.Wait()
			posts := float64(share * connections)
			b.ReportMetric(posts/time.Since(start).Seconds(), "posts/s")
			b.ReportMetric(float64((processorTime(b)-cpu).Microseconds())/posts, "cpu-µs/post")
			if r, want := f.Report(), (share+c.keys-1)/c.keys*connections; r.Total != want || r.Duplicates != 0 {
				b.Errorf("%d effects and %d duplicates for %d keys", r.Total, r.Duplicates, want)
			}
		})
	}
}

// post sends n requests over one connection, each after the answer to the one
// before. It reads no more of an answer than a client must, so that the fake is
// what is measured.
func post(b *testing.B, addr string, n int, request func(int) string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for i := range n {
		if _, err := io.WriteString(conn, request(i)); err != nil {
			b.Error(err)
			return
		}
		if status, err := skipAnswer(r); err != nil || status/100 != 2 {
			b.Errorf("status %d, %v", status, err)
			return
		}
	}
}

// skipAnswer reads an answer's status and passes over the rest.
func skipAnswer(r *bufio.Reader) (status int, err error) {
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case err != nil:
			return status, err
		case status == 0 && len(line) > 12:
			status, _ = strconv.Atoi(string(line[9:12]))
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			length, _ = strconv.Atoi(string(bytes.TrimSpace(line[16:])))
		case len(bytes.TrimSpace(line)) == 0 && length < 0:
			return status, fmt.Errorf("an answer of status %s has no length", http.StatusText(status))
		case len(bytes.TrimSpace(line)) == 0:
			_, err := r.Discard(length)
			return status, err
		}
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
