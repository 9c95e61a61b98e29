// The official @paypal/paypal-server-sdk, unmodified, against the fake: what it
// does as against PayPal, and which of its own errors what goes wrong becomes.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { beforeEach, test } from "node:test";
import {
  ApiError,
  Client,
  CustomError,
  DefaultError,
  Environment,
  OrdersController,
  PaymentsController,
  SubscriptionError,
  SubscriptionsController,
  TransactionSearchController,
  VaultController,
} from "@paypal/paypal-server-sdk";
import { address, AgentTo, Fake, Receiver } from "../fake.js";

const url = address("PAYPAL_FAKE");
const fake = new Fake(url);

// newClient returns a client that has no token yet: a reset forgets tokens.
function newClient() {
  return new Client({
    environment: Environment.Sandbox,
    clientCredentialsAuthCredentials: { oAuthClientId: "id", oAuthClientSecret: "secret" },
    httpClientOptions: { httpsAgent: new AgentTo(url) },
  });
}

let client, orders, payments;
beforeEach(async () => {
  await fake.reset();
  client = newClient();
  orders = new OrdersController(client);
  payments = new PaymentsController(client);
});

const prefer = "return=representation";
const order = (intent, value = "12.50") => ({
  intent,
  purchaseUnits: [{ customId: "order-42", amount: { currencyCode: "EUR", value } }],
});

// issue checks that an error is the SDK's own for PayPal's refusals.
function issue(status, name) {
  return (error) => {
    assert.ok(error instanceof CustomError && error instanceof ApiError, `${error.constructor.name}: ${error.message}`);
    assert.equal(error.statusCode, status);
    const refusal = JSON.parse(error.body); // the SDK sets error.result for some statuses only
    assert.equal(refusal.details?.[0]?.issue ?? refusal.name, name);
    assert.ok(error.headers["paypal-debug-id"], "an answer carries PayPal's debug id");
    return true;
  };
}

test("create, approve, capture, refund, read", async () => {
  const created = await orders.createOrder({ body: order("CAPTURE"), paypalRequestId: "o1", prefer });
  assert.equal(created.statusCode, 201);
  await assert.rejects(orders.captureOrder({ id: created.result.id, paypalRequestId: "c0" }), issue(422, "ORDER_NOT_APPROVED"));
  await fake.seed("approval", { id: created.result.id });
  const paid = await orders.captureOrder({ id: created.result.id, paypalRequestId: "c1", prefer });
  const capture = paid.result.purchaseUnits[0].payments.captures[0];
  assert.equal(capture.status, "COMPLETED");
  const amount = { currencyCode: "EUR", value: "2.50" };
  const refund = await payments.refundCapturedPayment({ captureId: capture.id, paypalRequestId: "r1", prefer, body: { amount } });
  assert.equal(refund.result.status, "COMPLETED");
  assert.equal((await payments.getCapturedPayment({ captureId: capture.id })).result.status, "PARTIALLY_REFUNDED");
  assert.equal((await payments.getRefund({ refundId: refund.result.id })).result.amount.value, "2.50");
  assert.equal((await orders.getOrder({ id: created.result.id })).result.status, "COMPLETED");
  const { effects, duplicates } = await fake.effects();
  assert.deepEqual(effects, { "order.create": 1, "order.capture": 1, "capture.refund": 1 });
  assert.equal(duplicates, 0);
});

test("authorize, capture, void", async () => {
  for (const last of ["capture", "void"]) {
    const created = await orders.createOrder({ body: order("AUTHORIZE"), paypalRequestId: `o-${last}`, prefer });
    await fake.seed("approval", { id: created.result.id });
    const { result } = await orders.authorizeOrder({ id: created.result.id, paypalRequestId: `a-${last}`, prefer });
    const authorizationId = result.purchaseUnits[0].payments.authorizations[0].id;
    if (last === "capture") {
      const captured = await payments.captureAuthorizedPayment({ authorizationId, paypalRequestId: "c1", prefer, body: {} });
      assert.equal(captured.result.status, "COMPLETED");
    } else {
      await payments.voidPayment({ authorizationId, paypalRequestId: "v1" });
      await assert.rejects(payments.voidPayment({ authorizationId, paypalRequestId: "v2" }), issue(422, "PREVIOUSLY_VOIDED"));
    }
    const read = await payments.getAuthorizedPayment({ authorizationId });
    assert.equal(read.result.status, last === "capture" ? "CAPTURED" : "VOIDED");
  }
});

