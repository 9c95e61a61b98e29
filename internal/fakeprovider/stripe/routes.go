package stripe

import (
	"net/http"
	"strings"
)

// routes returns every endpoint of the fake. The parameter names are those of
// Stripe's API reference, as its published Go client (v86) has them.
func routes() []route {
	return append(append(append(moneyRoutes(), billingRoutes()...), otherRoutes()...), v2Routes()...)
}

func post(path, op string, do handler, names string) route {
	r := route{method: http.MethodPost, path: path, op: op, do: do}
	if names != "*" {
		r.params = strings.Fields(names)
		if r.params == nil {
			r.params = []string{}
		}
	}
	return r
}

func get(path, op string, do handler) route {
	return route{method: http.MethodGet, path: path, op: op, do: do}
}

func del(path, op string, do handler) route {
	return route{method: http.MethodDelete, path: path, op: op, do: do}
}

// reads are the look-ups of one collection.
func reads(path, kind, op string, filters ...string) []route {
	return []route{
		get(path, op+".list", listOf(kind, filters...)),
		get(path+"/{id}", op+".get", getOf(kind)),
	}
}

func moneyRoutes() []route {
	out := []route{
		post("/v1/payment_intents", "payment_intent.create", paymentIntentCreate, `amount amount_details
			application_fee_amount automatic_payment_methods capture_method confirm confirmation_method confirmation_token
			currency customer customer_account description error_on_requires_action excluded_payment_method_types hooks
			mandate mandate_data metadata off_session on_behalf_of payment_details payment_method
			payment_method_configuration payment_method_data payment_method_options payment_method_types radar_options
			receipt_email return_url setup_future_usage shipping statement_descriptor statement_descriptor_suffix
			transfer_data transfer_group use_stripe_sdk`),
		post("/v1/payment_intents/{id}", "payment_intent.update", paymentIntentUpdate, "*"),
		post("/v1/payment_intents/{id}/confirm", "payment_intent.confirm", paymentIntentConfirm, `amount_details
			amount_to_confirm capture_method confirmation_token error_on_requires_action excluded_payment_method_types
			hooks mandate mandate_data off_session payment_details payment_method payment_method_data
			payment_method_options payment_method_types radar_options receipt_email return_url setup_future_usage shipping
			use_stripe_sdk`),
		post("/v1/payment_intents/{id}/capture", "payment_intent.capture", paymentIntentCapture, `amount_details
			amount_to_capture application_fee_amount final_capture hooks metadata payment_details statement_descriptor
			statement_descriptor_suffix transfer_data`),
		post("/v1/payment_intents/{id}/cancel", "payment_intent.cancel", paymentIntentCancel, `cancellation_reason`),
		get("/v1/payment_intents/search", "payment_intent.search", searchOf("payment_intent")),
		post("/v1/charges", "charge.create", chargeCreate, "*"),
		post("/v1/charges/{id}", "charge.update", updateOf("charge", "charge.updated", "description", "receipt_email"), "*"),
		post("/v1/charges/{id}/capture", "charge.capture", chargeCapture, "*"),
		get("/v1/charges/search", "charge.search", searchOf("charge")),
		post("/v1/refunds", "refund.create", refundCreate, `amount charge currency customer instructions_email metadata
			origin payment_intent reason refund_application_fee reverse_transfer`),
		post("/v1/refunds/{id}", "refund.update", updateOf("refund", "refund.updated"), "metadata"),
		post("/v1/refunds/{id}/cancel", "refund.cancel", refundCancel, ""),
		post("/v1/transfers", "transfer.create", transferCreate, `amount currency description destination metadata
			source_transaction source_type transfer_group`),
		post("/v1/transfers/{id}", "transfer.update", updateOf("transfer", "transfer.updated", "description"), "*"),
		post("/v1/transfers/{id}/reversals", "transfer_reversal.create", transferReversalCreate, `amount description
			metadata refund_application_fee`),
		get("/v1/transfers/{id}/reversals", "transfer_reversal.list", ownedList("transfer", "transfer_reversal", "transfer")),
		get("/v1/transfers/{id}/reversals/{id}", "transfer_reversal.get", transferReversalGet),
		post("/v1/payouts", "payout.create", payoutCreate, `amount currency description destination metadata method
			payout_method source_type statement_descriptor`),
		post("/v1/payouts/{id}", "payout.update", updateOf("payout", "payout.updated"), "metadata"),
		post("/v1/payouts/{id}/cancel", "payout.cancel", payoutCancel, ""),
		post("/v1/payouts/{id}/reverse", "payout.reverse", payoutReverse, "metadata"),
		get("/v1/payouts", "payout.list", payoutList),
		get("/v1/payouts/{id}", "payout.get", payoutGet),
	}
	out = append(out, reads("/v1/payment_intents", "payment_intent", "payment_intent", "customer")...)
	out = append(out, reads("/v1/charges", "charge", "charge", "customer", "payment_intent", "transfer_group")...)
	out = append(out, reads("/v1/refunds", "refund", "refund", "charge", "payment_intent")...)
	return append(out, reads("/v1/transfers", "transfer", "transfer", "destination", "transfer_group")...)
}

