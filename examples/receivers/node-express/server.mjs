// A receiver of signed webhooks with Express 5.
//
// The order matters: bound the body, verify its bytes as sent, store the event
// under its id, answer, and only then parse and work.
import express from 'express';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

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

const app = express();
app.disable('x-powered-by');

// type: every body, also one without a Content-Type, which '*/*' skips.
// inflate: the signature is over the bytes as sent, not over an unpacked copy.
const rawBody = express.raw({ type: () => true, limit: '64kb', inflate: false });

app.post('/webhooks', rawBody, (req, res) => {
  const body = req.body ?? Buffer.alloc(0); // undefined where no body was sent
  if (!authentic(body, req.headers)) {
    return res.sendStatus(401); // for whatever reason: a forger learns nothing
  }
  const id = req.headers['webhook-id'];
  if (!inbox.has(id)) {
    inbox.set(id, { body, state: 'received' });
    setImmediate(handle, id);
  }
  res.sendStatus(204); // a duplicate as well: the sender asks whether it arrived
});

// Express's own error page shows the stack. err.status is 413 for a large body.
app.use((err, req, res, next) => {
  if (res.headersSent) return next(err);
  if (!err.status) console.error(err);
  res.sendStatus(err.status ?? 500);
});

const server = app.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', (err) => {
  if (err) throw err;
});
// A sender that stalls holds no connection for long. Both, for Node takes the
// larger of the two as the bound on the whole request.
server.headersTimeout = 30_000;
server.requestTimeout = 30_000;