test("a repeated request id gets the latest state: 201, then 200", async () => {
  const id = await fake.seed("approved_order", { value: "12.50", currency: "EUR" });
  const first = await orders.captureOrder({ id, paypalRequestId: "c1", prefer });
  const capture = first.result.purchaseUnits[0].payments.captures[0];
  await payments.refundCapturedPayment({ captureId: capture.id, paypalRequestId: "r1", body: { amount: capture.amount } });
  const again = await orders.captureOrder({ id, paypalRequestId: "c1", prefer });
  assert.deepEqual([first.statusCode, again.statusCode], [201, 200]);
  assert.equal(again.result.purchaseUnits[0].payments.captures[0].status, "REFUNDED");
  await fake.advance("7h");
  client = newClient();
  await assert.rejects(new OrdersController(client).captureOrder({ id, paypalRequestId: "c1" }), issue(422, "ORDER_ALREADY_CAPTURED"));
  assert.equal((await fake.effects()).effects["order.capture"], 1);
});

test("a request id that is in use is a conflict, while its request goes on", async () => {
  const id = await fake.seed("approved_order", { value: "12.50", currency: "EUR" });
  await fake.inject("slow_apply", "order.capture");
  const first = orders.captureOrder({ id, paypalRequestId: "c1" });
  await waitFor(async () => (await fake.admin("GET", "/requests?operation=order.capture")).length === 1);
  await assert.rejects(orders.captureOrder({ id, paypalRequestId: "c1" }), issue(409, "PREVIOUS_REQUEST_IN_PROGRESS"));
  await fake.admin("POST", "/release");
  assert.equal((await first).statusCode, 201);
  assert.equal((await fake.effects()).effects["order.capture"], 1);
});

test("another body under a known id is refused where PayPal compares", async () => {
  const vault = new VaultController(client);
  const token = (name) => ({ paymentSource: { card: { name, number: "4111111111111111", expiry: "2030-01" } } });
  await vault.createSetupToken({ paypalRequestId: "s1", body: token("A") });
  await assert.rejects(vault.createSetupToken({ paypalRequestId: "s1", body: token("B") }), (error) => {
    assert.equal(error.statusCode, 422);
    assert.ok(error instanceof ApiError);
    return true;
  });
});

test("a lost answer is an error, and the same id then the payment that happened", async () => {
  const id = await fake.seed("approved_order", { value: "12.50", currency: "EUR" });
  await fake.inject("drop_after_apply", "order.capture");
  await assert.rejects(orders.captureOrder({ id, paypalRequestId: "c1" }), (error) => !(error instanceof ApiError));
  const again = await orders.captureOrder({ id, paypalRequestId: "c1", prefer });
  assert.equal(again.statusCode, 200);
  assert.equal((await fake.effects()).effects["order.capture"], 1);
});

test("what goes wrong becomes the SDK's own errors", async (t) => {
  const create = () => orders.createOrder({ body: order("CAPTURE"), paypalRequestId: "o1" });
  for (const [name, arm, call, status, code] of [
    ["bad amount", () => {}, () => orders.createOrder({ body: order("CAPTURE", "1.234") }), 422, "DECIMAL_PRECISION"],
    ["missing order", () => {}, () => orders.getOrder({ id: "NONE" }), 404, "INVALID_RESOURCE_ID"],
    ["rate limit", () => fake.inject("429"), create, 429, "RATE_LIMIT_REACHED"],
    ["server error", () => fake.inject("500"), create, 500, "INTERNAL_SERVER_ERROR"],
    ["unavailable", () => fake.inject("503"), create, 503, "SERVICE_UNAVAILABLE"],
    ["credential", () => fake.inject("401"), create, 401, "AUTHENTICATION_FAILURE"],
    ["decline", async () => {}, async () => {
      const id = await fake.seed("approved_order", { value: "12.50", currency: "EUR", outcome: "INSTRUMENT_DECLINED" });
      return orders.captureOrder({ id, paypalRequestId: "c1" });
    }, 422, "INSTRUMENT_DECLINED"],
  ]) {
    await t.test(name, async () => {
      await arm();
      await assert.rejects(call(), issue(status, code));
    });
  }
});

