package direct_test

import (
	"net/http"
	"time"

	plutov "github.com/plutov/paypal/v4"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
	fake "github.com/seed-6b5e302b/samekey/internal/fakeprovider/paypal"
)

func billing() []operation {
	return append(catalog(), []operation{
		{"subscription.create", planted(fake.ActivePlan{}), func(d *direct, id string) (string, error) {
			r, err := d.pp.CreateSubscription(d.Context(), plutov.SubscriptionBase{PlanID: id})
			return r.ID, err
		}},
		{"subscription.get", planted(fake.ActiveSubscription{}), func(d *direct, id string) (string, error) {
			r, err := d.pp.GetSubscriptionDetails(d.Context(), id)
			return r.ID, err
		}},
		{"subscription.list", planted(fake.ActiveSubscription{}), func(d *direct, _ string) (string, error) {
			return d.only(http.MethodGet, "/v1/billing/subscriptions", nil, "subscriptions")
		}},
		{"subscription.activate", planted(fake.ActiveSubscription{Status: "SUSPENDED"}), func(d *direct, id string) (string, error) {
			return id, d.pp.ActivateSubscription(d.Context(), id, "paid")
		}},
		{"subscription.suspend", planted(fake.ActiveSubscription{}), func(d *direct, id string) (string, error) {
			return id, d.pp.SuspendSubscription(d.Context(), id, "unpaid")
		}},
		{"subscription.cancel", planted(fake.ActiveSubscription{}), func(d *direct, id string) (string, error) {
			return id, d.pp.CancelSubscription(d.Context(), id, "moved")
		}},
	}...)
}

// catalog are products and plans.
func catalog() []operation {
	return []operation{
		{"product.create", nil, func(d *direct, _ string) (string, error) {
			r, err := d.pp.CreateProduct(d.Context(), plutov.Product{Name: "Box", Type: plutov.ProductTypePhysical})
			return r.ID, err
		}},
		{"product.get", product, func(d *direct, id string) (string, error) {
			r, err := d.pp.GetProduct(d.Context(), id)
			return r.ID, err
		}},
		{"product.list", product, func(d *direct, _ string) (string, error) {
			r, err := d.pp.ListProducts(d.Context(), &plutov.ProductListParameters{ListParams: plutov.ListParams{Page: "1", PageSize: "5", TotalRequired: "true"}})
			if err != nil || len(r.Products) != 1 {
				return "", err
			}
			return r.Products[0].ID, nil
		}},
		{"plan.create", product, func(d *direct, id string) (string, error) {
			r, err := d.pp.CreateSubscriptionPlan(d.Context(), plutov.SubscriptionPlan{
				ProductId: id, Name: "Monthly", Status: plutov.SubscriptionPlanStatusActive,
				BillingCycles: []plutov.BillingCycle{{
					PricingScheme: plutov.PricingScheme{FixedPrice: *euros("9.00")}, TenureType: plutov.TenureTypeRegular, Sequence: 1,
					Frequency: plutov.Frequency{IntervalUnit: plutov.IntervalUnitMonth, IntervalCount: 1},
				}},
			})
			return r.ID, err
		}},
		{"plan.get", planted(fake.ActivePlan{}), func(d *direct, id string) (string, error) {
			r, err := d.pp.GetSubscriptionPlan(d.Context(), id)
			return r.ID, err
		}},
		{"plan.list", planted(fake.ActivePlan{}), func(d *direct, _ string) (string, error) {
			r, err := d.pp.ListSubscriptionPlans(d.Context(), &plutov.SubscriptionPlanListParameters{ListParams: plutov.ListParams{Page: "1", PageSize: "5", TotalRequired: "true"}})
			if err != nil || len(r.Plans) != 1 {
				return "", err
			}
			return r.Plans[0].ID, nil
		}},
	}
}

func product(d *direct) string {
	r, err := d.pp.CreateProduct(d.Context(), plutov.Product{Name: "Box", Type: plutov.ProductTypePhysical})
	if err != nil {
		d.Fatal(err)
	}
	return r.ID
}

// verify lets the SDK ask whether a webhook that arrived is PayPal's own.
func verify(d *direct, _ string) (string, error) {
	e, err := d.fake.AddEndpoint(fakeprovider.Endpoint{URL: "http://127.0.0.1:9/hooks", Base: d.pp.APIBase})
	if err != nil {
		return "", err
	}
	refund(d)
	select {
	case r := <-d.hooks.arrived:
		got, err := d.pp.VerifyWebhookSignature(d.Context(), r, e.ID)
		if err == nil && got.VerificationStatus != "SUCCESS" {
			d.Errorf("the webhook is %s", got.VerificationStatus)
		}
		return e.ID, err
	case <-time.After(20 * time.Second):
		d.Fatal("no webhook arrived")
		return "", nil
	}
}
