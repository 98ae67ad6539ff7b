// The verify file of the delivery envelope: `Webhook-Signature: t=<unix>,v1=<hex>`.
import { T, flip, group, invalid, open, valid } from './build.mjs';
import {
  aroundTolerance, lenientTimestamp, lists, malformedTimestamp, reserialised, rotation, spelt, tamperedBody,
  tamperedTimestamp, when, wrongSecret,
} from './common.mjs';
import { hmac, text, weakKeys } from './keys.mjs';

const name = 'Webhook-Signature';
const header = (make) => ({ headers: (h, tokens) => [[name, make(tokens[0], h[0][1])]] });
const mac = (token) => token.slice('v1='.length);

function headerCase(s) {
  const yes = (id, comment, as) =>
    valid(s, id, comment, ['HeaderCase'], { headers: (h) => h.map(([, v]) => [as, v]) });
  return group('header-case', 'The header\'s name in any case, beside others.', [s.shown], [
    yes('lower', 'lower case', 'webhook-signature'),
    yes('upper', 'upper case', 'WEBHOOK-SIGNATURE'),
    yes('mixed', 'mixed case', 'wEbHoOk-SiGnAtUrE'),
    valid(s, 'among-others', 'among other headers', ['HeaderCase'], {
      headers: (h) => [['Content-Type', 'application/json'], ...h, ['X-Request-Id', 'r-1']],
    }),
  ]);
}

function missing(s) {
  const no = (id, comment, rule, o) =>
    invalid(s, id, comment, ['MissingHeader'], rule, 'the header, or a required part of it, is missing or empty', o);
  const noTime = { ts: undefined, signed: { ts: String(T) } };
  return group('missing-header', 'The header or a part of it is missing.', [s.shown], [
    no('all', 'no header', 'missing-signature', { headers: () => [] }),
    no('empty', 'an empty header', 'missing-signature', { headers: () => [[name, '']] }),
    no('timestamp', 'no t=', 'missing-timestamp', noTime),
    no('timestamp-empty', 't= without a value, under the original signature', 'missing-timestamp', { ts: '', signed: { ts: String(T) } }),
    no('timestamp-empty-signed', 't= without a value, signed as it stands', 'missing-timestamp', { ts: '' }),
    no('signature', 'no v1=', 'malformed-signature', { tokens: () => [] }),
    no('signature-empty', 'v1= without a value', 'malformed-signature', { tokens: () => ['v1='] }),
  ]);
}

function repeated(s) {
  const day = String(T - 86400);
  const both = 'whichever of the two values is taken, something does not fit; only taking both is fooled';
  const no = (id, comment, o) => invalid(s, id, comment, ['RepeatedHeader'], 'malformed-timestamp', both, o);
  const maybe = (id, comment, o) => open(s, id, comment, ['RepeatedHeader'],
    'implementations refuse, take the first, take the last, or join repeated lines', o);
  const lines = (...values) => values.map((v) => [name, v]);
  return group('repeated-header', 'The header, or its t=, stands twice.', [s.shown], [
    no('fresh-then-stale', 'a fresh t=, then the stale one that was signed',
      { signed: { ts: day }, ...header((t) => `t=${T},t=${day},${t}`) }),
    no('stale-then-fresh', 'the stale t= that was signed, then a fresh one', { ts: day, ...header((t) => `t=${day},t=${T},${t}`) }),
    no('stale-signature-fresh', 'the stale t= that was signed, its signature, then a fresh t=',
      { ts: day, ...header((t) => `t=${day},${t},t=${T}`) }),
    maybe('timestamp', 't= twice, equal', header((t) => `t=${T},t=${T},${t}`)),
    maybe('line', 'the line twice, equal', { headers: (h) => lines(h[0][1], h[0][1]) }),
    maybe('foreign-line-first', 'a line with a foreign signature, then the valid line',
      { headers: (h) => lines(`t=${T},v1=${'0'.repeat(64)}`, h[0][1]) }),
  ]);
}