test("subscriptions, lists and transaction search", async () => {
  const subscriptions = new SubscriptionsController(client);
  const planId = await fake.seed("active_plan");
  const made = await subscriptions.createSubscription({ paypalRequestId: "s1", prefer, body: { planId, customId: "s-42" } });
  await fake.seed("approval", { id: made.result.id });
  await subscriptions.suspendSubscription({ id: made.result.id, body: { reason: "pause" } });
  await assert.rejects(subscriptions.suspendSubscription({ id: made.result.id, body: { reason: "pause" } }), (error) => {
    assert.ok(error instanceof SubscriptionError);
    assert.equal(error.statusCode, 422);
    return true;
  });
  const listed = await subscriptions.listSubscriptions({ planIds: planId });
  assert.equal(listed.result.subscriptions[0].status, "SUSPENDED");

  await fake.seed("completed_capture", { value: "12.50", currency: "EUR", customID: "order-42" });
  await fake.advance("4h");
  const now = Date.parse((await fake.admin("GET", "/clock")).now);
  const stamp = (hours) => new Date(now + hours * 3_600_000).toISOString();
  const search = new TransactionSearchController(client);
  const found = await search.searchTransactions({ startDate: stamp(-24), endDate: stamp(0), fields: "all" });
  assert.equal(found.result.transactionDetails.length, 1);
  await assert.rejects(search.searchTransactions({ startDate: stamp(-24 * 60), endDate: stamp(0) }), (error) => {
    assert.ok(error instanceof DefaultError || error instanceof ApiError);
    assert.equal(error.statusCode, 400);
    return true;
  });
});

test("webhooks carry a certificate of the fake's authority", async () => {
  const receiver = new Receiver();
  try {
    const endpoint = await fake.admin("POST", "/webhooks", { url: await receiver.listen() });
    const id = await fake.seed("approved_order", { value: "12.50", currency: "EUR" });
    await orders.captureOrder({ id, paypalRequestId: "c1" });
    const { headers, body } = await receiver.next();
    assert.equal(JSON.parse(body).event_type, "PAYMENT.CAPTURE.COMPLETED");
    const chain = await (await fetch(headers["paypal-cert-url"])).text();
    assert.ok(new X509Certificate(chain).verify(new X509Certificate(endpoint.certificate_authority).publicKey));

    const login = await fetch(`${url}/v1/oauth2/token`, {
      method: "POST",
      headers: { authorization: `Basic ${btoa("id:secret")}`, "content-type": "application/x-www-form-urlencoded" },
      body: "grant_type=client_credentials",
    });
    const check = await fetch(`${url}/v1/notifications/verify-webhook-signature`, {
      method: "POST",
      headers: { authorization: `Bearer ${(await login.json()).access_token}`, "content-type": "application/json" },
      body: JSON.stringify({
        auth_algo: headers["paypal-auth-algo"],
        cert_url: headers["paypal-cert-url"],
        transmission_id: headers["paypal-transmission-id"],
        transmission_sig: headers["paypal-transmission-sig"],
        transmission_time: headers["paypal-transmission-time"],
        webhook_id: endpoint.id,
        webhook_event: JSON.parse(body),
      }),
    });
    assert.deepEqual(await check.json(), { verification_status: "SUCCESS" });
  } finally {
    receiver.close();
    await fake.admin("DELETE", "/webhooks");
  }
});

// waitFor asks until something is so, for 20 seconds.
async function waitFor(so) {
  const end = Date.now() + 20_000;
  while (!(await so())) {
    assert.ok(Date.now() < end, "it did not happen within 20 s");
  }
}
