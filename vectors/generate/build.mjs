// The steps from a case to a test: what is signed, which headers that gives,
// and what a verifier must say to it.
import { publicBytes } from './keys.mjs';

// The one fixed time of all vectors, in Unix seconds: 2026-01-01T00:00:00Z.
export const T = 1767225600;

// The tolerance of both schemes, in seconds, each way.
export const tolerance = 300;

const b64 = (bytes) => Buffer.from(bytes).toString('base64');

// A scheme s has: prefix, id (null where the scheme has none), body, key,
// other, third; content({id, ts, body}), token(key, content),
// headers({id, ts, tokens}).

// make builds a test. What o may change: id, ts, body (as received; null: not
// there), signed (parts that were signed instead), key, content (what was
// signed, made of the parts), tokens (made of the signed content and s.token),
// headers (made of the scheme's own headers), now.
function make(s, name, comment, flags, verdict, o) {
  const has = (part, fallback) => (part in o ? o[part] : fallback);
  const got = { id: has('id', s.id), ts: has('ts', String(T)), body: Buffer.from(has('body', s.body)) };
  const signed = { ...got, ...o.signed };
  const content = (o.content ?? s.content)(signed);
  const tokens = o.tokens ? o.tokens(content) : [s.token(o.key ?? s.key, content)];
  const headers = s.headers({ ...got, tokens });
  const whole = (!s.signsId || got.id !== undefined) && got.ts !== undefined;
  return {
    id: name,
    comment,
    flags,
    inputs: {
      ...(s.signsId && got.id !== undefined ? { id: got.id } : {}),
      ...(got.ts !== undefined ? { timestamp: got.ts } : {}),
      body: b64(got.body),
    },
    ...(whole ? { signedContent: b64(s.content(got)) } : {}),
    headers: o.headers ? o.headers(headers, tokens) : headers,
    now: o.now ?? T,
    ...verdict,
  };
}

export function valid(s, name, comment, flags, o = {}) {
  return make(s, name, comment, flags, { result: 'valid' }, o);
}

export function invalid(s, name, comment, flags, rule, reason, o = {}) {
  return make(s, name, comment, flags, { result: 'invalid', rule, reason }, o);
}

// open is a test on which correct implementations differ.
export function open(s, name, comment, flags, reason, o = {}) {
  return make(s, name, comment, flags, { result: 'implementation-defined', reason }, o);
}

// group makes a group; the ids of its tests follow from its name.
export function group(name, comment, keys, tests) {
  return { name, comment, keys, tests };
}

// flip returns the bytes with one bit of the byte at index changed; a negative
// index counts from the end.
export function flip(bytes, index) {
  const out = Buffer.from(bytes);
  out[(index + out.length) % out.length] ^= 1;
  return out;
}

// foreign returns n different signatures, none by a key of the vectors: the
// first sixteen over the content, each by a stranger's key of its own, and the
// rest by the same strangers over other content.
export function foreign(s, content, n = 1) {
  const over = (i) => (i < 16 ? content : Buffer.concat([content, Buffer.from(String(i))]));
  return Array.from({ length: n }, (_, i) => s.token(s.stranger(`foreign ${i % 16}`), over(i)));
}

export const strangerBytes = (label) => publicBytes(`stranger ${label}`, 32);