function unknownVersion(s) {
  const no = (id, comment, rule, make) => invalid(s, id, comment, ['UnknownVersion'], rule,
    'no part is a v1 signature', header((t) => `t=${T},${make(mac(t))}`));
  const label = (id, text, rule = 'unknown-version') => no(id, `in front of the digits: ${JSON.stringify(text)}`, rule, (m) => text + m);
  return group('unknown-version', 'The right digits under another version label.', [s.shown], [
    label('v0', 'v0='), label('v2', 'v2='), label('v11', 'v11='), label('upper-case', 'V1='), label('v1a', 'v1a='),
    label('s', 's='), label('sha256', 'sha256='), label('v', 'v='),
    label('empty', '=', 'malformed-signature'), label('comma', 'v1,', 'malformed-signature'), label('colon', 'v1:', 'malformed-signature'),
    no('none', 'no label', 'malformed-signature', (m) => m),
    invalid(s, 'timestamp-label', 'an upper-case T= for the timestamp', ['UnknownVersion'], 'missing-timestamp',
      'there is no t=', header((t) => `T=${T},${t}`)),
  ]);
}

function truncated(s) {
  const no = (id, comment, make, rule = 'no-match') => invalid(s, id, comment, ['Truncated'], rule,
    'the signature has not 64 hexadecimal digits', header((t) => `t=${T},v1=${make(mac(t))}`));
  return group('truncated', 'A signature that is shorter or longer than a MAC.', [s.shown], [
    no('first-1', 'the first byte', (m) => m.slice(0, 2)),
    no('first-8', 'the first 8 bytes', (m) => m.slice(0, 16)),
    no('first-16', 'the first 16 bytes', (m) => m.slice(0, 32)),
    no('first-31', 'the first 31 bytes', (m) => m.slice(0, 62)),
    no('63-digits', 'all but the last digit', (m) => m.slice(0, 63), 'malformed-signature'),
    no('first-byte-missing', 'all but the first byte', (m) => m.slice(2)),
    no('one-digit-more', 'one digit more', (m) => m + '0', 'malformed-signature'),
    no('one-byte-more', 'one byte more', (m) => m + '00'),
    no('twice', 'the digits twice', (m) => m + m),
  ]);
}

function altered(s) {
  const no = (id, comment, change) => invalid(s, id, comment, ['AlteredSignature'], 'no-match',
    'the signature does not match', header((t) => `t=${T},v1=${change(Buffer.from(mac(t), 'hex')).toString('hex')}`));
  return group('altered', 'A signature of the right form and length with other digits.', [s.shown], [
    no('first-bit', 'one bit of the first byte', (b) => flip(b, 0)),
    no('middle-bit', 'one bit in the middle', (b) => flip(b, 16)),
    no('last-bit', 'one bit of the last byte', (b) => flip(b, -1)),
    no('zeros', 'zero bytes', (b) => Buffer.alloc(b.length)),
    no('ones', 'bytes of all ones', (b) => Buffer.alloc(b.length, 255)),
    no('reversed', 'the bytes in reverse', (b) => Buffer.from(b).reverse()),
  ]);
}

function odd(s) {
  const no = (id, comment, value, rule = 'malformed-signature') => invalid(s, id, comment, ['OddSignature'], rule,
    'the header holds no signature', { headers: () => [[name, value]] });
  // Without a t= there is nothing that could be signed.
  const bare = (id, comment, value) => no(id, comment, value, 'missing-timestamp');
  return group('odd-signature', 'A signature header that is no signature.', [s.shown], [
    bare('blank', 'a blank', ' '),
    bare('three-characters', 'three characters', 'abc'),
    bare('500-characters', '500 characters', 'a'.repeat(500)),
    no('500-digits', '500 digits behind the label', `t=${T},v1=${'a'.repeat(500)}`, 'no-match'),
    no('non-ascii', 'letters beyond ASCII', `t=${T},v1=\u00e9\u00df\u4e16`),
    no('multi-byte', 'as many characters as a true signature, but more bytes', `t=${T},v1=${'\u00e9'.repeat(64)}`),
    no('wide-digits', 'sixty-four full-width digits', `t=${T},v1=${'\uff10'.repeat(64)}`),
    no('not-hex', 'sixty-four letters that are no digits', `t=${T},v1=${'g'.repeat(64)}`),
    no('not-hex-last', 'sixty-three digits and a letter', `t=${T},v1=${'0'.repeat(63)}g`),
    bare('commas', 'commas alone', ',,,,,'),
    bare('equals', 'equals signs alone', '=,=,='),
    bare('labels', 'labels alone', 't,v1'),
    no('nul', 'a NUL', `t=${T},v1=\0`),
    bare('json', 'a JSON object', `{"t":${T},"v1":"x"}`),
    bare('word', 'the word null', 'null'),
  ]);
}

