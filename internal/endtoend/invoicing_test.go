package endtoend

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

const invoiceLines = 500

// C15: an invoicing run that is killed at a random point and started again adds
// no line twice: the command of each line is made of stored facts (R30), not of
// the run.
func TestC15_InvoicingRunIsKilledAndStartedAgain(t *testing.T) {
	eachLedgerOf(t, func(t *testing.T, j job, left func(...string) int) {
		fake := providertest.Stripe(t, nil)
		j.Kind, j.Provider, j.Commands = "invoicing", fake.URL, invoiceLines
		j.Charge = fake.Seed(providertest.Customer{})

		at := 1 + rand.IntN(invoiceLines-100)
		t.Logf("killed after %d lines", at)
		first := j.start(t)
		fake.AwaitEffects("invoice_item.create", at)
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.Wait() // it was killed
		if n := fake.Effects("invoice_item.create"); n >= invoiceLines {
			t.Fatalf("the run was over (%d lines) when it was killed", n)
		}
		if out := j.start(t).output(t); out != strconv.Itoa(invoiceLines) {
			t.Errorf("the second run reports %s lines, want %d", out, invoiceLines)
		}
		if n := fake.Effects("invoice_item.create"); n != invoiceLines || fake.Duplicates() != 0 {
			t.Errorf("%d effects with %d duplicates, want %d and none", n, fake.Duplicates(), invoiceLines)
		}
		if n := left("succeeded"); n != invoiceLines {
			t.Errorf("%d records have succeeded, want %d", n, invoiceLines)
		}
	})
}

// invoicing adds every line of the run, eight at a time, and prints how many it
// ended with.
func (j job) invoicing() (done int64, err error) {
	client, closeClient, err := j.client(outbound.Telemetry{})
	if err != nil {
		return 0, err
	}
	defer closeClient()
	var next, added atomic.Int64
	failed := make(chan error, 8)
	for range cap(failed) {
		go func() {
			for n := next.Add(1); n <= int64(j.Commands); n = next.Add(1) {
				id, err := lineID(n)
				if err != nil {
					failed <- err
					return
				}
				call := stripe.InvoiceItemCreate(outbound.Command{ID: id}, url.Values{
					"customer": {j.Charge}, "amount": {"100"}, "currency": {"eur"}, "description": {"line " + strconv.FormatInt(n, 10)},
				})
				if _, err := persist(client, call); err != nil {
					failed <- err
					return
				}
				added.Add(1)
			}
			failed <- nil
		}()
	}
	for range cap(failed) {
		if err := <-failed; err != nil {
			return 0, err
		}
	}
	return added.Load(), nil
}

func lineID(n int64) (string, error) {
	period := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	return keyderive.CommandID(period, "invoice", "2026-11", strconv.FormatInt(n, 10))
}
