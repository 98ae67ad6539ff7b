// Notifier: receives events (Standard Webhooks) with node:http alone and posts a
// line to the team chat for each. No dependencies.
//
// Field subject of the self test; ../EXPECTED.md says what is wrong with it.
const http = require('http');
const crypto = require('crypto');

const MAX_BODY = 64 * 1024;
const TOLERANCE = 300;

if (!process.env.WEBHOOK_SECRET) {
  console.error('Please set WEBHOOK_SECRET');
  process.exit(1);
}
const secrets = [process.env.WEBHOOK_SECRET];
if (process.env.WEBHOOK_SECRET_PREVIOUS) secrets.push(process.env.WEBHOOK_SECRET_PREVIOUS);

function sign(secret, id, timestamp, raw) {
  const key = Buffer.from(secret.split('_')[1], 'base64');
  return crypto.createHmac('sha256', key)
    .update(`${id}.${timestamp}.`)
    .update(raw)
    .digest('base64');
}

function verify(headers, raw) {
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const list = headers['webhook-signature'];
  if (!id || !timestamp || !list) return false;

  const age = Math.abs(Date.now() / 1000 - parseInt(timestamp, 10));
  if (!(age <= TOLERANCE)) return false;

  for (const secret of secrets) {
    const expected = Buffer.from(sign(secret, id, timestamp, raw));
    for (const item of list.split(' ')) {
      const [version, signature] = item.split(',');
      if (version !== 'v1') continue;
      // constant-time comparison
      if (crypto.timingSafeEqual(Buffer.from(signature), expected)) return true;
    }
  }
  return false;
}

const handled = new Set();

const server = http.createServer((req, res) => {
  if (req.method !== 'POST' || req.url.split('?')[0] !== '/webhooks') {
    res.writeHead(404);
    return res.end();
  }

  if (Number(req.headers['content-length']) > MAX_BODY) {
    res.writeHead(413, { connection: 'close' });
    return res.end();
  }

  const chunks = [];
  let size = 0;
  let tooLarge = false;
  req.on('data', (chunk) => {
    size += chunk.length;
    if (size > MAX_BODY) {
      if (!tooLarge) {
        tooLarge = true;
        chunks.length = 0;
        res.writeHead(413, { connection: 'close' });
        res.end();
      }
      return;
    }
    chunks.push(chunk);
  });

  req.on('end', () => {
    if (tooLarge) return;
    const raw = Buffer.concat(chunks);
    const event = JSON.parse(raw.toString());
    console.log(`--> ${req.headers['webhook-id']} ${event.type} ${event.data.id ?? ''}`);

    if (!verify(req.headers, raw)) {
      res.writeHead(401, { 'content-type': 'application/json' });
      return res.end('{"error":"invalid signature"}');
    }

    const id = req.headers['webhook-id'];
    if (!handled.has(id)) {
      handled.add(id);
      setImmediate(notify, event);
    }
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end('{"ok":true}');
  });
});

function notify(event) {
  console.log(`[chat] ${event.type} at ${event.timestamp}`);
}

server.listen(process.env.PORT || 3000, '127.0.0.1');
