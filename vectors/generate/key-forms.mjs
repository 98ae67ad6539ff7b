// The files of key texts: which a library must take, and which it must refuse.
// A test whose key can be read also has a delivery signed with it, so that the
// reading can be checked through signing or verifying alone.
import { T, group } from './build.mjs';
import { digest, ed25519, identityPoint, publicBytes, symmetric, text, withPlusAndSlash } from './keys.mjs';

const b64 = (bytes) => Buffer.from(bytes).toString('base64');

// delivery is one delivery signed with a key that can be read.
function delivery(s, key) {
  const input = { id: s.id, ts: String(T), body: Buffer.from(s.body) };
  const content = s.content(input);
  return {
    inputs: { ...(s.signsId ? { id: s.id } : {}), timestamp: input.ts, body: b64(input.body) },
    signedContent: b64(content),
    headers: s.headers({ ...input, tokens: [s.token(key, content)] }),
    now: T,
  };
}

// readable is a test with the key's decoded bytes and a signed delivery.
function readable(s, name, comment, flag, secret, key, decoded, verdict) {
  const { inputs, ...rest } = delivery(s, key);
  return { id: name, comment, flags: [flag], inputs: { secret, ...inputs }, key: decoded, ...rest, ...verdict };
}

const taken = { result: 'valid' };
const open = (reason) => ({ result: 'implementation-defined', reason });

function refused(name, comment, flag, rule, reason, secret) {
  return { id: name, comment, flags: [flag], inputs: { secret }, result: 'invalid', rule, reason };
}

function whsec(s) {
  const form = (n, comment) => {
    const key = symmetric('', publicBytes(`${n}`, n));
    return readable(s, `bytes-${n}`, comment, 'KeyForm', key.secret, key, { kind: 'hmac', raw: b64(key.raw) }, taken);
  };
  const of = (name, comment, flag, secret, raw, verdict = taken) =>
    readable(s, name, comment, flag, secret, { raw }, { kind: 'hmac', raw: b64(raw) }, verdict);
  const key = symmetric('', publicBytes('A', 32));
  const noisy = withPlusAndSlash('whconform public test key');
  const hexText = digest('whconform public test key D').toString('hex');
  const lenient = open('decoders differ; the key is the same');
  return group('whsec', 'HMAC keys: whsec_ and the padded standard base64 of 24 to 64 bytes.', [], [
    form(24, 'the shortest'), form(25, 'two padding characters'), form(32, 'the usual length'),
    form(33, 'no padding'), form(48, 'longer'), form(64, 'the longest, one block of SHA-256'),
    of('plus-and-slash', 'base64 with + and / in it', 'KeyForm', 'whsec_' + b64(noisy), noisy),
    of('looks-like-hex', 'text that looks like hexadecimal is base64 all the same', 'KeyReading', 'whsec_' + hexText, Buffer.from(hexText, 'base64')),
    of('without-prefix', 'no prefix', 'KeyPrefix', b64(key.raw), key.raw,
      open('the specification writes the prefix; its libraries take a key without')),
    of('supabase', 'the prefix v1, in front', 'KeyPrefix', 'v1,' + key.secret, key.raw,
      open('some dashboards show keys in this form; libraries need not take it')),
    of('trailing-newline', 'a newline behind, as a file has it', 'KeyEncoding', key.secret + '\n', key.raw, lenient),
    of('outer-blanks', 'blanks at both ends', 'KeyEncoding', `  ${key.secret}  `, key.raw, lenient),
    of('line-break', 'a line break inside the base64', 'KeyEncoding', key.secret.slice(0, 20) + '\n' + key.secret.slice(20), key.raw, lenient),
    of('trailing-bits', 'the unused bits of the last digit set', 'KeyEncoding', trailingBits(key.secret), key.raw, lenient),
  ]);
}

// trailingBits counts the last base64 digit up by one: padding leaves its low bits unused.
function trailingBits(secret) {
  const at = secret.indexOf('=') - 1;
  return secret.slice(0, at) + String.fromCharCode(secret.charCodeAt(at) + 1) + secret.slice(at + 1);
}