func billingRoutes() []route {
	out := []route{
		post("/v1/subscriptions", "subscription.create", subscriptionCreate, `add_invoice_items application_fee_percent
			automatic_tax backdate_start_date billing_cycle_anchor billing_cycle_anchor_config billing_mode
			billing_schedules billing_thresholds cancel_at cancel_at_period_end collection_method currency customer
			customer_account days_until_due default_payment_method default_source default_tax_rates description discounts
			invoice_settings items metadata off_session on_behalf_of payment_behavior payment_settings
			pending_invoice_item_interval proration_behavior transfer_data trial_end trial_from_plan trial_period_days
			trial_settings`),
		post("/v1/subscriptions/{id}", "subscription.update", subscriptionUpdate, "*"),
		del("/v1/subscriptions/{id}", "subscription.cancel", subscriptionCancel),
		get("/v1/subscriptions", "subscription.list", subscriptionList),
		get("/v1/subscriptions/{id}", "subscription.get", getOf("subscription")),
		get("/v1/subscriptions/search", "subscription.search", searchOf("subscription")),
		post("/v1/invoices", "invoice.create", invoiceCreate, `account_tax_ids application_fee_amount auto_advance
			automatic_tax automatically_finalizes_at collection_method currency custom_fields customer customer_account
			days_until_due default_payment_method default_source default_tax_rates description discounts due_date
			effective_at footer from_invoice issuer metadata number on_behalf_of payment_settings
			pending_invoice_items_behavior rendering shipping_cost shipping_details statement_descriptor subscription
			transfer_data`),
		post("/v1/invoices/{id}", "invoice.update", updateOf("invoice", "invoice.updated", "description", "footer"), "*"),
		post("/v1/invoices/{id}/finalize", "invoice.finalize", invoiceFinalize, "auto_advance"),
		post("/v1/invoices/{id}/pay", "invoice.pay", invoicePay, "forgive mandate off_session paid_out_of_band payment_method source"),
		post("/v1/invoices/{id}/void", "invoice.void", invoiceVoid, ""),
		post("/v1/invoices/{id}/send", "invoice.send", invoiceSend, ""),
		del("/v1/invoices/{id}", "invoice.delete", invoiceDelete),
		get("/v1/invoices/search", "invoice.search", searchOf("invoice")),
		post("/v1/invoiceitems", "invoice_item.create", invoiceItemCreate, `amount currency customer customer_account
			description discountable discounts invoice metadata period price_data pricing quantity quantity_decimal
			subscription tax_behavior tax_code tax_rates unit_amount_decimal`),
		post("/v1/credit_notes", "credit_note.create", creditNoteCreate, `amount credit_amount effective_at email_type
			invoice lines memo metadata out_of_band_amount reason refund_amount refunds shipping_cost`),
		post("/v1/billing/meter_events", "meter_event.create", meterEventCreate, "event_name identifier payload timestamp"),
	}
	out = append(out, reads("/v1/invoices", "invoice", "invoice", "customer", "status", "subscription", "collection_method")...)
	out = append(out, reads("/v1/invoiceitems", "invoiceitem", "invoice_item", "customer", "invoice")...)
	return append(out, reads("/v1/credit_notes", "credit_note", "credit_note", "customer", "invoice")...)
}

