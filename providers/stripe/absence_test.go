package stripe_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// refundOf is a partial refund, which a blind resend would repeat.
func refundOf(id, charge string) outbound.Call {
	return stripe.RefundCreate(outbound.Command{ID: id}, values("charge", charge, "amount", "500"))
}

// TestPartialRefunds holds that equal partial refunds of one charge are told
// apart by their marks, and that an equal amount finds nothing.
func TestPartialRefunds(t *testing.T) {
	probing(t, nil, func(p *probe) {
		charge := p.fake.Seed(providertest.Charge{Amount: 2000})
		first, a := p.sent(refundOf("cmd_1", charge))
		second, b := p.sent(refundOf("cmd_2", charge))
		third := p.asks(refundOf("cmd_3", charge))
		if a == b {
			p.Fatal("one refund")
		}
		p.wantFound(first, a)
		p.wantFound(second, b)
		p.wantAbsent(third)

		p.do("POST", "/v1/refunds", values("charge", charge, "amount", "500")) // from the dashboard, without a mark
		p.wantFound(first, a)
		p.wantUnknown(third)
	})
}

// TestAnotherAmountIsAnotherRefund holds that an object without a mark that
// differs in what nobody can change does not stand in the way of a proof.
func TestAnotherAmountIsAnotherRefund(t *testing.T) {
	probing(t, nil, func(p *probe) {
		charge := p.fake.Seed(providertest.Charge{Amount: 2000})
		p.do("POST", "/v1/refunds", values("charge", charge, "amount", "499"))
		p.wantAbsent(p.asks(refundOf("cmd_1", charge)))
	})
}

