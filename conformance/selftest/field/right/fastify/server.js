// Booking service: receives events (Standard Webhooks) with Fastify. Raw bytes are
// read within a limit, verified, put into the inbox and acknowledged; the work is
// done afterwards.
//
// Field subject of the self test: meant to be right.
import Fastify from 'fastify';
import { Inbox } from './inbox.js';
import { refusal, secretsFromEnv } from './verify.js';

const MAX_BODY = 64 * 1024;
const MAX_DISCARD = 1024 * 1024;

let keys;
try {
  keys = secretsFromEnv(process.env);
} catch (err) {
  console.error(err.message);
  process.exit(1);
}

const inbox = await Inbox.open(process.env.INBOX_DIR || 'inbox');

// ---- background work -------------------------------------------------------------

const queue = [...inbox.pending];
let working = false;

async function work() {
  if (working) return;
  working = true;
  while (queue.length > 0) {
    const { id, body } = queue.shift();
    try {
      await apply(id, body);
      await inbox.mark(id, 'done');
    } catch (err) {
      // Acknowledged already, so the sender won't repeat it: keep it for a person
      app.log.error({ id, err: err.message }, 'event failed');
      await inbox.mark(id, 'failed').catch(() => {});
    }
  }
  working = false;
}

// Events are unordered hints that something changed; each step may run again.
async function apply(id, body) {
  const event = JSON.parse(body.toString('utf8'));
  switch (event?.type) {
    case 'booking.confirmed':
    case 'booking.cancelled':
      app.log.info({ id, type: event.type }, 'booking refreshed');
      break;
    default:
      app.log.info({ id, type: String(event?.type) }, 'event of no interest');
  }
}

// ---- receiving --------------------------------------------------------------------

const app = Fastify({
  logger: { level: process.env.LOG_LEVEL || 'warn' },
  bodyLimit: MAX_BODY,
  requestTimeout: 30_000,
  routerOptions: { ignoreTrailingSlash: true },
});

// Whatever the content type says, the body is bytes
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', (request, payload, done) => done(null, payload));
app.addHook('onRequest', async (request) => {
  delete request.raw.headers['content-type'];
});

// The body up to the limit, or null. Content-Length is asked first, then the bytes
// are counted, because it can lie or be missing.
async function readBody(stream, declared) {
  if (declared > MAX_BODY) return null;
  const chunks = [];
  let size = 0;
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > MAX_BODY) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

// Answers 413 at once, then throws away a bounded rest, so that a client still
// sending gets to read the answer.
function refuseTooLarge(request, reply) {
  reply.hijack();
  const { raw: res } = reply;
  const { raw: req } = request;
  const text = '{"error":"payload too large"}';
  res.writeHead(413, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  res.write(text);
  let discarded = 0;
  const finish = () => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(finish, 2000);
  req.on('data', (chunk) => {
    discarded += chunk.length;
    if (discarded > MAX_DISCARD) finish();
  });
  req.on('end', finish);
  req.on('error', finish);
  req.resume();
}

const single = (values) => (values && values.length === 1 ? values[0] : undefined);

app.post('/webhooks', async (request, reply) => {
  const body = await readBody(request.raw, Number(request.headers['content-length'] ?? 0));
  if (body === null) return refuseTooLarge(request, reply);

  const headers = request.raw.headersDistinct;
  const id = single(headers['webhook-id']);
  const reason = refusal(
    {
      id,
      timestamp: single(headers['webhook-timestamp']),
      signatures: headers['webhook-signature']?.join(' '),
      body,
    },
    keys,
    Math.floor(Date.now() / 1000),
  );
  if (reason) {
    request.log.warn({ id, reason }, 'refused');
    return reply.code(401).send({ error: 'unauthorized' });
  }

  if (await inbox.add(id, body)) {
    queue.push({ id, body });
    setImmediate(work);
  } else {
    request.log.info({ id }, 'duplicate, acknowledged');
  }
  return reply.code(200).send({ received: true });
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => app.close().then(() => process.exit(0)));
}

await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT || 3000) });
setImmediate(work);
