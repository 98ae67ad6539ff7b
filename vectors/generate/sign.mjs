// The files of what a signer must write: exact headers for each input.
import { group, open, valid } from './build.mjs';
import { spelt, when } from './common.mjs';
import { publicBytes, symmetric, text } from './keys.mjs';

// ids is one valid test for each shape of id that a header can carry.
export function ids(s) {
  const one = (name, comment, id) => valid(s, name, comment, ['IdShape'], { id });
  return [
    one('ksuid', 'prefix and KSUID', 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'),
    one('uuid', 'a UUID', '0197a3f2-7c1e-7b6a-9d55-3f1c2b4a5d6e'),
    one('uuid-prefixed', 'prefix and UUID without hyphens', 'msg_0197a3f27c1e7b6a9d553f1c2b4a5d6e'),
    one('ulid', 'a ULID', '01JGFJJZ00E3Q6K8ZC4T9N5V2W'),
    one('evt', 'a prefix of another provider', 'evt_1QXyZ2AbCdEfGhIj'),
    one('digits', 'digits alone', '1234567890'),
    one('digits-like-time', 'digits that look like a timestamp', '1767225600'),
    one('leading-zeros', 'digits with zeros in front', '000042'),
    one('one-char', 'one character', 'x'),
    one('zero', 'the digit 0', '0'),
    one('punctuation', 'punctuation but no full stop', 'a:b-c_d~e+f=g'),
    one('upper-case', 'upper case', 'MSG_ABCDEF'),
    one('long', '255 characters', 'msg_' + 'x'.repeat(251)),
  ];
}

export function dottedIds(s) {
  const why = 'the specification asks senders for ids without a full stop; implementations may refuse others';
  const one = (name, comment, id) => open(s, name, comment, ['FullStopInId'], why, { id });
  return group('full-stop-id', 'Ids with the separator of the signed content in them.', [s.shown], [
    one('middle', 'a full stop inside', 'msg.42'),
    one('first', 'a full stop in front', '.42'),
    one('last', 'a full stop behind', 'msg.'),
    one('alone', 'a full stop alone', '.'),
  ]);
}

// several signs with more than one key, in the order of the group's keys.
function several(s) {
  const by = (...keys) => ({ tokens: (c) => keys.map((k) => s.token(k, c)) });
  const [a, b, c] = s.signers;
  const one = (name, comment, ...keys) => valid(s, name, comment, ['Rotation'], by(...keys));
  return [
    group('two-keys', 'Two keys sign during a rotation: one signature each, in the order of the keys.', [b, a],
      [one('both', 'both sign', s.other, s.key)]),
    group('two-keys-reversed', 'The same two keys in the other order.', [a, b],
      [one('both', 'both sign', s.key, s.other)]),
    group('three-keys', 'Three keys.', [c, b, a],
      [one('all', 'all sign', s.third, s.other, s.key)]),
    group('third-key', 'The third key alone.', [c],
      [valid(s, 'one', 'one signs', ['Ordinary'], { key: s.third })]),
  ];
}

function sizes(s, keys, flags) {
  return keys.map(([name, comment, key]) =>
    group(name, comment, [{ id: key.id, secret: key.secret }],
      [valid(s, 'plain', comment, flags, { key }), valid(s, 'empty', 'an empty body', ['EmptyBody'], { key, body: '' })]));
}

export function signV1(s) {
  const key = (n) => symmetric(`${n}-bytes`, publicBytes(`${n}`, n));
  return [
    group('body', 'Every spelling of a body: the signature covers its exact bytes.', [s.signers[0]], spelt(s, true)),
    group('id', 'Ids of several shapes.', [s.signers[0]], ids(s)),
    group('timestamp', 'Timestamps of several lengths.', [s.signers[0]], when(s)),
    dottedIds({ ...s, shown: s.signers[0] }),
    ...several(s),
    ...sizes(s, [
      ['key-24', 'the shortest key', key(24)],
      ['key-25', 'a key whose base64 ends with two padding characters', key(25)],
      ['key-64', 'the longest key, one block of SHA-256', key(64)],
    ], ['KeyForm']),
  ];
}

export function signV1a(s, v1) {
  const shown = s.signers[0];
  const both = (first, second) => ({ tokens: (c) => [first(c), second(c)] });
  const asymmetric = (c) => s.token(s.key, c);
  const symmetricToken = (c) => v1.token(v1.key, c);
  return [
    group('body', 'Every spelling of a body: the signature covers its exact bytes.', [shown], spelt(s, true)),
    group('id', 'Ids of several shapes.', [shown], ids(s)),
    group('timestamp', 'Timestamps of several lengths.', [shown], when(s)),
    dottedIds({ ...s, shown }),
    ...several(s),
    group('long-form', 'The 64-byte form of the same private key: seed and public half.',
      [{ id: 'a-long', secret: s.key.long }], [valid(s, 'plain', 'signed with the long form', ['KeyForm'])]),
    group('both-schemes', 'A symmetric and an Ed25519 key sign the same message.', [v1.signers[0], { ...shown, id: 'a-ed25519' }],
      [valid(s, 'plain', 'both sign', ['TokenList'], both(symmetricToken, asymmetric))]),
    group('both-schemes-reversed', 'The same two keys in the other order.', [{ ...shown, id: 'a-ed25519' }, v1.signers[0]],
      [valid(s, 'plain', 'both sign', ['TokenList'], both(asymmetric, symmetricToken))]),
  ];
}

export function signEnvelope(s) {
  const shown = s.signers[0];
  return [
    group('body', 'Every spelling of a body: the signature covers its exact bytes.', [shown], spelt(s, true)),
    group('timestamp', 'Timestamps of several lengths.', [shown], when(s)),
    ...several(s),
    ...sizes(s, [
      ['key-whsec', 'a secret with the prefix whsec_: the whole text is the key', text('whsec', symmetric('', publicBytes('A', 32)).secret)],
      ['key-non-ascii', 'a secret with letters beyond ASCII: its UTF-8 bytes are the key', text('non-ascii', 'public-test-secret-\u00e9\u4e16\u{1f511}-never-use')],
      ['key-long', 'a secret longer than a block of SHA-256', text('long', publicBytes('LONG', 100).toString('latin1'))],
    ], ['KeyForm']),
  ];
}
