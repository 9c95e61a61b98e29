// The official stripe package, unmodified, against the fake: what it does as
// against Stripe, and which of its own errors what goes wrong becomes.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import Stripe from "stripe";
import { address, Fake, Receiver } from "../fake.js";

const url = new URL(address("STRIPE_FAKE"));
const fake = new Fake(url.origin);
const stripe = new Stripe("sk_test_node", { host: url.hostname, port: url.port, protocol: "http", maxNetworkRetries: 0 });

beforeEach(() => fake.reset());

const payment = { amount: 1250, currency: "eur", payment_method: "pm_card_visa", metadata: { order: "42" } };

test("create, confirm, capture, refund, cancel, read", async () => {
  const intent = await stripe.paymentIntents.create({ ...payment, capture_method: "manual" });
  assert.equal(intent.status, "requires_confirmation");
  assert.equal((await stripe.paymentIntents.confirm(intent.id)).status, "requires_capture");
  const captured = await stripe.paymentIntents.capture(intent.id, { amount_to_capture: 1000 });
  assert.equal(captured.status, "succeeded");
  assert.equal(captured.amount_received, 1000);
  const refund = await stripe.refunds.create({ payment_intent: intent.id, amount: 400 });
  assert.equal(refund.status, "succeeded");

  const other = await stripe.paymentIntents.create(payment);
  assert.equal((await stripe.paymentIntents.cancel(other.id)).status, "canceled");

  const read = await stripe.paymentIntents.retrieve(intent.id, { expand: ["latest_charge"] });
  assert.equal(read.latest_charge.amount_refunded, 400);
  const { effects, duplicates } = await fake.effects();
  assert.deepEqual(effects, {
    "payment_intent.create": 2,
    "payment_intent.confirm": 1,
    "payment_intent.capture": 1,
    "payment_intent.cancel": 1,
    "refund.create": 1,
  });
  assert.equal(duplicates, 0);
});

test("lists of several pages, search and events", async () => {
  const customers = [];
  for (let n = 0; n < 5; n++) {
    customers.push(await stripe.customers.create({ email: `c${n}@example.com`, metadata: { group: "node" } }));
  }
  const listed = await stripe.customers.list({ limit: 2 }).autoPagingToArray({ limit: 100 });
  assert.deepEqual(listed.map((c) => c.id), customers.map((c) => c.id).reverse());

  const query = "metadata['group']:'node'";
  assert.equal((await stripe.customers.search({ query })).data.length, 0, "search lags");
  await fake.advance("2m");
  assert.equal((await stripe.customers.search({ query })).data.length, 5);

  const events = await stripe.events.list({ type: "customer.created", limit: 1 });
  assert.equal(events.data[0].data.object.id, customers[4].id);
  assert.ok(events.data[0].request.idempotency_key, "an event names the request's key");
});

test("a repeated key gets the first answer, a day later a new one", async () => {
  const options = { idempotencyKey: "order-42" };
  const first = await stripe.customers.create({ description: "one" }, options);
  const again = await stripe.customers.create({ description: "one" }, options);
  assert.equal(again.id, first.id);
  assert.equal(again.lastResponse.headers["idempotent-replayed"], "true");
  assert.equal(first.lastResponse.headers["idempotent-replayed"], undefined);
  assert.equal(again.lastResponse.headers["original-request"], first.lastResponse.requestId);
  await fake.advance("25h");
  const late = await stripe.customers.create({ description: "one" }, options);
  assert.notEqual(late.id, first.id);
  assert.equal((await fake.effects()).duplicates, 1);
});

test("another body under a known key is a StripeIdempotencyError", async () => {
  const options = { idempotencyKey: "order-42" };
  await stripe.customers.create({ description: "one" }, options);
  await assert.rejects(stripe.customers.create({ description: "two" }, options), (error) => {
    assert.ok(error instanceof Stripe.errors.StripeIdempotencyError);
    assert.equal(error.statusCode, 400);
    return true;
  });
  assert.equal((await fake.effects()).total, 1);
});

test("a key that is in use is a conflict, while its request goes on", async () => {
  const options = { idempotencyKey: "order-42" };
  await fake.inject("slow_apply", "customer.create");
  const first = stripe.customers.create({ description: "one" }, options);
  await waitFor(async () => (await fake.admin("GET", "/requests")).length === 1);
  await assert.rejects(stripe.customers.create({ description: "one" }, options), (error) => {
    assert.ok(error instanceof Stripe.errors.StripeError);
    assert.equal(error.statusCode, 409);
    assert.equal(error.code, "idempotency_key_in_use");
    return true;
  });
  await fake.admin("POST", "/release");
  assert.ok((await first).id);
  assert.equal((await fake.effects()).total, 1);
});

test("a lost answer is sent again by the SDK itself, and replayed", async () => {
  await fake.inject("drop_after_apply", "refund.create");
  const charge = await fake.seed("charge");
  const refund = await stripe.refunds.create({ charge, amount: 100 });
  assert.equal(refund.lastResponse.headers["idempotent-replayed"], "true");
  const { effects, requests } = await fake.effects();
  assert.deepEqual([effects["refund.create"], requests], [1, 2]);
});

