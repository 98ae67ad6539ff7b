// The three schemes: what is signed, how a signature is written, and the keys
// of the vectors. Sources: Standard Webhooks 1.0.0, "Signature scheme" and
// "Webhook headers"; the delivery envelope's own document.
import { digest, ed25519, hmac, publicBytes, symmetric, text } from './keys.mjs';
import { flip, strangerBytes } from './build.mjs';

const show = (k) => ({ id: k.id, secret: k.secret });
const showPublic = (k) => ({ id: k.id, secret: k.publicText });

// remember calls make once for each label.
function remember(make) {
  const made = new Map();
  return (label) => {
    if (!made.has(label)) {
      made.set(label, make(label));
    }
    return made.get(label);
  };
}

const standardEvent = (probe) =>
  `{"data":{"invoice_id":"inv_42","paid":true},"note":${probe},"timestamp":"2026-01-01T00:00:00Z","type":"invoice.paid"}`;

const envelopeEvent = (probe) =>
  `{"api_version":"2026-01-01","created_at":"2026-01-01T00:00:00Z","data":{"invoice_id":"inv_42"},` +
  `"delivery_id":"whd_01J8ZC4T9","note":${probe},"type":"invoice.paid"}`;

const standard = {
  profile: 'standard-webhooks',
  id: 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W',
  signsId: true,
  event: standardEvent,
  body: standardEvent('"plain"'),
  content: ({ id, ts, body }) => Buffer.concat([Buffer.from(`${id}.${ts}.`), Buffer.from(body)]),
  headers: ({ id, ts, tokens }) => [
    ...(id === undefined ? [] : [['webhook-id', id]]),
    ...(ts === undefined ? [] : [['webhook-timestamp', ts]]),
    ['webhook-signature', tokens.join(' ')],
  ],
};

// withKeys adds the keys that the shared cases use, and how a group shows them.
function withKeys(scheme, keys, reveal) {
  return {
    ...scheme,
    ...keys,
    shown: reveal(keys.key),
    shownOther: reveal(keys.other),
    signers: [keys.key, keys.other, keys.third].map(show),
  };
}

export function standardV1() {
  const raw = publicBytes('A', 32);
  return withKeys(
    {
      ...standard,
      name: 'standard-webhooks-v1',
      prefix: 'standard-webhooks.v1',
      mac: (key, content) => hmac(key.raw, content),
      token: (key, content) => 'v1,' + hmac(key.raw, content).toString('base64'),
      stranger: (label) => symmetric(label, strangerBytes(label)),
    },
    {
      key: symmetric('a', raw),
      other: symmetric('b', publicBytes('B', 32)),
      third: symmetric('c', digest('whconform public test key C')),
      near: symmetric('near', flip(raw, -1)),
    },
    show,
  );
}

export function standardV1a() {
  const seed = publicBytes('ED25519 A', 32);
  return withKeys(
    {
      ...standard,
      name: 'standard-webhooks-v1a',
      prefix: 'standard-webhooks.v1a',
      token: (key, content) => 'v1a,' + key.sign(content).toString('base64'),
      // Making a key pair takes a millisecond, and every list asks for the same few.
      stranger: remember((label) => ed25519(label, strangerBytes(label))),
    },
    {
      key: ed25519('a', seed),
      other: ed25519('b', publicBytes('ED25519 B', 32)),
      third: ed25519('c', digest('whconform public test seed C')),
      near: ed25519('near', flip(seed, -1)),
    },
    showPublic,
  );
}

export function envelope() {
  const secret = 'public-test-secret-A-never-use-it';
  return withKeys(
    {
      profile: 'delivery-envelope',
      name: 'delivery-envelope',
      prefix: 'delivery-envelope',
      signsId: false,
      event: envelopeEvent,
      body: envelopeEvent('"plain"'),
      content: ({ ts, body }) => Buffer.concat([Buffer.from(`${ts}.`), Buffer.from(body)]),
      mac: (key, content) => hmac(key.raw, content),
      token: (key, content) => 'v1=' + hmac(key.raw, content).toString('hex'),
      headers: ({ ts, tokens }) => [
        ['Webhook-Signature', [...(ts === undefined ? [] : [`t=${ts}`]), ...tokens].join(',')],
      ],
      stranger: (label) => text(label, strangerBytes(label).toString('latin1')),
    },
    {
      key: text('a', secret),
      other: text('b', 'public-test-secret-B-never-use-it'),
      third: text('c', 'public-test-secret-C-never-use-it'),
      near: text('near', secret.replace('-A-', '-a-')),
    },
    show,
  );
}