// TestAbsenceNeedsEachCondition holds that a refund which nobody made is proved
// absent, and no longer as soon as one condition of the proof is missing.
func TestAbsenceNeedsEachCondition(t *testing.T) {
	for name, spoil := range map[string]func(p *probe, l *outbound.Lookup){
		"another account": func(p *probe, _ *outbound.Lookup) {
			p.cfg.Account = "acct_other" // and the key is not
			p.adapter = stripe.New(p.cfg)
			p.cfg.Account = account
		},
		"the account cannot be asked": func(p *probe, _ *outbound.Lookup) {
			p.fake.Inject(providertest.Fault{Kind: providertest.Unauthorized, Operation: "account.get"})
		},
		"the first send is not known": func(_ *probe, l *outbound.Lookup) { l.FirstSentAt = time.Time{} },
		"the last send is not known":  func(_ *probe, l *outbound.Lookup) { l.SentUntil = time.Time{} },
		"the request is not known":    func(_ *probe, l *outbound.Lookup) { l.Message = outbound.Message{} },
		"the mark was not sent": func(_ *probe, l *outbound.Lookup) {
			l.Message.Body = []byte(strings.ReplaceAll(string(l.Message.Body), l.Mark, "mine"))
		},
		"an event named the object": func(p *probe, l *outbound.Lookup) { l.ExternalRef = "re_gone" },
		"the key was used with another request": func(_ *probe, l *outbound.Lookup) {
			l.Code = "idempotency_error"
		},
		"an object that may have lost the mark": func(p *probe, l *outbound.Lookup) {
			form, err := url.ParseQuery(string(l.Message.Body))
			if err != nil {
				p.Fatal(err)
			}
			p.do("POST", "/v1/refunds", values("charge", form.Get("charge"), "amount", "500"))
		},
		"the list is refused": func(p *probe, _ *outbound.Lookup) {
			p.fake.Inject(providertest.Fault{Kind: providertest.Status500, Operation: "refund.list"})
		},
		"the list is limited": func(p *probe, _ *outbound.Lookup) {
			p.fake.Inject(providertest.Fault{Kind: providertest.RateLimit, Operation: "refund.list"})
		},
		"the list is no JSON": func(p *probe, _ *outbound.Lookup) {
			p.fake.Inject(providertest.Fault{Kind: providertest.HTML502, Operation: "refund.list"})
		},
		"the list is cut off": func(p *probe, _ *outbound.Lookup) {
			p.fake.Inject(providertest.Fault{Kind: providertest.Truncate, Operation: "refund.list"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			probing(t, nil, func(p *probe) {
				charge := p.fake.Seed(providertest.Charge{Amount: 2000})
				p.wantAbsent(p.asks(refundOf("cmd_0", charge)))
				time.Sleep(2 * time.Minute) // whose the credential is, is asked again
				l := p.asks(refundOf("cmd_1", charge))
				spoil(p, l)
				if name == "another account" {
					l.Account = "acct_other"
				}
				p.wantUnknown(l)
			})
		})
	}
}

// TestAbsenceNeedsTheMode holds that a key which states no mode is asked for it.
func TestAbsenceNeedsTheMode(t *testing.T) {
	silent := func(test bool) func(*stripe.Config) {
		return func(cfg *stripe.Config) { cfg.SecretKey, cfg.Test = "sk_silent", test } // the fake takes it for a test key
	}
	call := stripe.PayoutCreate(outbound.Command{ID: "cmd_1"}, values("amount", "500", "currency", "eur"))
	t.Run("its own", func(t *testing.T) {
		probing(t, silent(true), func(p *probe) { p.wantAbsent(p.asks(call)) })
	})
	t.Run("the other", func(t *testing.T) {
		probing(t, silent(false), func(p *probe) {
			l := p.asks(call)
			if _, err := p.adapter.Find(p.Context(), l); err == nil || !strings.Contains(err.Error(), "another mode") {
				p.Errorf("got %v", err)
			}
			p.wantUnknown(l)
		})
	})
}

// TestOwnerIsAskedRarely holds that whose a credential is stays known for a
// minute, and that another credential is asked for at once.
func TestOwnerIsAskedRarely(t *testing.T) {
	key := "sk_test_a"
	keys := func(cfg *stripe.Config) {
		cfg.Credentials = func(context.Context, string) (string, error) { return key, nil }
	}
	probing(t, keys, func(p *probe) {
		charge := p.fake.Seed(providertest.Charge{Amount: 2000})
		asked := func() int {
			p.wantAbsent(p.asks(refundOf("cmd_1", charge)))
			return len(p.fake.Requests("account.get"))
		}
		if n := asked() + asked(); n != 2 {
			p.Errorf("asked %d times, want once for two look-ups", n-1)
		}
		time.Sleep(61 * time.Second)
		if n := asked(); n != 2 {
			p.Errorf("asked %d times after a minute, want 2", n)
		}
		key = "sk_test_b"
		if n := asked(); n != 3 {
			p.Errorf("asked %d times for two credentials, want 3", n)
		}
	})
}

// TestRotationDuringALookup holds that nothing is proved by a list if the
// credential was another one afterwards.
func TestRotationDuringALookup(t *testing.T) {
	n := 0
	rotating := func(cfg *stripe.Config) {
		cfg.Credentials = func(context.Context, string) (string, error) { n++; return fmt.Sprintf("sk_test_%d", n), nil }
	}
	probing(t, rotating, func(p *probe) {
		p.wantUnknown(p.asks(refundOf("cmd_1", p.fake.Seed(providertest.Charge{}))))
	})
}

// TestMarkTakenAway holds that an object whose owner cleared its metadata is
// found by the event of its creation, and never taken for absent.
func TestMarkTakenAway(t *testing.T) {
	probing(t, nil, func(p *probe) {
		l, id := p.sent(refundOf("cmd_1", p.fake.Seed(providertest.Charge{Amount: 2000})))
		p.do("POST", "/v1/refunds/"+id, values("metadata", ""))
		p.wantFound(l, id)
		p.fake.Inject(providertest.Fault{Kind: providertest.Status500, Operation: "event.list"})
		p.wantUnknown(l)
	})
}

// TestMarkOfTheCallers holds that a creation whose place for the mark the caller
// filled is found by the event.
func TestMarkOfTheCallers(t *testing.T) {
	probing(t, nil, func(p *probe) {
		call := refundOf("cmd_1", p.fake.Seed(providertest.Charge{Amount: 2000}))
		call.Message.Body = append(call.Message.Body, "&metadata[samekey_command]=mine"...)
		l, id := p.sent(call)
		p.wantFound(l, id)
	})
}

// TestDeletedObjects holds that what was created and deleted since is found, by
// the event, and that what can be deleted is never proved absent.
func TestDeletedObjects(t *testing.T) {
	probing(t, nil, func(p *probe) {
		customer, id := p.sent(stripe.CustomerCreate(outbound.Command{ID: "cmd_1"}, values("email", "a@example.com")))
		p.do("DELETE", "/v1/customers/"+id, nil)
		p.wantFound(customer, id)

		invoice, id := p.sent(stripe.InvoiceCreate(outbound.Command{ID: "cmd_1"}, values("customer", p.fake.Seed(providertest.Customer{}))))
		p.do("DELETE", "/v1/invoices/"+id, nil)
		p.wantFound(invoice, id)

		time.Sleep(31 * 24 * time.Hour) // events are not listed any more
		p.wantUnknown(customer)
		p.wantUnknown(invoice)
	})
}

// TestCanceledObjects holds that what was canceled since is found as created.
func TestCanceledObjects(t *testing.T) {
	probing(t, nil, func(p *probe) {
		sub, id := p.sent(stripe.SubscriptionCreate(outbound.Command{ID: "cmd_1"},
			values("customer", p.fake.Seed(providertest.Customer{}), "items[0][price]", "price_1")))
		p.do("DELETE", "/v1/subscriptions/"+id, nil)
		if f := p.wantFound(sub, id); f.ObjectStatus != "canceled" {
			p.Errorf("got %+v", f)
		}
		intent, id := p.sent(stripe.PaymentIntentCreate(outbound.Command{ID: "cmd_1"}, values("amount", "2000", "currency", "eur")))
		p.do("POST", "/v1/payment_intents/"+id+"/cancel", nil)
		if f := p.wantFound(intent, id); f.ObjectStatus != "canceled" {
			p.Errorf("got %+v", f)
		}
	})
}

// TestCustomerOfAnIntentChanges holds that the list which finds is narrowed by
// what can change, and the one that proves is not.
func TestCustomerOfAnIntentChanges(t *testing.T) {
	probing(t, nil, func(p *probe) {
		first, second := p.fake.Seed(providertest.Customer{}), p.fake.Seed(providertest.Customer{})
		call := func(id string) outbound.Call {
			return stripe.PaymentIntentCreate(outbound.Command{ID: id}, values("amount", "2000", "currency", "eur", "customer", first))
		}
		l, id := p.sent(call("cmd_1"))
		p.do("POST", "/v1/payment_intents/"+id, values("customer", second))
		p.wantFound(l, id)
		p.wantAbsent(p.asks(call("cmd_2")))
	})
}

// TestDeclinedIntents holds what a declined payment says of the creation.
func TestDeclinedIntents(t *testing.T) {
	const decline = "pm_card_chargeDeclined"
	create := func(more ...string) outbound.Call {
		v := values(append([]string{"amount", "2000", "currency", "eur"}, more...)...)
		return stripe.PaymentIntentCreate(outbound.Command{ID: "cmd_1"}, v)
	}
	t.Run("by its own request", func(t *testing.T) {
		probing(t, nil, func(p *probe) {
			l := p.asks(create("payment_method", decline, "confirm", "true", "return_url", "https://example.com"))
			p.fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "payment_intent.create"})
			p.send(l)
			for _, known := range []bool{true, false} {
				if !known {
					l.Message = outbound.Message{} // the event tells
				}
				if f := p.find(l); f.Effect != outbound.EffectNone || f.Code != outbound.ErrRefused || f.ProviderCode != "card_declined" {
					p.Errorf("known %t: got %+v", known, f)
				}
			}
		})
	})
	t.Run("by a later one", func(t *testing.T) {
		probing(t, nil, func(p *probe) {
			l, id := p.sent(create("payment_method", decline))
			confirm := p.asks(stripe.PaymentIntentConfirm(outbound.Command{ID: "cmd_1"}, id, values("return_url", "https://example.com")))
			p.send(confirm)
			p.wantFound(l, id)
			l.Message = outbound.Message{}
			p.wantFound(l, id)
			if f := p.find(confirm); f.Effect != outbound.EffectNone || f.Code != outbound.ErrRefused || f.ProviderCode != "card_declined" {
				p.Errorf("the confirmation: got %+v", f)
			}
		})
	})
}

// TestKeyWithAnotherRequest holds that an effect which another request had under
// our key is neither ours nor absent.
func TestKeyWithAnotherRequest(t *testing.T) {
	probing(t, nil, func(p *probe) {
		charge := p.fake.Seed(providertest.Charge{Amount: 2000})
		l := p.asks(refundOf("cmd_1", charge))
		other := *l
		other.Message.Body = []byte(values("charge", charge, "amount", "1").Encode())
		if v := p.send(&other); v.Effect != outbound.EffectApplied {
			p.Fatalf("got %+v", v)
		}
		p.wantUnknown(l)
	})
}