function malformedParts(s) {
  const maybe = (id, comment, part) => open(s, id, comment, ['MalformedToken'],
    'skipping the malformed part and refusing the request are both correct', header((t) => `t=${T},${part},${t}`));
  return group('malformed-token', 'A malformed part in front of the valid signature.', [s.shown], [
    maybe('label', 'a label alone', 'v1'),
    maybe('label-and-equals', 'a label without a value', 'v1='),
    maybe('letter', 'one letter', 'x'),
    maybe('not-hex', 'a value that is not hexadecimal', 'v1=%%%'),
    maybe('empty', 'nothing between two commas', ''),
    maybe('equals', 'an equals sign', '='),
    maybe('non-ascii', 'a value beyond ASCII', 'v1=\u00e9'),
    maybe('short', 'a value that is too short', 'v1=00'),
  ]);
}

function lenient(s) {
  const maybe = (id, comment, flag, make) => open(s, id, comment, [flag],
    'the right signature, but not in the spelling that the scheme describes', header((t) => make(mac(t))));
  const value = (id, comment, make) => maybe(id, comment, 'LenientEncoding', (m) => `t=${T},v1=${make(m)}`);
  const form = (id, comment, make) => maybe(id, comment, 'LenientGrammar', make);
  return group('lenient', 'The right signature in another spelling.', [s.shown], [
    value('upper-case', 'upper-case digits', (m) => m.toUpperCase()),
    value('mixed-case', 'digits of mixed case', (m) => m.replace(/[a-f]/, (c) => c.toUpperCase())),
    value('base64', 'base64', (m) => Buffer.from(m, 'hex').toString('base64')),
    value('base64url', 'url-safe base64 without padding', (m) => Buffer.from(m, 'hex').toString('base64url')),
    value('prefix', '0x in front of the digits', (m) => `0x${m}`),
    form('signature-first', 'the signature in front of the timestamp', (m) => `v1=${m},t=${T}`),
    form('blank-after-comma', 'a blank after the comma', (m) => `t=${T}, v1=${m}`),
    form('blank-around-equals', 'blanks around the equals signs', (m) => `t = ${T},v1 = ${m}`),
    form('outer-blanks', 'blanks at both ends', (m) => ` t=${T},v1=${m} `),
    form('semicolon', 'a semicolon for the comma', (m) => `t=${T};v1=${m}`),
    form('trailing-comma', 'a comma behind', (m) => `t=${T},v1=${m},`),
    form('quoted', 'the values in quotes', (m) => `t="${T}",v1="${m}"`),
    form('blank-separated', 'the header\'s parts separated by blanks', (m) => `t=${T} v1=${m}`),
  ]);
}

function wrongContent(s) {
  const join = (...parts) => Buffer.concat(parts.map((p) => Buffer.from(p)));
  const no = (id, comment, content) => invalid(s, id, comment, ['WrongContent'], 'no-match',
    'the signature covers other content than t.body', { content });
  return group('wrong-content', 'The right key over content that the scheme does not describe.', [s.shown], [
    no('body', 'the body alone', ({ body }) => join(body)),
    no('timestamp', 'the timestamp alone', ({ ts }) => join(ts)),
    no('timestamp-dot', 'the timestamp and the full stop', ({ ts }) => join(ts, '.')),
    no('joined', 'the two without a separator', ({ ts, body }) => join(ts, body)),
    no('colon', 'a colon for the full stop', ({ ts, body }) => join(ts, ':', body)),
    no('swapped', 'body.timestamp', ({ ts, body }) => join(body, '.', ts)),
    no('id', 'id.timestamp.body', ({ ts, body }) => join('whd_01J8ZC4T9.', ts, '.', body)),
    no('label', 't=timestamp.body', ({ ts, body }) => join('t=', ts, '.', body)),
    no('newline', 'a newline at the end', ({ ts, body }) => join(ts, '.', body, '\n')),
    no('milliseconds', 'the timestamp in milliseconds', ({ ts, body }) => join(ts, '000.', body)),
    no('nothing', 'no content at all', () => Buffer.alloc(0)),
  ]);
}

