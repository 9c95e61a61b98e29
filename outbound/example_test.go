package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/recordstore/memory"
	"github.com/seed-6b5e302b/samekey/replaysemantics"
)

// mailer is a small adapter for a provider that takes a key and answers a repeated
// one with the stored first answer. Adapters for HTTP are made with package
// httpadapter instead.
type mailer struct {
	loses int               // how many answers get lost on their way back
	sent  map[string]string // what the provider has executed, by key
}

func (m *mailer) Profile() (outbound.Profile, error) {
	return outbound.Profile{
		Provider: "mailer", Account: "acc_1", Mode: "live", Canonicals: []int{1}, Credentials: true,
		Operations: []replaysemantics.Operation{{
			Name: "mail.send", Class: replaysemantics.Notification, Path: "/mail.v1.Mail/Send",
			Keys: []replaysemantics.Place{replaysemantics.JSON("/request_id")}, Window: 24 * time.Hour,
			Resend: replaysemantics.Original,
			Facts:  []replaysemantics.Fact{{States: "window 24h", URL: "https://example.com/keys", Read: "2026-11-30", Grade: replaysemantics.Documented}},
		}},
	}, nil
}

func (m *mailer) Freeze(_ replaysemantics.Operation, msg outbound.Message, _ string) (outbound.Frozen, error) {
	return outbound.Frozen{Message: msg}, nil
}

func (m *mailer) Canonical(w io.Writer, _ int, _ replaysemantics.Operation, msg outbound.Message, _ bool) error {
	_, err := fmt.Fprintf(w, "%s\n%s", msg.Target, msg.Body)
	return err
}

func (m *mailer) Send(_ context.Context, d *outbound.Delivery) []outbound.Verdict {
	if err := d.Allow(); err != nil {
		return []outbound.Verdict{{Effect: outbound.EffectNone, Code: outbound.ErrUnavailable, Err: err}}
	}
	ref, replayed := m.sent[d.Key.Raw()]
	if !replayed {
		ref = fmt.Sprintf("mail_%d", len(m.sent)+1)
		m.sent[d.Key.Raw()] = ref
	}
	if m.loses > 0 {
		m.loses--
		return []outbound.Verdict{{Deliveries: 1, Err: errors.New("connection reset")}}
	}
	v := outbound.Verdict{Effect: outbound.EffectApplied, Deliveries: 1, ExternalRef: ref, Answer: &outbound.Answer{Body: []byte(`{"id":"` + ref + `"}`)}}
	if replayed {
		v.Evidence = replaysemantics.ByReplayHeader
	}
	return []outbound.Verdict{v}
}

// send is a Call as a provider package makes it.
func send(cmd outbound.Command, to string) outbound.Call {
	return outbound.Call{
		Command: cmd, Operation: "mail.send",
		Message: outbound.Message{Target: "/mail.v1.Mail/Send", Body: []byte(`{"to":"` + to + `"}`)},
	}
}

func newMailer(loses int) (*outbound.Client, *mailer) {
	m := &mailer{loses: loses, sent: map[string]string{}}
	client, err := outbound.New(m, memory.New(nil), nil)
	if err != nil {
		panic(err)
	}
	return client, m
}

// The answer to the first call gets lost. What nobody knows is no failure: a job
// asks again with the same command, and the provider executes it once.
func ExampleClient_Do() {
	client, provider := newMailer(1)
	defer client.Close(context.Background())
	cmd := outbound.Command{ID: "inv_42"} // stored with the invoice before the first call

	for range 3 {
		reply, err := client.Do(context.Background(), send(cmd, "ann"))
		if wait, again := outbound.RetryAfter(err); again {
			fmt.Println(outbound.EffectOf(err), "- again in", wait) // put the job off
			continue
		}
		if err != nil {
			fmt.Println("final:", err)
			return
		}
		fmt.Println(reply.ExternalRef, reply.Label, "from", reply.Origin)
	}
	fmt.Println("executed:", len(provider.sent))
	// Output:
	// unknown - again in 1m0s
	// mail_1 original_replay from provider
	// mail_1 original_replay from ledger
	// executed: 1
}

// One command has one effect for each operation. Where an order needs several of
// the same operation, each has a name; the same name is the same effect.
func ExampleCommand_Step() {
	client, _ := newMailer(0)
	defer client.Close(context.Background())
	order := outbound.Command{ID: "ord_7"}

	for _, seller := range []string{"seller-1", "seller-2", "seller-1"} {
		reply, err := client.Do(context.Background(), send(order.Step(seller), seller))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(seller, reply.ExternalRef, reply.Label)
	}
	// Output:
	// seller-1 mail_1 new_execution
	// seller-2 mail_2 new_execution
	// seller-1 mail_1 original_replay
}

// Code that calls a provider through its own SDK does not see the Reply. Whoever
// made the context does.
func ExampleTrack() {
	client, _ := newMailer(0)
	defer client.Close(context.Background())

	ctx, tracked := outbound.Track(context.Background(), outbound.Command{ID: "inv_42"})
	deep := func(ctx context.Context) error { // as an SDK over package dropin
		cmd, _ := outbound.CommandFrom(ctx)
		_, err := client.Do(ctx, send(cmd, "ann"))
		return err
	}
	if err := deep(ctx); err != nil {
		fmt.Println(err)
		return
	}
	reply, _ := tracked.Result()
	fmt.Println(reply.Operation, reply.Label, reply.Evidence)
	// Output: mail.send new_execution first_delivery
}

// Another request under the same command is found before anything is sent.
func ExampleError() {
	client, _ := newMailer(0)
	defer client.Close(context.Background())
	cmd := outbound.Command{ID: "inv_42"}
	if _, err := client.Do(context.Background(), send(cmd, "ann")); err != nil {
		fmt.Println(err)
		return
	}

	_, err := client.Do(context.Background(), send(cmd, "bob"))
	fmt.Println(errors.Is(err, outbound.ErrFingerprintConflict))
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		fmt.Println("sent:", e.Sent, "effect of the command:", e.Effect)
	}
	fmt.Println(strings.Contains(err.Error(), "bob"))
	// Output:
	// true
	// sent: false effect of the command: applied
	// false
}

// A body is sealed before the ledger sees it. Older keys open what they sealed.
func ExampleSeal() {
	key := func(id string) outbound.SealKey {
		return outbound.SealKey{ID: id, Bytes: []byte("thirty-two bytes from your vault")}
	}
	bodies := outbound.Seal(key("2026"), key("2025"))
	_, err := outbound.New(&mailer{}, memory.New(nil), &outbound.Options{Bodies: bodies})
	fmt.Println(key("2026"), err)
	// Output: seal key "2026" <nil>
}