func otherRoutes() []route {
	out := []route{
		post("/v1/customers", "customer.create", customerCreate, `address balance business_name cash_balance description
			email individual_name invoice_prefix invoice_settings metadata name next_invoice_sequence payment_method phone
			preferred_locales shipping source tax tax_exempt tax_id_data test_clock validate`),
		post("/v1/customers/{id}", "customer.update", customerUpdate, "*"),
		del("/v1/customers/{id}", "customer.delete", customerDelete),
		get("/v1/customers", "customer.list", listOf("customer", "email")),
		get("/v1/customers/{id}", "customer.get", customerGet),
		get("/v1/customers/search", "customer.search", searchOf("customer")),
		post("/v1/customers/{id}/balance_transactions", "customer_balance_transaction.create", balanceTransactionCreate,
			"amount currency description metadata"),
		get("/v1/customers/{id}/balance_transactions", "customer_balance_transaction.list",
			ownedList("customer", "customer_balance_transaction", "customer")),
		get("/v1/customers/{id}/balance_transactions/{id}", "customer_balance_transaction.get", balanceTransactionGet),
		post("/v1/setup_intents", "setup_intent.create", setupIntentCreate, `attach_to_self automatic_payment_methods
			confirm confirmation_token customer customer_account description excluded_payment_method_types
			flow_directions mandate_data metadata on_behalf_of payment_method payment_method_configuration
			payment_method_data payment_method_options payment_method_types return_url single_use usage use_stripe_sdk`),
		post("/v1/setup_intents/{id}", "setup_intent.update", updateOf("setup_intent", "", "description"), "*"),
		post("/v1/setup_intents/{id}/confirm", "setup_intent.confirm", setupIntentConfirm, `confirmation_token
			mandate_data payment_method payment_method_data payment_method_options return_url use_stripe_sdk`),
		post("/v1/setup_intents/{id}/cancel", "setup_intent.cancel", setupIntentCancel, "cancellation_reason"),
		post("/v1/checkout/sessions", "checkout_session.create", sessionCreate, `adaptive_pricing after_expiration
			allow_promotion_codes automatic_tax billing_address_collection branding_settings cancel_url
			client_reference_id consent_collection currency custom_fields custom_text customer customer_account
			customer_creation customer_email customer_update discounts excluded_payment_method_types expires_at
			integration_identifier invoice_creation line_items locale managed_payments metadata mode name_collection
			optional_items origin_context payment_intent_data payment_method_collection payment_method_configuration
			payment_method_data payment_method_options payment_method_types permissions phone_number_collection
			redirect_on_completion return_url saved_payment_method_options setup_intent_data shipping_address_collection
			shipping_options submit_type subscription_data success_url tax_id_collection ui_mode wallet_options`),
		post("/v1/checkout/sessions/{id}", "checkout_session.update", updateOf("checkout.session", ""), "*"),
		post("/v1/checkout/sessions/{id}/expire", "checkout_session.expire", sessionExpire, ""),
		get("/v1/account", "account.get", accountGet),
		get("/v1/accounts/{id}", "account.get", accountGet),
		get("/v1/balance", "balance.get", balanceGet),
		get("/v1/events", "event.list", eventList),
		get("/v1/events/{id}", "event.get", eventGet),
	}
	out = append(out, reads("/v1/setup_intents", "setup_intent", "setup_intent", "customer", "payment_method")...)
	return append(out, reads("/v1/checkout/sessions", "checkout.session", "checkout_session",
		"customer", "payment_intent", "subscription", "status")...)
}

func v2Routes() []route {
	return []route{
		post("/v2/core/event_destinations", "v2.event_destination.create", destinationCreate, `name description type
			event_payload enabled_events events_from include metadata snapshot_api_version amazon_eventbridge
			azure_event_grid webhook_endpoint`),
		post("/v2/core/event_destinations/{id}", "v2.event_destination.update", destinationUpdate, "*"),
		del("/v2/core/event_destinations/{id}", "v2.event_destination.delete", destinationDelete),
		post("/v2/core/event_destinations/{id}/enable", "v2.event_destination.enable", destinationSwitch("enabled"), "*"),
		post("/v2/core/event_destinations/{id}/disable", "v2.event_destination.disable", destinationSwitch("disabled"), "*"),
		get("/v2/core/event_destinations", "v2.event_destination.list", listV2("v2.core.event_destination")),
		get("/v2/core/event_destinations/{id}", "v2.event_destination.get", getOf("v2.core.event_destination")),
		post("/v2/core/accounts", "v2.account.create", accountCreate, "*"),
		post("/v2/core/accounts/{id}", "v2.account.update", accountUpdate, "*"),
		post("/v2/core/accounts/{id}/close", "v2.account.close", accountClose, "*"),
		get("/v2/core/accounts", "v2.account.list", listV2("v2.core.account")),
		get("/v2/core/accounts/{id}", "v2.account.get", getOf("v2.core.account")),
	}
}