test("two lost answers are a StripeConnectionError, and the same key then a replay", async () => {
  await fake.inject("drop_after_apply", "refund.create", { times: 2 });
  const charge = await fake.seed("charge");
  const options = { idempotencyKey: "refund-1" };
  await assert.rejects(stripe.refunds.create({ charge, amount: 100 }, options), Stripe.errors.StripeConnectionError);
  const refund = await stripe.refunds.create({ charge, amount: 100 }, options);
  assert.equal(refund.amount, 100);
  assert.equal((await fake.effects()).effects["refund.create"], 1);
});

test("what goes wrong becomes the SDK's own errors", async (t) => {
  const e = Stripe.errors;
  const decline = { ...payment, payment_method: "pm_card_chargeDeclined", confirm: true };
  const create = () => stripe.customers.create({ description: "x" });
  for (const [name, arm, call, type, code] of [
    ["decline", () => {}, () => stripe.paymentIntents.create(decline), e.StripeCardError, "card_declined"],
    ["missing object", () => {}, () => stripe.customers.retrieve("cus_none"), e.StripeInvalidRequestError, "resource_missing"],
    ["unknown parameter", () => {}, () => stripe.customers.create({ nonsense: "1" }), e.StripeInvalidRequestError, "parameter_unknown"],
    ["rate limit", () => fake.inject("429"), create, e.StripeRateLimitError, "rate_limit"],
    ["credential", () => fake.inject("401"), create, e.StripeAuthenticationError, undefined],
    ["server error", () => fake.inject("500"), create, e.StripeAPIError, undefined],
    ["proxy's page", () => fake.inject("502_html"), create, e.StripeAPIError, undefined],
    ["truncated answer", () => fake.inject("truncate"), create, e.StripeConnectionError, undefined],
  ]) {
    await t.test(name, async () => {
      await fake.reset();
      await arm();
      await assert.rejects(call(), (error) => {
        assert.ok(error instanceof type, `${error.constructor.name}: ${error.message}`);
        assert.equal(error.code, code);
        return true;
      });
    });
  }
});

test("a decline keeps its verdict under its key", async () => {
  const options = { idempotencyKey: "pay-1" };
  const decline = { ...payment, payment_method: "pm_card_chargeDeclinedInsufficientFunds", confirm: true };
  for (const replayed of [undefined, "true"]) {
    await assert.rejects(stripe.paymentIntents.create(decline, options), (error) => {
      assert.ok(error instanceof Stripe.errors.StripeCardError);
      assert.equal(error.decline_code, "insufficient_funds");
      assert.equal(error.payment_intent.status, "requires_payment_method");
      assert.equal(error.headers["idempotent-replayed"], replayed);
      return true;
    });
  }
  assert.equal((await fake.effects()).total, 0);
});

test("webhooks pass the SDK's own check", async () => {
  const receiver = new Receiver();
  try {
    const { secret } = await fake.admin("POST", "/webhooks", { url: await receiver.listen(), events: ["customer.*"], repeat: 2 });
    const customer = await stripe.customers.create({ description: 'a <b> & "c"' }, { idempotencyKey: "k" });
    const webhook = await receiver.next();
    const event = stripe.webhooks.constructEvent(webhook.body, webhook.headers["stripe-signature"], secret);
    assert.equal(event.type, "customer.created");
    assert.equal(event.data.object.id, customer.id);
    assert.equal(event.request.idempotency_key, "k");
    const again = await receiver.next();
    assert.equal(JSON.parse(again.body).id, event.id, "an event may arrive twice");
    assert.throws(
      () => stripe.webhooks.constructEvent(webhook.body, webhook.headers["stripe-signature"], "whsec_other"),
      Stripe.errors.StripeSignatureVerificationError,
    );
  } finally {
    receiver.close();
    await fake.admin("DELETE", "/webhooks");
  }
});

test("API v2: a resend gives the object as it is now", async () => {
  const options = { idempotencyKey: "account-1" };
  const first = await stripe.v2.core.accounts.create({ display_name: "Shop" }, options);
  await stripe.v2.core.accounts.update(first.id, { display_name: "Shop 2" });
  const again = await stripe.v2.core.accounts.create({ display_name: "Shop" }, options);
  assert.deepEqual([again.id, again.display_name], [first.id, "Shop 2"]);
  assert.equal((await stripe.v2.core.accounts.retrieve(first.id)).display_name, "Shop 2");
  const listed = await stripe.v2.core.accounts.list({ limit: 5 });
  assert.deepEqual(listed.data.map((a) => a.id), [first.id]);
  assert.deepEqual((await fake.effects()).effects, { "v2.account.create": 1, "v2.account.update": 1 });
});

// waitFor asks until something is so, for 20 seconds.
async function waitFor(so) {
  const end = Date.now() + 20_000;
  while (!(await so())) {
    assert.ok(Date.now() < end, "it did not happen within 20 s");
  }
}
