// The adapter protocol around the sender: one message a line, requests on stdin,
// answers on stdout, and everything else on stderr.
//
//   whconform sender -- node adapter.mjs
import { createInterface } from 'node:readline';
import { SCHEDULE, Sender } from './sender.mjs';

// The sender's timers cannot be moved, so the run waits for every delay. The last
// is longer than an attempt, so that one that hangs can be told from the next.
const SHORT = { schedule: [0, 0.5, 1.5, 7], timeout: 1.5 };

let sender;

const methods = {
  initialize({ protocolVersion }) {
    if (protocolVersion !== 1) throw new Refusal(-32602, 'this adapter speaks version 1');
    sender = new Sender(SHORT);
    return {
      protocolVersion: 1,
      name: 'example-node',
      version: '1.0',
      capabilities: Object.keys(methods).filter((name) => !['initialize', 'shutdown'].includes(name)),
      retrySchedule: SHORT.schedule,
      defaultSchedule: SCHEDULE,
      jitter: { low: 0, high: 0 },
      granularity: 1, // what a busy machine adds to setTimeout
      timeout: SHORT.timeout,
    };
  },
  'endpoint.create'({ url, eventTypes }) {
    const { id, secret } = sender.createEndpoint(url, eventTypes);
    return { endpointId: id, secret };
  },
  'endpoint.rotateSecret': ({ endpointId }) => ({ secret: sender.rotateSecret(endpointId) }),
  'event.publish'({ type, payload, payloadBase64 }) {
    const exact = payloadBase64 === undefined ? payload : Buffer.from(payloadBase64, 'base64');
    return { messageIds: sender.publish(type, exact) };
  },
  shutdown: () => null,
};

class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function answer({ id, method, params }) {
  try {
    if (!Object.hasOwn(methods, method)) throw new Refusal(-32601, `there is no method ${method}`);
    return { jsonrpc: '2.0', id, result: methods[method](params ?? {}) };
  } catch (err) {
    return { jsonrpc: '2.0', id, error: { code: err instanceof Refusal ? err.code : -32000, message: err.message } };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.id === undefined) continue; // cancel: nothing here takes long
  process.stdout.write(`${JSON.stringify(answer(request))}\n`);
}
process.exit(); // what was not delivered is lost