function algorithms(s) {
  const no = (id, comment, make) => invalid(s, id, comment, ['WrongAlgorithm'], 'no-match',
    'the signature is not HMAC-SHA256', { tokens: (c) => ['v1=' + make(c).toString('hex')] });
  return group('wrong-algorithm', 'Another algorithm under the right key.', [s.shown], [
    no('sha1', 'HMAC-SHA1', (c) => hmac(s.key.raw, c, 'sha1')),
    no('sha512', 'HMAC-SHA512', (c) => hmac(s.key.raw, c, 'sha512')),
    no('sha512-cut', 'HMAC-SHA512, cut to 32 bytes', (c) => hmac(s.key.raw, c, 'sha512').subarray(0, 32)),
    no('key-and-content-swapped', 'the content as key, the key as content', (c) => hmac(c, s.key.raw)),
  ]);
}

// dotShift: the full stop between timestamp and body, moved. The id stands in
// the body here, so that only the timestamp can be shifted.
function dotShift(s) {
  return group('dot-shift', 'One signed content, split in two ways.', [s.shown], [
    open(s, 'out-of-body', 'the start of the body as the fraction of the timestamp', ['DotShift', 'LenientTimestamp'],
      'number parsers differ on the timestamp; the content is that of another split', { ts: `${T}.5`, body: '7' }),
    valid(s, 'into-body', 'the same content as whole seconds and a longer body', ['DotShift'], { body: '5.7' }),
  ]);
}

// secrets are the forms in which the whole text is the key.
function secrets(s) {
  const raw = (id, secret) => ({ ...s, key: text(id, secret), shown: { id, secret } });
  const yes = (id, comment, secret) => group(`key-${id}`, comment, [{ id, secret }],
    [valid(raw(id, secret), 'plain', comment, ['KeyForm'])]);
  return [
    yes('whsec', 'a secret with the prefix whsec_: the whole text is the key', 'whsec_UFVCTElDIFRFU1QgS0VZLCBORVZFUiBVU0UgSVQh'),
    yes('non-ascii', 'a secret with letters beyond ASCII: its UTF-8 bytes are the key', 'public-test-secret-\u00e9\u4e16\u{1f511}-never-use'),
    yes('blanks', 'a secret with blanks inside', 'public test secret, never use it'),
  ];
}

export function verifyEnvelope(s) {
  const m = (c) => hmac(s.key.raw, c).toString('hex');
  const unknown = (c) => [`v0=${m(c)}`, `v2=${m(c)}`, 'v1a=' + 'ab'.repeat(64), 'next=abc'];
  const key = (id, raw) => ({ id, raw });
  return [
    group('body', 'Every spelling of a body, signed over its exact bytes.', [s.shown], spelt(s, false)),
    group('timestamp', 'Timestamps of several lengths, each at its own time.', [s.shown], when(s)),
    aroundTolerance(s), headerCase(s), tamperedBody(s), reserialised(s), tamperedTimestamp(s), malformedTimestamp(s),
    lenientTimestamp(s), missing(s), repeated(s), wrongContent(s), algorithms(s), dotShift(s), ...rotation(s),
    lists(s, unknown), unknownVersion(s), truncated(s), altered(s), odd(s), malformedParts(s), lenient(s), ...secrets(s),
    wrongSecret(s, [
      ['empty', 'an empty key', 'EmptyKey', key('empty', Buffer.alloc(0))],
      ['zeros', '32 zero bytes', 'WeakKey', key('zeros', Buffer.alloc(32))],
      ...weakKeys.map((w) => [`weak-${w.replace('_', '')}`, `the bytes of ${JSON.stringify(w)}`, 'WeakKey', key(w, Buffer.from(w))]),
      ['decoded', 'the right secret decoded as if it were base64', 'KeyReading', key('decoded', Buffer.from(s.key.secret, 'base64'))],
      ['newline', 'the right secret and a newline', 'KeyReading', key('newline', Buffer.from(s.key.secret + '\n'))],
      ['upper-case', 'the right secret in upper case', 'KeyReading', key('upper', Buffer.from(s.key.secret.toUpperCase()))],
    ]),
  ];
}
