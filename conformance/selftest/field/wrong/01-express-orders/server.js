// Order service: receives order events from the shop platform (Standard Webhooks)
// and hands them to the order worker. Express 4.
//
// Field subject of the self test; ../EXPECTED.md says what is wrong with it.
'use strict';

const crypto = require('crypto');
const express = require('express');

const TOLERANCE_SECONDS = 5 * 60;

const secrets = [process.env.WEBHOOK_SECRET, process.env.WEBHOOK_SECRET_PREVIOUS]
  .filter(Boolean)
  .map((s) => Buffer.from(s.replace(/^whsec_/, ''), 'base64'));

if (!process.env.WEBHOOK_SECRET) {
  console.error('WEBHOOK_SECRET is not set');
  process.exit(1);
}

const app = express();
app.disable('x-powered-by');
app.use(express.json({ limit: '64kb' }));

function verifyWebhook(req, res, next) {
  const id = req.get('webhook-id');
  const timestamp = req.get('webhook-timestamp');
  const signatures = req.get('webhook-signature');
  if (!id || !timestamp || !signatures) {
    return res.status(401).json({ error: 'missing webhook headers' });
  }

  const age = Math.floor(Date.now() / 1000) - Number(timestamp);
  if (!/^\d+$/.test(timestamp) || Math.abs(age) > TOLERANCE_SECONDS) {
    return res.status(401).json({ error: 'timestamp outside tolerance' });
  }

  const payload = JSON.stringify(req.body);
  const signed = `${id}.${timestamp}.${payload}`;
  for (const secret of secrets) {
    const expected = crypto.createHmac('sha256', secret).update(signed).digest();
    for (const candidate of signatures.split(' ')) {
      const [version, value] = candidate.split(',');
      if (version !== 'v1' || !value) continue;
      const given = Buffer.from(value, 'base64');
      if (given.length === expected.length && crypto.timingSafeEqual(given, expected)) {
        return next();
      }
    }
  }
  return res.status(401).json({ error: 'invalid signature' });
}

const seen = new Set();
const queue = [];

app.post('/webhooks', verifyWebhook, (req, res) => {
  const id = req.get('webhook-id');
  if (!seen.has(id)) {
    seen.add(id);
    queue.push(req.body);
    setImmediate(drain);
  }
  res.status(200).json({ received: true });
});

app.use((err, req, res, next) => {
  res.status(err.status || 500).json({ error: err.type || 'internal error' });
});

function drain() {
  while (queue.length > 0) {
    const event = queue.shift();
    switch (event.type) {
      case 'order.created':
      case 'order.shipped':
        console.log(`order event ${event.type} for order ${event.data && event.data.orderId}`);
        break;
      default:
        console.log(`ignoring event ${event.type}`);
    }
  }
}

const port = Number(process.env.PORT || 3000);
app.listen(port, '127.0.0.1', () => console.log(`listening on ${port}`));
