// Verification by the Standard Webhooks symmetric scheme (v1): HMAC-SHA256 over
// "id.timestamp.body", base64. Works on bytes only; nothing here parses the body.
import { createHmac, timingSafeEqual } from 'node:crypto';

export const TOLERANCE_SECONDS = 5 * 60;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export function parseSecret(name, value) {
  const encoded = value.startsWith('whsec_') ? value.slice('whsec_'.length) : value;
  const key = Buffer.from(encoded, 'base64');
  if (!BASE64.test(encoded) || key.length === 0) {
    throw new Error(`${name} is not a webhook secret (whsec_ and base64)`);
  }
  return key;
}

export function secretsFromEnv(env) {
  if (!env.WEBHOOK_SECRET) throw new Error('WEBHOOK_SECRET is not set');
  const keys = [parseSecret('WEBHOOK_SECRET', env.WEBHOOK_SECRET)];
  if (env.WEBHOOK_SECRET_PREVIOUS) {
    keys.push(parseSecret('WEBHOOK_SECRET_PREVIOUS', env.WEBHOOK_SECRET_PREVIOUS));
  }
  return keys;
}

// Returns null when the delivery is authentic, otherwise the reason it is not.
export function refusal({ id, timestamp, signatures, body }, keys, nowSeconds) {
  if (!id || !timestamp || !signatures) return 'missing headers';
  if (!/^[0-9]{1,12}$/.test(timestamp)) return 'bad timestamp';
  if (Math.abs(nowSeconds - Number(timestamp)) > TOLERANCE_SECONDS) return 'stale timestamp';

  const given = [];
  for (const entry of signatures.split(' ')) {
    if (!entry.startsWith('v1,')) continue;
    const encoded = entry.slice(3);
    if (BASE64.test(encoded)) given.push(Buffer.from(encoded, 'base64'));
  }

  // node:http hands header bytes over as latin1
  const prefix = Buffer.from(`${id}.${timestamp}.`, 'latin1');
  for (const key of keys) {
    const expected = createHmac('sha256', key).update(prefix).update(body).digest();
    for (const candidate of given) {
      if (candidate.length === expected.length && timingSafeEqual(candidate, expected)) return null;
    }
  }
  return 'bad signature';
}
