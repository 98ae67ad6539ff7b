// A webhook sender with what Node brings along, such as many services have: one
// secret an endpoint, the Standard Webhooks scheme, retries by setTimeout, all of
// it in memory.
//
// It is here to be judged. What it does right and wrong stands in README.md;
// copy reference/sender in its place.
import { createHmac, randomBytes, randomUUID } from 'node:crypto';

export const SCHEDULE = [0, 5, 60, 600, 3600]; // seconds before each attempt

export class Sender {
  #endpoints = new Map();

  constructor({ schedule = SCHEDULE, timeout = 15 } = {}) {
    this.schedule = schedule;
    this.timeout = timeout; // seconds, for a whole attempt
  }

  createEndpoint(url, eventTypes) {
    const endpoint = { id: `ep_${randomUUID()}`, url: new URL(url).href, eventTypes, secret: newSecret() };
    this.#endpoints.set(endpoint.id, endpoint);
    return endpoint;
  }

  rotateSecret(id) {
    const endpoint = this.#endpoints.get(id);
    if (!endpoint) throw new Error(`there is no endpoint ${id}`);
    endpoint.secret = newSecret();
    return endpoint.secret;
  }

  // Queues a message for each endpoint that gets this type, and returns their ids.
  publish(type, payload) {
    const body = Buffer.isBuffer(payload) ? payload : Buffer.from(JSON.stringify(payload));
    const messages = [...this.#endpoints.values()]
      .filter((endpoint) => !endpoint.eventTypes || endpoint.eventTypes.includes(type))
      .map((endpoint) => ({ id: `msg_${randomUUID()}`, endpoint, body }));
    for (const message of messages) this.#schedule(message, 0);
    return messages.map((message) => message.id);
  }

  #schedule(message, n) {
    if (n < this.schedule.length) setTimeout(() => this.#attempt(message, n), this.schedule[n] * 1000);
  }

  async #attempt({ id, endpoint, body }, n) {
    let delivered = false;
    try {
      const timestamp = Math.floor(Date.now() / 1000);
      const response = await fetch(endpoint.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': `${timestamp}`,
          'webhook-signature': sign(endpoint.secret, id, timestamp, body),
        },
        body,
        signal: AbortSignal.timeout(this.timeout * 1000),
      });
      delivered = response.ok;
    } catch (err) {
      console.error(`${id}, attempt ${n + 1}: ${err.cause ?? err}`);
    }
    if (!delivered) this.#schedule({ id, endpoint, body }, n + 1);
  }
}

function newSecret() {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

function sign(secret, id, timestamp, body) {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}
