// The keys of the vectors and what is computed with them. Every key is public:
// most spell that out in their own bytes.
import { createHash, createHmac, createPrivateKey, createPublicKey, sign } from 'node:crypto';

// publicBytes makes n bytes that say what they are when somebody decodes them.
export function publicBytes(label, n) {
  const text = `PUBLIC TEST KEY ${label} NEVER USE `;
  return Buffer.from(text.repeat(Math.ceil(n / text.length)).slice(0, n), 'latin1');
}

// digest makes bytes that look random (their base64 holds + and /) from a label.
export function digest(label, algorithm = 'sha256') {
  return createHash(algorithm).update(label).digest();
}

// withPlusAndSlash returns the first of the digests of label 0, label 1, … whose
// base64 holds both characters that the url-safe alphabet replaces.
export function withPlusAndSlash(label) {
  for (let i = 0; ; i++) {
    const bytes = digest(`${label} ${i}`);
    const text = bytes.toString('base64');
    if (text.includes('+') && text.includes('/')) {
      return bytes;
    }
  }
}

export function hmac(key, content, algorithm = 'sha256') {
  return createHmac(algorithm, key).update(content).digest();
}

// The fixed start of an Ed25519 private key in PKCS #8 (RFC 8410 section 7): the
// 32-byte seed follows. Node reads no bare seed.
const pkcs8 = Buffer.from('302e020100300506032b657004220420', 'hex');

// ed25519 makes a key pair of a seed, in every form in which it is written.
export function ed25519(id, seed) {
  const privateKey = createPrivateKey({
    key: Buffer.concat([pkcs8, seed]),
    format: 'der',
    type: 'pkcs8',
  });
  // The subject public key info ends with the 32 bytes of the key.
  const raw = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32);
  return {
    id,
    seed,
    public: raw,
    secret: 'whsk_' + seed.toString('base64'),
    long: 'whsk_' + Buffer.concat([seed, raw]).toString('base64'),
    publicText: 'whpk_' + raw.toString('base64'),
    sign: (content) => sign(null, content, privateKey),
  };
}

// symmetric makes a Standard Webhooks HMAC key.
export function symmetric(id, raw) {
  return { id, raw, secret: 'whsec_' + raw.toString('base64') };
}

// text makes a key of a secret that is used as its UTF-8 bytes.
export function text(id, secret) {
  return { id, raw: Buffer.from(secret, 'utf8'), secret };
}

// weakKeys are what an HMAC is keyed with when a receiver's secret is not set,
// or was never changed: an attacker knows them all.
export const weakKeys = ['undefined', 'null', 'secret', 'whsec_', 'changeme', 'test'];

// The order of the Ed25519 base point (RFC 8032 section 5.1).
const order = 2n ** 252n + 27742317777372353535851937790883648493n;

// malleate returns the signature with S + L for S: the same equation holds, but
// RFC 8032 section 5.1.7 demands S < L.
export function malleate(signature) {
  let s = 0n;
  for (let i = 63; i >= 32; i--) {
    s = (s << 8n) | BigInt(signature[i]);
  }
  s += order;
  const out = Buffer.from(signature);
  for (let i = 32; i < 64; i++) {
    out[i] = Number(s & 255n);
    s >>= 8n;
  }
  return out;
}

// identityPoint is the encoding of the neutral element, a point of order one.
export const identityPoint = Buffer.concat([Buffer.from([1]), Buffer.alloc(31)]);
