// The verify files of Standard Webhooks: symmetric (v1) and Ed25519 (v1a).
import { createHash } from 'node:crypto';
import { T, flip, foreign, group, invalid, open, valid } from './build.mjs';
import {
  aroundTolerance, lenientTimestamp, lists, malformedTimestamp, reserialised, rotation, spelt, tamperedBody,
  tamperedTimestamp, when, wrongSecret,
} from './common.mjs';
import { hmac, identityPoint, malleate, weakKeys } from './keys.mjs';
import { dottedIds, ids } from './sign.mjs';

const b64 = (bytes) => Buffer.from(bytes).toString('base64');
const one = (make) => ({ tokens: (c) => [make(c)] });
const replaceValue = (name, value) => ({ headers: (h) => h.map(([n, v]) => [n, n === name ? value : v]) });
const without = (name) => ({ headers: (h) => h.filter(([n]) => n !== name) });
const signatureIs = (value) => replaceValue('webhook-signature', value);

function tamperedId(s) {
  const no = (name, comment, id) =>
    invalid(s, name, comment, ['TamperedId'], 'no-match', 'the id is not the one that was signed',
      { id, signed: { id: s.id } });
  return group('tampered-id', 'The id was changed after signing.', [s.shown], [
    no('other', 'another id', 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4X'),
    no('append', 'one character appended', s.id + 'x'),
    no('remove', 'one character removed', s.id.slice(0, -1)),
    no('case', 'the case changed', s.id.toLowerCase()),
  ]);
}

function missing(s) {
  const no = (name, comment, rule, o) =>
    invalid(s, name, comment, ['MissingHeader'], rule, 'a required header is missing or empty', o);
  return group('missing-header', 'A required header is missing, or empty under the original signature.', [s.shown], [
    no('all', 'none of the three', 'missing-id', { id: undefined, ts: undefined, signed: { id: s.id, ts: String(T) }, ...without('webhook-signature') }),
    no('id', 'no id', 'missing-id', { id: undefined, signed: { id: s.id } }),
    no('timestamp', 'no timestamp', 'missing-timestamp', { ts: undefined, signed: { ts: String(T) } }),
    no('signature', 'no signature', 'missing-signature', without('webhook-signature')),
    no('id-empty', 'an empty id', 'missing-id', { id: '', signed: { id: s.id } }),
    no('timestamp-empty', 'an empty timestamp', 'missing-timestamp', { ts: '', signed: { ts: String(T) } }),
    no('timestamp-empty-signed', 'an empty timestamp, signed as it stands', 'missing-timestamp', { ts: '' }),
    no('signature-empty', 'an empty signature', 'missing-signature', signatureIs('')),
    open(s, 'id-empty-signed', 'an empty id, signed as it stands', ['MissingHeader'],
      'an empty id is of no use to a receiver, but the signature is right', { id: '' }),
  ]);
}

function repeated(s) {
  const day = String(T - 86400);
  const twice = (name, first, second) => ({
    headers: (h) => h.flatMap(([n, v]) => (n === name ? [[n, first ?? v], [n, second ?? v]] : [[n, v]])),
  });
  const no = (name, comment, o) => invalid(s, name, comment, ['RepeatedHeader'], 'repeated-header',
    'whichever of the two values is taken, something does not fit; only taking both is fooled', o);
  const maybe = (name, comment, o) => open(s, name, comment, ['RepeatedHeader'],
    'implementations refuse, take the first, take the last, or join repeated lines', o);
  return group('repeated-header', 'A header line stands twice.', [s.shown], [
    no('fresh-then-stale', 'a fresh timestamp, then the stale one that was signed',
      { ts: String(T), signed: { ts: day }, ...twice('webhook-timestamp', String(T), day) }),
    no('stale-then-fresh', 'the stale timestamp that was signed, then a fresh one',
      { ts: day, ...twice('webhook-timestamp', day, String(T)) }),
    maybe('id', 'the id twice, equal', twice('webhook-id')),
    maybe('timestamp', 'the timestamp twice, equal', twice('webhook-timestamp')),
    maybe('signature', 'the signature twice, equal', twice('webhook-signature')),
    maybe('id-then-other', 'the id that was signed, then another', twice('webhook-id', undefined, 'msg_other')),
    maybe('other-then-id', 'another id, then the one that was signed', { ...twice('webhook-id', 'msg_other', s.id), id: 'msg_other', signed: { id: s.id } }),
    maybe('signature-lines', 'a foreign and the valid signature on lines of their own', {
      tokens: (c) => [...foreign(s, c), s.token(s.key, c)],
      headers: (h, tokens) => [...h.filter(([n]) => n !== 'webhook-signature'), ...tokens.map((t) => ['webhook-signature', t])],
    }),
  ]);
}

function headerCase(s) {
  const yes = (name, comment, change) =>
    valid(s, name, comment, ['HeaderCase'], { headers: (h) => h.map(([n, v]) => [change(n), v]) });
  const title = (n) => n.split('-').map((w) => w[0].toUpperCase() + w.slice(1)).join('-');
  return group('header-case', 'Header names in any case, in any order, beside others.', [s.shown], [
    yes('title', 'title case', title),
    yes('upper', 'upper case', (n) => n.toUpperCase()),
    yes('mixed', 'mixed case', (n) => n.replace(/[aeiou]/g, (c) => c.toUpperCase())),
    valid(s, 'reversed', 'the lines in reverse order', ['HeaderCase'], { headers: (h) => [...h].reverse() }),
    valid(s, 'among-others', 'among other headers', ['HeaderCase'], {
      headers: (h) => [['content-type', 'application/json'], ['user-agent', 'provider/1'], ...h, ['x-request-id', 'r-1']],
    }),
  ]);
}

// The labels that are not this scheme's, each in front of the right bytes.
function unknownVersion(s, labels) {
  const bare = (c) => s.token(s.key, c).slice(s.token(s.key, c).indexOf(',') + 1);
  const no = (name, comment, rule, make) => invalid(s, name, comment, ['UnknownVersion'], rule,
    'no token is of a version that the configured key can check', one(make));
  // Without a comma, or without a label before it, it is no token at all.
  const rule = (label) => (label.indexOf(',') > 0 ? 'unknown-version' : 'malformed-signature');
  return group('unknown-version', 'The right bytes under another version label.', [s.shown], [
    ...labels.map(([name, label]) =>
      no(name, `in front of the bytes: ${JSON.stringify(label)}`, rule(label), (c) => label + bare(c))),
    no('none', 'no label and no comma', 'malformed-signature', bare),
    no('label-behind', 'the label behind', 'unknown-version', (c) => `${bare(c)},${s.token(s.key, c).split(',')[0]}`),
  ]);
}

const v1Labels = [
  ['v0', 'v0,'], ['v2', 'v2,'], ['v10', 'v10,'], ['v11', 'v11,'], ['upper-case', 'V1,'], ['v1a', 'v1a,'], ['v1b', 'v1b,'],
  ['empty', ','], ['digit', '1,'], ['equals', 'v1='], ['colon', 'v1:'], ['sha256', 'sha256='], ['v', 'v,'],
];
const v1aLabels = [
  ['v0a', 'v0a,'], ['v2', 'v2,'], ['v2a', 'v2a,'], ['upper-case', 'V1A,'], ['upper-a', 'v1A,'], ['v1', 'v1,'], ['v1b', 'v1b,'],
  ['v1aa', 'v1aa,'], ['empty', ','], ['equals', 'v1a='], ['ed25519', 'ed25519,'],
];

function truncated(s, label, bytes, lengths) {
  const why = 'the signature has not the length of this scheme\'s';
  const no = (name, comment, make, rule = 'no-match') => invalid(s, name, comment, ['Truncated'], rule, why, one(make));
  return group('truncated', 'A signature that is shorter or longer than it must be.', [s.shown], [
    no('nothing', 'the label and comma alone', () => label, 'malformed-signature'),
    ...lengths.map((n) => no(`first-${n}`, `the first ${n} bytes`, (c) => label + b64(bytes(c).subarray(0, n)))),
    no('first-byte-missing', 'all but the first byte', (c) => label + b64(bytes(c).subarray(1))),
    no('one-byte-more', 'one byte more', (c) => label + b64(Buffer.concat([bytes(c), Buffer.from([0])]))),
    no('twice', 'the bytes twice', (c) => label + b64(Buffer.concat([bytes(c), bytes(c)]))),
    no('cut-text', 'the base64 text without its last eight characters, and so without padding', (c) => (label + b64(bytes(c))).slice(0, -8)),
    no('cut-text-odd', 'the base64 text cut where no whole byte ends', (c) => (label + b64(bytes(c))).slice(0, -7), 'malformed-signature'),
  ]);
}

const otherCase = (c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase());

function altered(s, label, bytes) {
  const no = (name, comment, change) => invalid(s, name, comment, ['AlteredSignature'], 'no-match',
    'the signature does not match', one((c) => label + b64(change(bytes(c)))));
  return group('altered', 'A signature of the right form and length with other bytes.', [s.shown], [
    no('first-bit', 'one bit of the first byte', (b) => flip(b, 0)),
    no('middle-bit', 'one bit in the middle', (b) => flip(b, b.length / 2)),
    no('last-bit', 'one bit of the last byte', (b) => flip(b, -1)),
    no('zeros', 'zero bytes', (b) => Buffer.alloc(b.length)),
    no('ones', 'bytes of all ones', (b) => Buffer.alloc(b.length, 255)),
    no('reversed', 'the bytes in reverse', (b) => Buffer.from(b).reverse()),
    invalid(s, 'letter-case', 'the first letter of the base64 text in its other case', ['AlteredSignature'], 'no-match',
      'the signature does not match', one((c) => label + b64(bytes(c)).replace(/[a-z]/i, otherCase))),
  ]);
}

function odd(s, label, length) {
  const no = (name, comment, value, rule = 'malformed-signature') => invalid(s, name, comment, ['OddSignature'], rule,
    'the header holds no signature', signatureIs(value));
  return group('odd-signature', 'A signature header that is no signature.', [s.shown], [
    no('blank', 'a blank', ' '),
    no('three-characters', 'three characters', 'abc'),
    no('500-characters', '500 characters', 'A'.repeat(500)),
    no('500-characters-labelled', '500 characters behind the label', label + 'A'.repeat(500), 'no-match'),
    no('non-ascii', 'letters beyond ASCII', label + '\u00e9\u00df\u4e16'),
    no('multi-byte', 'as many characters as the true signature, but more bytes', label + '\u00e9'.repeat(length)),
    no('wide', 'as many UTF-16 units as the true signature', label + '\u{1f600}'.repeat(length / 2)),
    no('commas', 'commas alone', ',,,,,'),
    no('blanks-and-commas', 'blanks and commas', ' , , , '),
    no('label', 'the label alone', label.slice(0, -1)),
    no('not-base64', 'text that is not base64', label + '%%%'),
    no('padding', 'padding alone', label + '===='),
    no('nul', 'a NUL', label + '\0'),
    no('json', 'a JSON object', '{"v1":"x"}'),
    no('word', 'the word null', 'null'),
  ]);
}

// behind puts a malformed token in front of the valid one. The catalogue
// leaves it open whether the request is taken (receiver.signature.survives-malformed-token).
function malformedTokens(s, label) {
  const maybe = (name, comment, text) => open(s, name, comment, ['MalformedToken'],
    'skipping the malformed token and refusing the request are both correct',
    { headers: (h, tokens) => h.map(([n, v]) => [n, n === 'webhook-signature' ? text + tokens[0] : v]) });
  return group('malformed-token', 'A malformed token in front of the valid one.', [s.shown], [
    maybe('label', 'a label alone', `${label.slice(0, -1)} `),
    maybe('label-and-comma', 'a label and a comma', `${label} `),
    maybe('letter', 'one letter', 'x '),
    maybe('not-base64', 'a token that is not base64', `${label}%%% `),
    maybe('comma', 'a comma', ', '),
    maybe('blank', 'a blank in front', ' '),
    maybe('blanks', 'three blanks in front', '   '),
    maybe('non-ascii', 'a token beyond ASCII', `${label}\u00e9 `),
    maybe('short', 'a token that is too short', `${label}AAAA `),
  ]);
}

const urlSafe = (t) => t.replaceAll('+', '-').replaceAll('/', '_');

// lastDigit changes the bits of the last base64 digit that padding leaves unused.
function lastDigit(textB64) {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const at = textB64.indexOf('=') - 1;
  return textB64.slice(0, at) + alphabet[alphabet.indexOf(textB64[at]) + 1] + textB64.slice(at + 1);
}

function lenient(s, label, bytes) {
  // An id whose signature holds both + and /, so that the url-safe alphabet shows.
  const id = [...Array(200).keys()].map((i) => `msg_urlsafe${i}`).find((candidate) => {
    const t = b64(bytes(s.content({ id: candidate, ts: String(T), body: s.body })));
    return t.includes('+') && t.includes('/');
  });
  const maybe = (name, comment, make, flag = 'LenientEncoding') => open(s, name, comment, [flag],
    'the right signature, but not in the spelling that the scheme describes', { id, ...one((c) => make(b64(bytes(c)), bytes(c))) });
  return group('lenient', 'The right signature in another spelling.', [s.shown], [
    maybe('url-safe', 'the url-safe alphabet', (t) => label + urlSafe(t)),
    maybe('unpadded', 'no padding', (t) => label + t.replaceAll('=', '')),
    maybe('url-safe-unpadded', 'the url-safe alphabet, no padding', (t) => label + urlSafe(t).replaceAll('=', '')),
    maybe('hex', 'hexadecimal', (_, b) => label + b.toString('hex')),
    maybe('trailing-bits', 'the unused bits of the last digit set', (t) => label + lastDigit(t)),
    maybe('more-padding', 'one padding character more', (t) => label + t + '='),
    maybe('text-after-padding', 'text after the padding', (t) => label + t + 'AAAA', 'LenientGrammar'),
    maybe('third-part', 'a second comma and text', (t) => `${label}${t},extra`, 'LenientGrammar'),
    maybe('trailing-comma', 'a comma behind', (t) => `${label}${t},`, 'LenientGrammar'),
    maybe('trailing-blank', 'a blank behind', (t) => `${label}${t} `, 'LenientGrammar'),
    maybe('blank-after-comma', 'a blank after the comma', (t) => `${label} ${t}`, 'LenientGrammar'),
    maybe('tab-separated', 'a tab between two tokens', (t) => `${label}${t}\t${label}${t}`, 'LenientGrammar'),
    maybe('comma-separated', 'a comma between two tokens', (t) => `${label}${t},${label}${t}`, 'LenientGrammar'),
  ]);
}

// dotShift: the same signed content, split otherwise. Both halves of the pair
// carry the right signature.
function dotShift(s) {
  const why = 'the content is the same as that of another split; only ids without full stops rule it out';
  const id = `msg_1.${T - 10}`;
  const rest = `${T}.${s.body}`;
  return group('dot-shift', 'One signed content, split in two ways.', [s.shown], [
    open(s, 'as-signed', 'the id holds a full stop and a number', ['DotShift', 'FullStopInId'], why, { id }),
    open(s, 'shifted', 'the same content as an id without, an earlier timestamp and a longer body', ['DotShift'], why,
      { id: 'msg_1', ts: String(T - 10), body: rest }),
    open(s, 'into-timestamp', 'the full stop moved into the timestamp', ['DotShift', 'LenientTimestamp'], why,
      { id: 'msg_1', ts: `${T - 10}.${T}` }),
    open(s, 'out-of-body', 'the start of the body as the fraction of the timestamp', ['DotShift', 'LenientTimestamp'], why,
      { ts: `${T}.5`, body: '7' }),
  ]);
}

function wrongContent(s) {
  const join = (...parts) => Buffer.concat(parts.map((p) => Buffer.from(p)));
  const no = (name, comment, content) => invalid(s, name, comment, ['WrongContent'], 'no-match',
    'the signature covers other content than id.timestamp.body', { content });
  return group('wrong-content', 'The right key over content that the scheme does not describe.', [s.shown], [
    no('body', 'the body alone', ({ body }) => join(body)),
    no('timestamp-body', 'timestamp.body', ({ ts, body }) => join(ts, '.', body)),
    no('id-body', 'id.body', ({ id, body }) => join(id, '.', body)),
    no('id-timestamp', 'id.timestamp', ({ id, ts }) => join(id, '.', ts)),
    no('id-timestamp-dot', 'id.timestamp. without the body', ({ id, ts }) => join(id, '.', ts, '.')),
    no('swapped', 'timestamp.id.body', ({ id, ts, body }) => join(ts, '.', id, '.', body)),
    no('colons', 'id:timestamp:body', ({ id, ts, body }) => join(id, ':', ts, ':', body)),
    no('joined', 'the three without separators', ({ id, ts, body }) => join(id, ts, body)),
    no('newline', 'a newline at the end', ({ id, ts, body }) => join(id, '.', ts, '.', body, '\n')),
    no('milliseconds', 'the timestamp in milliseconds', ({ id, ts, body }) => join(id, '.', ts, '000.', body)),
    no('base64-body', 'the body in base64', ({ id, ts, body }) => join(id, '.', ts, '.', b64(body))),
    no('nothing', 'no content at all', () => Buffer.alloc(0)),
  ]);
}

function shared(s) {
  return [
    group('body', 'Every spelling of a body, signed over its exact bytes.', [s.shown], spelt(s, s.name === 'standard-webhooks-v1')),
    group('id', 'Ids of several shapes.', [s.shown], ids(s)),
    group('timestamp', 'Timestamps of several lengths, each at its own time.', [s.shown], when(s)),
    aroundTolerance(s), headerCase(s), tamperedBody(s), reserialised(s), tamperedId(s), tamperedTimestamp(s),
    malformedTimestamp(s), lenientTimestamp(s), missing(s), repeated(s), wrongContent(s), dottedIds(s), dotShift(s),
    ...rotation(s),
  ];
}

export function verifyV1(s) {
  const bytes = (c) => s.mac(s.key, c);
  const key = (id, raw) => ({ id, raw });
  const unknown = (c) => ['v2,' + b64(bytes(c)), 'v1a,' + b64(Buffer.alloc(64, 7)), 'v0,' + b64(bytes(c)), 'next,abc'];
  return [
    ...shared(s),
    lists(s, unknown),
    unknownVersion(s, v1Labels),
    truncated(s, 'v1,', bytes, [1, 8, 16, 31]),
    altered(s, 'v1,', bytes),
    odd(s, 'v1,', 44),
    malformedTokens(s, 'v1,'),
    lenient(s, 'v1,', bytes),
    wrongSecret(s, [
      ['empty', 'an empty key', 'EmptyKey', key('empty', Buffer.alloc(0))],
      ['zeros', '32 zero bytes', 'WeakKey', key('zeros', Buffer.alloc(32))],
      ...weakKeys.map((w) => [`weak-${w.replace('_', '')}`, `the bytes of ${JSON.stringify(w)}`, 'WeakKey', key(w, Buffer.from(w))]),
      ['whole-text', 'the whole text of the right secret, prefix included', 'KeyReading', key('text', Buffer.from(s.key.secret))],
      ['base64-text', 'the base64 text of the right secret, not decoded', 'KeyReading', key('base64', Buffer.from(s.key.secret.slice(6)))],
      ['hex-text', 'the right secret in hexadecimal', 'KeyReading', key('hex', Buffer.from(s.key.raw.toString('hex')))],
      ['first-24', 'the first 24 bytes of the right secret', 'KeyReading', key('first', s.key.raw.subarray(0, 24))],
    ]),
    algorithms(s),
  ];
}

function algorithms(s) {
  const no = (name, comment, make) => invalid(s, name, comment, ['WrongAlgorithm'], 'no-match',
    'the signature is not HMAC-SHA256', one((c) => 'v1,' + b64(make(c))));
  return group('wrong-algorithm', 'Another algorithm under the right key.', [s.shown], [
    no('sha1', 'HMAC-SHA1', (c) => hmac(s.key.raw, c, 'sha1')),
    no('sha512', 'HMAC-SHA512', (c) => hmac(s.key.raw, c, 'sha512')),
    no('sha512-cut', 'HMAC-SHA512, cut to 32 bytes', (c) => hmac(s.key.raw, c, 'sha512').subarray(0, 32)),
    no('sha3', 'HMAC-SHA3-256', (c) => hmac(s.key.raw, c, 'sha3-256')),
    no('key-and-content-swapped', 'the content as key, the key as content', (c) => hmac(c, s.key.raw)),
  ]);
}

export function verifyV1a(s, v1) {
  const bytes = (c) => s.key.sign(c);
  const unknown = (c) => ['v2a,' + b64(bytes(c)), 'v1,' + b64(Buffer.alloc(32, 7)), 'v0,abc', 'next,abc'];
  return [
    ...shared(s),
    lists(s, unknown, true),
    unknownVersion(s, v1aLabels),
    truncated(s, 'v1a,', bytes, [1, 16, 32, 63]),
    altered(s, 'v1a,', bytes),
    odd(s, 'v1a,', 88),
    malformedTokens(s, 'v1a,'),
    lenient(s, 'v1a,', bytes),
    wrongSecret(s, []),
    confusion(s),
    mixed(s, v1),
    offered(s),
    malleable(s),
    smallOrderKey(s),
  ];
}

function confusion(s) {
  const pub = s.key.public;
  const by = (name, comment, rule, make) => invalid(s, name, comment, ['SchemeConfusion'], rule,
    'anybody who knows the public key can compute it', one(make));
  return group('scheme-confusion', 'A signature of one scheme offered as one of the other; only a public key is configured.', [s.shown], [
    by('hmac-as-v1', 'HMAC keyed with the public key, as v1', 'unknown-version', (c) => 'v1,' + b64(hmac(pub, c))),
    by('hmac-as-v1a', 'HMAC keyed with the public key, as v1a', 'no-match', (c) => 'v1a,' + b64(hmac(pub, c))),
    by('hmac-text-as-v1', 'HMAC keyed with the public key\'s text, as v1', 'unknown-version', (c) => 'v1,' + b64(hmac(s.key.publicText, c))),
    by('hmac-text-as-v1a', 'HMAC keyed with the public key\'s text, as v1a', 'no-match', (c) => 'v1a,' + b64(hmac(s.key.publicText, c))),
    by('hmac-base64-as-v1', 'HMAC keyed with the public key\'s base64 text, as v1', 'unknown-version', (c) => 'v1,' + b64(hmac(b64(pub), c))),
    by('hmac-sha512-as-v1a', 'HMAC-SHA512 keyed with the public key, of the right length, as v1a', 'no-match', (c) => 'v1a,' + b64(hmac(pub, c, 'sha512'))),
    by('hmac-twice-as-v1a', 'HMAC keyed with the public key, twice to the right length, as v1a', 'no-match',
      (c) => 'v1a,' + b64(Buffer.concat([hmac(pub, c), hmac(pub, c)]))),
    by('hmac-empty-as-v1', 'HMAC with an empty key, as v1', 'unknown-version', (c) => 'v1,' + b64(hmac(Buffer.alloc(0), c))),
    by('ed25519-as-v1', 'the right Ed25519 signature as v1', 'unknown-version', (c) => 'v1,' + b64(s.key.sign(c))),
  ]);
}

// mixed: a symmetric secret and a public key are configured side by side.
function mixed(s, v1) {
  const keys = [{ ...v1.shown, id: 'a-hmac' }, { ...s.shown, id: 'a-ed25519' }];
  const yes = (name, comment, tokens) => valid(s, name, comment, ['SchemeConfusion'], { tokens });
  const no = (name, comment, tokens) => invalid(s, name, comment, ['SchemeConfusion'], 'no-match',
    'each kind of key checks its own version only', { tokens });
  const relabel = (t, label) => label + t.slice(t.indexOf(','));
  return group('both-kinds', 'A symmetric secret and a public key are configured.', keys, [
    yes('v1', 'the symmetric signature', (c) => [v1.token(v1.key, c)]),
    yes('v1a', 'the Ed25519 signature', (c) => [s.token(s.key, c)]),
    yes('both', 'both', (c) => [v1.token(v1.key, c), s.token(s.key, c)]),
    yes('foreign-v1', 'a foreign symmetric and the right Ed25519 signature', (c) => [...foreign(v1, c), s.token(s.key, c)]),
    yes('foreign-v1a', 'a foreign Ed25519 and the right symmetric signature', (c) => [...foreign(s, c), v1.token(v1.key, c)]),
    no('hmac-public-as-v1', 'HMAC keyed with the public key, as v1', (c) => ['v1,' + b64(hmac(s.key.public, c))]),
    no('hmac-public-as-v1a', 'HMAC keyed with the public key, as v1a', (c) => ['v1a,' + b64(hmac(s.key.public, c))]),
    no('labels-swapped', 'both signatures with their labels swapped',
      (c) => [relabel(v1.token(v1.key, c), 'v1a'), relabel(s.token(s.key, c), 'v1')]),
    no('foreign-both', 'a foreign signature of each kind', (c) => [...foreign(v1, c), ...foreign(s, c)]),
  ]);
}

function offered(s) {
  const no = (name, comment, o) => invalid(s, name, comment, ['OfferedKey'], 'no-match',
    'the key that signed is not configured; what a request says about keys is ignored', { key: s.third, ...o });
  const also = (line) => ({ headers: (h) => [...h, line] });
  return group('offered-key', 'The request brings the key that it is signed with.', [s.shown], [
    no('header', 'in a header', also(['webhook-public-key', s.third.publicText])),
    no('key-id-header', 'in a header called key id', also(['webhook-key-id', s.third.publicText])),
    no('body', 'in the body', { body: s.event(JSON.stringify({ public_key: s.third.publicText })) }),
    invalid(s, 'token', 'in the signature token', ['OfferedKey'], 'malformed-signature',
      'a token has two parts, and the key that signed is not configured', {
        tokens: (c) => [`${s.token(s.third, c)},${s.third.publicText}`],
      }),
    valid(s, 'ignored', 'another key offered beside a right signature', ['OfferedKey'], also(['webhook-public-key', s.third.publicText])),
  ]);
}

function malleable(s) {
  const no = (name, comment, flag, make) => invalid(s, name, comment, [flag], 'no-match',
    'RFC 8032 section 5.1.7 refuses it', one((c) => 'v1a,' + b64(make(c))));
  return group('malleability', 'Signatures near the valid one that RFC 8032 refuses.', [s.shown], [
    no('s-plus-l', 'S + L for S', 'Malleability', (c) => malleate(s.key.sign(c))),
    no('high-bits', 'the three high bits of S set', 'Malleability', (c) => {
      const out = Buffer.from(s.key.sign(c));
      out[63] |= 0xe0;
      return out;
    }),
    no('s-zero', 'S zero', 'Malleability', (c) => Buffer.concat([s.key.sign(c).subarray(0, 32), Buffer.alloc(32)])),
    no('sign-of-r', 'the sign bit of R flipped', 'Malleability', (c) => {
      const out = Buffer.from(s.key.sign(c));
      out[31] ^= 0x80;
      return out;
    }),
    no('identity', 'R the neutral element, S zero', 'SmallOrder', () => Buffer.concat([identityPoint, Buffer.alloc(32)])),
    no('r-identity', 'R the neutral element, the right S', 'SmallOrder', (c) => Buffer.concat([identityPoint, s.key.sign(c).subarray(32)])),
    no('pre-hashed', 'a signature over the SHA-512 of the content', 'WrongAlgorithm', (c) => s.key.sign(hashOf(c))),
  ]);
}

const hashOf = (content) => createHash('sha512').update(content).digest();

function smallOrderKey(s) {
  const weak = { id: 'identity', secret: 'whpk_' + b64(identityPoint) };
  return group('small-order-key', 'A public key of order one: R the neutral element and S zero fit every content.', [weak], [
    open(s, 'identity', 'the signature that fits everything', ['SmallOrder'],
      'libraries that refuse such keys and libraries that follow RFC 8032 to the letter differ',
      one(() => 'v1a,' + b64(Buffer.concat([identityPoint, Buffer.alloc(32)])))),
    invalid(s, 'other', 'a signature by a true key', ['SmallOrder'], 'no-match', 'not signed with the configured key'),
  ]);
}
