// Payments API: one of its REST resources takes in the payment provider's events
// (Standard Webhooks). Express 5.
//
// Field subject of the self test; ../EXPECTED.md says what is wrong with it.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { EventEmitter } from 'node:events';
import express from 'express';

const { PORT = '3000', WEBHOOK_SECRET, WEBHOOK_SECRET_PREVIOUS } = process.env;
if (!WEBHOOK_SECRET) throw new Error('WEBHOOK_SECRET must be set');

const keys = [WEBHOOK_SECRET, WEBHOOK_SECRET_PREVIOUS]
  .filter(Boolean)
  .map((secret) => Buffer.from(secret.replace('whsec_', ''), 'base64'));

const KNOWN_TYPES = new Set([
  'payment.succeeded',
  'payment.failed',
  'payment.refunded',
  'order.shipped',
  'invoice.paid',
]);

const bus = new EventEmitter();
bus.on('event', (event) => console.log('queued', event.type));

function isAuthentic(req, body) {
  const id = req.get('webhook-id');
  const timestamp = req.get('webhook-timestamp');
  const header = req.get('webhook-signature');
  if (!id || !header || !/^\d{1,12}$/.test(timestamp ?? '')) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) return false;

  return keys.some((key) => {
    const expected = createHmac('sha256', key)
      .update(Buffer.from(`${id}.${timestamp}.`, 'latin1'))
      .update(body)
      .digest();
    return header.split(' ').some((entry) => {
      if (!entry.startsWith('v1,')) return false;
      const given = Buffer.from(entry.slice(3), 'base64');
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  });
}

const app = express();
app.disable('x-powered-by');

const events = new Map();

app.post('/webhooks', express.raw({ type: () => true, limit: '64kb' }), (req, res) => {
  const body = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
  if (!isAuthentic(req, body)) {
    return res.status(401).json({ error: 'unauthorized' });
  }

  const id = req.get('webhook-id');
  if (events.has(id)) {
    return res.status(409).json({ error: 'conflict', message: `event ${id} already exists` });
  }

  let event;
  try {
    event = JSON.parse(body.toString('utf8'));
  } catch {
    return res.status(400).json({ error: 'malformed_json' });
  }
  if (!KNOWN_TYPES.has(event?.type)) {
    return res.status(422).json({ error: 'unprocessable', message: 'unknown event type' });
  }

  events.set(id, event);
  setImmediate(() => bus.emit('event', event));
  res.status(201).json({ id });
});

app.use((err, req, res, next) => {
  res.status(err.status ?? 500).json({ error: err.type ?? 'internal' });
});

app.listen(Number(PORT), '127.0.0.1');