function whsecRefused() {
  const key = symmetric('', publicBytes('A', 32)).secret;
  const noisy = b64(withPlusAndSlash('whconform public test key'));
  const length = (name, comment, secret) =>
    refused(name, comment, 'KeyLength', 'key-length', 'an HMAC key has 24 to 64 bytes', secret);
  const encoding = (name, comment, secret) =>
    refused(name, comment, 'KeyEncoding', 'key-encoding', 'the key is not padded standard base64', secret);
  const prefix = (name, comment, secret) =>
    refused(name, comment, 'KeyPrefix', 'key-prefix', 'the prefix does not belong there', secret);
  const bytes = (n) => 'whsec_' + b64(publicBytes(`${n}`, n));
  return group('whsec-refused', 'HMAC keys that must be refused.', [], [
    refused('empty', 'no text', 'KeyLength', 'key-empty', 'there is no key', ''),
    refused('prefix-alone', 'the prefix alone', 'KeyLength', 'key-empty', 'there is no key', 'whsec_'),
    refused('blank', 'a blank', 'KeyLength', 'key-empty', 'there is no key', ' '),
    length('bytes-1', 'one byte', bytes(1)),
    length('bytes-16', '16 bytes', bytes(16)),
    length('bytes-23', 'one byte too short', bytes(23)),
    length('bytes-65', 'one byte too long', bytes(65)),
    length('bytes-128', '128 bytes', bytes(128)),
    length('word', 'a word that is base64 by chance', 'whsec_changeme'.padEnd(14, '=')),
    encoding('percent', 'characters that are not base64', key.slice(0, 20) + '%%%%' + key.slice(24)),
    encoding('without-padding', 'the padding left out', key.replaceAll('=', '')),
    encoding('more-padding', 'one padding character more', key + '='),
    encoding('inner-padding', 'a padding character inside', key.slice(0, 21) + '=' + key.slice(22)),
    encoding('url-safe', 'the url-safe alphabet', 'whsec_' + noisy.replaceAll('+', '-').replaceAll('/', '_')),
    encoding('inner-blank', 'a blank inside', key.slice(0, 20) + ' ' + key.slice(20)),
    encoding('text-behind', 'text behind the padding', key + 'AAAA'),
    encoding('one-digit-too-many', 'a base64 digit too many', key.replace('=', 'A=')),
    encoding('non-ascii', 'a letter beyond ASCII', key.slice(0, 20) + '\u00e9' + key.slice(21)),
    encoding('quoted', 'in quotes, as an environment file has it', `"${key}"`),
    prefix('upper-case', 'the prefix in upper case', key.replace('whsec_', 'WHSEC_')),
    prefix('twice', 'the prefix twice', 'whsec_' + key),
    prefix('hyphen', 'a hyphen for the underscore', key.replace('whsec_', 'whsec-')),
    prefix('foreign', 'the prefix of another kind of secret', key.replace('whsec_', 'sk_test_')),
    prefix('misspelt', 'the prefix misspelt', key.replace('whsec_', 'whsek_')),
  ]);
}

function ed25519Keys(s) {
  const key = ed25519('', publicBytes('ED25519 A', 32));
  const noisy = ed25519('', withPlusAndSlash('whconform public test seed'));
  const form = (name, comment, secret, k, kind) => readable(s, name, comment, 'KeyForm', secret, k,
    { kind, raw: b64(kind === 'ed25519-public' ? k.public : k.seed), public: b64(k.public) }, taken);
  return group('ed25519', 'Ed25519 keys: whsk_ (seed, or seed and public half) and whpk_ (public).', [], [
    form('seed', 'a private key as its seed of 32 bytes', key.secret, key, 'ed25519-private'),
    form('long', 'a private key of 64 bytes: seed and public half', key.long, key, 'ed25519-private'),
    form('public', 'a public key of 32 bytes', key.publicText, key, 'ed25519-public'),
    form('seed-plus-and-slash', 'a seed with other bytes', noisy.secret, noisy, 'ed25519-private'),
    form('long-plus-and-slash', 'the 64-byte form with other bytes', noisy.long, noisy, 'ed25519-private'),
    form('public-plus-and-slash', 'a public key with other bytes', noisy.publicText, noisy, 'ed25519-public'),
    {
      id: 'public-small-order', comment: 'a public key of order one', flags: ['SmallOrder'],
      inputs: { secret: 'whpk_' + b64(identityPoint) }, ...open('libraries that check points refuse it'),
    },
    {
      id: 'public-not-a-point', comment: '32 bytes that are not a point of the curve', flags: ['SmallOrder'],
      inputs: { secret: 'whpk_' + b64(Buffer.concat([Buffer.from([2]), Buffer.alloc(31)])) },
      ...open('refused when it is configured, or at each verification'),
    },
  ]);
}

