// A receiver of signed webhooks with node:http alone.
//
// The order matters: bound the body, verify its bytes as sent, store the event
// under its id, answer, and only then parse and work.
import { createServer } from 'node:http';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

const MAX_BODY = 64 * 1024; // events are a few KB

if (!process.env.WEBHOOK_SECRET) {
  console.error('WEBHOOK_SECRET is not set'); // never run with a default
  process.exit(1);
}
// During a rotation the previous secret is accepted beside the current one.
// Webhook throws on a secret that is empty or not base64.
const webhooks = [process.env.WEBHOOK_SECRET, process.env.WEBHOOK_SECRET_PREVIOUS]
  .filter(Boolean)
  .map((secret) => new Webhook(secret));

// The events by webhook-id. In a real system this is a table with the id as its
// primary key: the insert tells a duplicate, also between two instances, and an
// answered event survives a restart.
const inbox = new Map();

// Resolves to the body's bytes, or to null as soon as they exceed MAX_BODY: a
// Content-Length may be absent, so the bytes are counted.
function readBody(req) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    let size = 0;
    req.on('data', (chunk) => {
      size += chunk.length;
      if (size <= MAX_BODY) return chunks.push(chunk);
      req.pause();
      resolve(null);
    });
    req.on('end', () => resolve(Buffer.concat(chunks)));
    req.on('error', reject); // the sender went away or took too long
  });
}

function authentic(body, headers) {
  for (const webhook of webhooks) {
    try {
      // jsonParse: false, or an authentic body that is not JSON throws a
      // SyntaxError and is refused for ever.
      webhook.verify(body, headers, { jsonParse: false });
      return true;
    } catch (err) {
      if (!(err instanceof WebhookVerificationError)) throw err;
    }
  }
  return false;
}

async function handle(id) {
  const entry = inbox.get(id);
  try {
    const event = JSON.parse(entry.body);
    if (typeof event?.type !== 'string') throw new Error('the event has no type');
    // The work goes here. It may be cut off and run again: make it idempotent.
    entry.state = 'processed';
  } catch (err) {
    // The sender was answered and will not send again, so the event stays, for
    // a rerun or a person.
    entry.state = 'failed';
    entry.error = String(err);
  }
}

async function receive(req, res) {
  if (req.url.split('?')[0] !== '/webhooks') return res.writeHead(404).end();
  if (req.method !== 'POST') return res.writeHead(405, { Allow: 'POST' }).end();

  const body = await readBody(req);
  // Closing is what stops the sender; without it Node reads the rest.
  if (body === null) return res.writeHead(413, { Connection: 'close' }).end();
  if (!authentic(body, req.headers)) {
    return res.writeHead(401).end(); // for whatever reason: a forger learns nothing
  }
  const id = req.headers['webhook-id'];
  if (!inbox.has(id)) {
    inbox.set(id, { body, state: 'received' });
    setImmediate(handle, id);
  }
  res.writeHead(204).end(); // a duplicate as well: the sender asks whether it arrived
}

// requestTimeout: a sender that stalls holds no connection for long.
const server = createServer({ requestTimeout: 30_000 }, (req, res) => {
  receive(req, res).catch((err) => {
    if (req.destroyed) return; // nobody to answer
    console.error(err);
    res.writeHead(500).end();
  });
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
