// A fake's admin API, and a place where its webhooks arrive.
import { createServer } from "node:http";
import { connect } from "node:net";
import { Agent } from "node:https";

// address reads where a fake stands, as its test names it.
export function address(variable) {
  const url = process.env[variable];
  if (!url) {
    throw new Error(`${variable} is missing: start samekey fake and set it to the fake's address, as http://127.0.0.1:12111`);
  }
  return url;
}

// Fake scripts one fake provider.
export class Fake {
  constructor(url) {
    this.url = url;
  }

  async admin(method, path, body) {
    const answer = await fetch(`${this.url}/_fake${path}`, { method, body: body && JSON.stringify(body) });
    const value = answer.status === 204 ? undefined : await answer.json();
    if (!answer.ok) {
      throw new Error(`${method} ${path}: ${answer.status} ${value.error}`);
    }
    return value;
  }

  reset() {
    return this.admin("POST", "/reset");
  }

  inject(kind, operation, more) {
    return this.admin("POST", "/faults", { kind, operation, ...more });
  }

  async seed(type, object = {}) {
    return (await this.admin("POST", "/seed", { type, object })).id;
  }

  advance(duration) {
    return this.admin("POST", "/advance", { duration });
  }

  effects() {
    return this.admin("GET", "/effects");
  }
}

// Receiver is a service's endpoint for webhooks.
export class Receiver {
  #server;
  #arrived = [];
  #waiting = [];

  async listen() {
    this.#server = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) {
        parts.push(part);
      }
      response.end();
      const webhook = { headers: request.headers, body: Buffer.concat(parts) };
      const first = this.#waiting.shift();
      first ? first(webhook) : this.#arrived.push(webhook);
    });
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${this.#server.address().port}/webhooks`;
  }

  // next waits for a webhook.
  next() {
    return this.#arrived.length > 0 ? this.#arrived.shift() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

// AgentTo connects an SDK whose hosts are fixed to a fake: it opens a plain
// connection to url, whatever host is asked for.
export class AgentTo extends Agent {
  #url;

  constructor(url) {
    super({ keepAlive: false });
    this.#url = new URL(url);
  }

  createConnection() {
    return connect(Number(this.#url.port), this.#url.hostname);
  }
}