function ed25519Refused() {
  const key = ed25519('', publicBytes('ED25519 A', 32));
  const other = ed25519('', publicBytes('ED25519 B', 32));
  const halves = (seed, pub) => 'whsk_' + b64(Buffer.concat([seed, pub]));
  const mismatch = (name, comment, secret) => refused(name, comment, 'KeyMismatch', 'key-mismatch',
    'the public half is not that of the seed', secret);
  const length = (name, comment, secret, reason) => refused(name, comment, 'KeyLength', 'key-length', reason, secret);
  const privateLength = 'an Ed25519 private key has 32 or 64 bytes';
  const publicLength = 'an Ed25519 public key has 32 bytes';
  const n = (size) => b64(publicBytes(`${size}`, size));
  return group('ed25519-refused', 'Ed25519 keys that must be refused.', [], [
    mismatch('halves-of-two-keys', 'the seed of one key, the public half of another', halves(key.seed, other.public)),
    mismatch('halves-zero', 'a public half of zeros', halves(key.seed, Buffer.alloc(32))),
    mismatch('halves-seed-twice', 'the seed twice', halves(key.seed, key.seed)),
    mismatch('halves-swapped', 'the public half in front', halves(key.public, key.seed)),
    refused('private-prefix-alone', 'the prefix whsk_ alone', 'KeyLength', 'key-empty', 'there is no key', 'whsk_'),
    refused('public-prefix-alone', 'the prefix whpk_ alone', 'KeyLength', 'key-empty', 'there is no key', 'whpk_'),
    length('private-31', 'a private key of 31 bytes', 'whsk_' + n(31), privateLength),
    length('private-33', 'a private key of 33 bytes', 'whsk_' + n(33), privateLength),
    length('private-48', 'a private key of 48 bytes', 'whsk_' + n(48), privateLength),
    length('private-63', 'a private key of 63 bytes', 'whsk_' + n(63), privateLength),
    length('private-65', 'a private key of 65 bytes', 'whsk_' + n(65), privateLength),
    length('public-31', 'a public key of 31 bytes', 'whpk_' + n(31), publicLength),
    length('public-33', 'a public key of 33 bytes', 'whpk_' + n(33), publicLength),
    length('public-64', 'the long private form under the public prefix', key.long.replace('whsk_', 'whpk_'), publicLength),
    refused('private-without-padding', 'a private key without its padding', 'KeyEncoding', 'key-encoding',
      'the key is not padded standard base64', key.secret.replaceAll('=', '')),
    refused('public-without-padding', 'a public key without its padding', 'KeyEncoding', 'key-encoding',
      'the key is not padded standard base64', key.publicText.replaceAll('=', '')),
    refused('private-not-base64', 'a private key that is not base64', 'KeyEncoding', 'key-encoding',
      'the key is not padded standard base64', 'whsk_' + '%'.repeat(44)),
    refused('public-hex', 'a public key in hexadecimal', 'KeyLength', 'key-length', publicLength,
      'whpk_' + key.public.toString('hex')),
    refused('upper-case', 'the prefix in upper case', 'KeyPrefix', 'key-prefix', 'the prefix does not belong there',
      key.secret.replace('whsk_', 'WHSK_')),
    refused('twice', 'the prefix twice', 'KeyPrefix', 'key-prefix', 'the prefix does not belong there', 'whsk_' + key.secret),
  ]);
}

// standardKeys is the key file of Standard Webhooks.
export function standardKeys(v1, v1a) {
  return [whsec(v1), whsecRefused(), ed25519Keys(v1a), ed25519Refused()];
}

// envelopeKeys is the key file of the delivery envelope: the text is the key.
export function envelopeKeys(s) {
  const form = (name, comment, secret, flag = 'KeyForm', verdict = taken) => {
    const key = text('', secret);
    return readable(s, name, comment, flag, secret, key, { kind: 'hmac', raw: b64(key.raw) }, verdict);
  };
  const trimmed = open('some loaders trim what they read from a file or an environment');
  return [
    group('text', 'The secret\'s UTF-8 bytes are the key, whatever they look like.', [], [
      form('ascii', 'ASCII letters', 'public-test-secret-A-never-use-it'),
      form('whsec', 'a prefix is part of the key', symmetric('', publicBytes('A', 32)).secret),
      form('base64', 'base64 is not decoded', b64(publicBytes('A', 32)), 'KeyReading'),
      form('hex', 'hexadecimal is not decoded', publicBytes('A', 32).toString('hex'), 'KeyReading'),
      form('non-ascii', 'letters beyond ASCII', 'public-test-secret-\u00e9\u4e16\u{1f511}-never-use'),
      form('decomposed', 'a decomposed letter is not composed', 'public-test-secret-e\u0301-never-use-it'),
      form('inner-blanks', 'blanks inside', 'public test secret, never use it'),
      form('block', '64 bytes, one block of SHA-256', publicBytes('BLOCK', 64).toString('latin1').replaceAll(' ', '-')),
      form('long', '100 bytes, more than a block', publicBytes('LONG', 100).toString('latin1').replaceAll(' ', '-')),
      form('trailing-newline', 'a newline behind, as a file has it', 'public-test-secret-A-never-use-it\n', 'KeyReading', trimmed),
      form('outer-blanks', 'blanks at both ends', '  public-test-secret-A-never-use-it  ', 'KeyReading', trimmed),
      form('short', 'a short secret', 'public-test', 'KeyLength', open('the scheme states no least length')),
    ]),
    group('text-refused', 'Secrets that must be refused.', [], [
      refused('empty', 'no text', 'KeyLength', 'key-empty', 'there is no key', ''),
    ]),
  ];
}
