// The cases that every scheme shares: they differ only in how the scheme
// writes its headers.
import { T, foreign, flip, group, invalid, open, tolerance, valid } from './build.mjs';
import { bodies, large } from './bodies.mjs';

const hours = 3600;

// spelt is one valid test for each body. With big also the one of 64 KiB.
export function spelt(s, big) {
  const tests = bodies(s.event).map(([name, comment, flags, body]) =>
    valid(s, name, comment, flags, { body }));
  if (big) {
    tests.push(valid(s, 'large', 'an event of 64 KiB', ['LargeBody'], { body: large(s.event, 65536) }));
  }
  return tests;
}

// when is one valid test for each timestamp, at its own time.
export function when(s) {
  const at = (name, comment, ts) => valid(s, name, comment, ['TimestampRange'], { ts: String(ts), now: ts });
  return [
    at('nine-digits', 'a timestamp of nine digits (1973)', 123456789),
    at('before-2038', 'the last second of a signed 32-bit clock', 2147483647),
    at('after-2038', 'the first second past a signed 32-bit clock', 2147483648),
    at('after-2106', 'the first second past an unsigned 32-bit clock', 4294967296),
    at('eleven-digits', 'a timestamp of eleven digits (2286)', 10000000000),
  ];
}

export function aroundTolerance(s) {
  const at = (ts) => ({ ts: String(ts) });
  const fresh = (name, comment, ts) => valid(s, name, comment, ['Tolerance'], at(ts));
  const stale = (name, comment, ts) =>
    invalid(s, name, comment, ['Tolerance'], 'stale', `signed more than ${tolerance} s before now`, at(ts));
  const ahead = (name, comment, ts) =>
    invalid(s, name, comment, ['Tolerance'], 'future', `signed more than ${tolerance} s after now`, at(ts));
  return group('tolerance', `The tolerance is ${tolerance} s each way, inclusive.`, [s.shown], [
    fresh('past-5', 'signed 5 s ago', T - 5),
    fresh('future-5', 'signed 5 s ahead', T + 5),
    fresh('past-240', 'signed 240 s ago', T - 240),
    fresh('future-240', 'signed 240 s ahead', T + 240),
    fresh('past-299', 'signed 299 s ago', T - 299),
    fresh('future-299', 'signed 299 s ahead', T + 299),
    fresh('past-300', 'signed exactly 300 s ago', T - 300),
    fresh('future-300', 'signed exactly 300 s ahead', T + 300),
    stale('past-301', 'signed 301 s ago', T - 301),
    ahead('future-301', 'signed 301 s ahead', T + 301),
    stale('past-600', 'signed 10 minutes ago', T - 600),
    ahead('future-600', 'signed 10 minutes ahead', T + 600),
    stale('past-day', 'signed a day ago', T - 24 * hours),
    ahead('future-day', 'signed a day ahead', T + 24 * hours),
    stale('past-decades', 'signed at second 1', 1),
  ]);
}

export function tamperedBody(s) {
  const base = s.event('12345');
  const over = (body) => ({ body, signed: { body: Buffer.from(base) } });
  const no = (name, comment, body) =>
    invalid(s, name, comment, ['TamperedBody'], 'no-match', 'the body is not the one that was signed', over(body));
  return group('tampered-body', 'The body was changed after signing.', [s.shown], [
    no('digit', 'one digit changed', base.replace('12345', '12346')),
    no('append-byte', 'one byte appended', base + '0'),
    no('append-blank', 'a blank appended', base + ' '),
    no('append-nul', 'a NUL appended', base + '\0'),
    no('remove-last', 'the last byte removed', base.slice(0, -1)),
    no('remove-first', 'the first byte removed', base.slice(1)),
    no('first-bit', 'one bit of the first byte flipped', flip(Buffer.from(base), 0)),
    no('emptied', 'the body removed', ''),
    no('doubled', 'the body twice', base + base),
    no('case', 'a letter in another case', base.replace('invoice', 'Invoice')),
    invalid(s, 'filled', 'an empty body filled', ['TamperedBody'], 'no-match',
      'the body is not the one that was signed', over0(base)),
  ]);
}

const over0 = (body) => ({ body, signed: { body: Buffer.alloc(0) } });

export function reserialised(s) {
  const no = (name, comment, signed, body) =>
    invalid(s, name, comment, ['Reserialised'], 'no-match', 'the body is not spelt as it was signed',
      { body, signed: { body: Buffer.from(signed) } });
  const plain = s.event('"plain"');
  const sorted = JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(plain)).sort().reverse()));
  return group('reserialised', 'The body was changed after signing, in its spelling alone.', [s.shown], [
    no('one-space-more', 'a compact body with one blank more', plain, plain.replace('":', '": ')),
    no('spaces-dropped', 'the blanks after colons dropped', plain.replaceAll('":', '": '), plain),
    no('keys-reversed', 'the members in another order', plain, sorted),
    no('plus-escaped', '+ escaped, as System.Text.Json prints it', s.event('"a+b"'), s.event('"a\\u002Bb"')),
    no('non-ascii-escaped', 'a letter escaped, as Python prints it', s.event('"caf\u00e9"'), s.event('"caf\\u00e9"')),
    no('non-ascii-unescaped', 'an escape resolved, as JavaScript prints it', s.event('"caf\\u00e9"'), s.event('"caf\u00e9"')),
    no('escape-case', 'the digits of an escape in upper case', s.event('"caf\\u00e9"'), s.event('"caf\\u00E9"')),
    no('html-escaped', '<, > and & escaped, as Go prints them', s.event('"<a&b>"'), s.event('"\\u003ca\\u0026b\\u003e"')),
    no('slash-escaped', 'slashes escaped, as PHP prints them', s.event('"a/b"'), s.event('"a\\/b"')),
    no('slash-unescaped', 'an escaped slash resolved', s.event('"a\\/b"'), s.event('"a/b"')),
    no('number-shortened', '1.0 printed as 1', s.event('1.0'), s.event('1')),
    no('exponent-resolved', '1e2 printed as 100', s.event('1e2'), s.event('100')),
    no('digits-lost', 'twenty digits through a double', s.event('12345678901234567890'), s.event('12345678901234567000')),
    no('minus-zero', '-0 printed as 0', s.event('-0'), s.event('0')),
    no('newline-trimmed', 'the newline at the end dropped', plain + '\n', plain),
    no('newline-added', 'a newline added at the end', plain, plain + '\n'),
    no('crlf-to-lf', 'CR LF turned into LF', plain.replaceAll(',', ',\r\n'), plain.replaceAll(',', ',\n')),
    no('string-trimmed', 'a string trimmed', s.event('"  padded  "'), s.event('"padded"')),
    no('empty-to-null', 'an empty string turned into null', s.event('""'), s.event('null')),
    no('normalised', 'a decomposed letter composed (NFC)', s.event('"cafe\u0301"'), s.event('"caf\u00e9"')),
    no('bom-dropped', 'the byte order mark dropped', '\ufeff' + plain, plain),
    no('bom-added', 'a byte order mark added', plain, '\ufeff' + plain),
    lossyText(s),
  ]);
}

// lossyText: the one spelling in which code that takes text cannot be blamed by
// its own interface.
function lossyText(s) {
  return open(s, 'lossy-text', 'U+FFFD signed, a byte that is not UTF-8 received in its place', ['LossyText'],
    'an implementation that takes text sees the same text; one that takes bytes refuses',
    { body: Buffer.from(s.event('"caf\u00e9"'), 'latin1'), signed: { body: Buffer.from(s.event('"caf\ufffd"')) } });
}

export function tamperedTimestamp(s) {
  const no = (name, comment, ts) =>
    invalid(s, name, comment, ['TamperedTimestamp'], 'no-match', 'the timestamp is not the one that was signed',
      { ts: String(ts), signed: { ts: String(T) } });
  return group('tampered-timestamp', 'The timestamp was moved after signing, inside the tolerance.', [s.shown], [
    no('minus-1', 'one second earlier', T - 1),
    no('plus-1', 'one second later', T + 1),
    no('minus-299', '299 s earlier', T - 299),
    no('plus-299', '299 s later', T + 299),
    invalid(s, 'refreshed', 'a request captured a day ago with a fresh timestamp', ['TamperedTimestamp'], 'no-match',
      'the timestamp is not the one that was signed', { signed: { ts: String(T - 24 * hours) } }),
  ]);
}

export function malformedTimestamp(s) {
  const no = (name, comment, ts, rule = 'malformed-timestamp') =>
    invalid(s, name, comment, ['MalformedTimestamp'], rule,
      rule === 'future' ? 'read as seconds it lies far in the future' : 'the timestamp is not Unix seconds', { ts });
  return group('malformed-timestamp', 'The timestamp is not Unix seconds; each is signed as it stands.', [s.shown], [
    no('word', 'letters', 'abc'),
    no('minus-1', 'a negative number', '-1'),
    no('minus-now', 'the time, negative', String(-T)),
    no('overflow-double', 'more than a double holds', '1e400'),
    no('exponent', 'the time with an exponent', '1.7672256e9'),
    no('two-to-63', 'one more than a signed 64-bit integer holds', '9223372036854775808'),
    no('two-to-64', 'zero after wrapping in 64 bits', '18446744073709551616'),
    no('two-to-64-and-now', 'now after wrapping in 64 bits', String(2n ** 64n + BigInt(T))),
    no('hundred-digits', 'a hundred digits', '1'.repeat(100)),
    no('hex', 'the time in hexadecimal', '0x' + T.toString(16)),
    no('hex-bare', 'the time in hexadecimal without a prefix', T.toString(16)),
    no('milliseconds', 'the time in milliseconds', `${T}000`, 'future'),
    no('microseconds', 'the time in microseconds', `${T}000000`, 'future'),
    no('iso-date', 'an ISO 8601 date', '2026-01-01T00:00:00Z'),
    no('http-date', 'an HTTP date', 'Thu 01 Jan 2026 00:00:00 GMT'),
    no('nan', 'not a number', 'NaN'),
    no('infinity', 'infinity', 'Infinity'),
    no('null', 'the word null', 'null'),
    no('non-ascii-digits', 'the time in Arabic-Indic digits',
      [...String(T)].map((d) => String.fromCharCode(0x660 + Number(d))).join('')),
    no('grouped', 'the time with digits grouped', '1_767_225_600'),
  ]);
}

export function lenientTimestamp(s) {
  const maybe = (name, comment, ts) =>
    open(s, name, comment, ['LenientTimestamp'], 'number parsers differ on this text', { ts });
  return group('lenient-timestamp', 'A timestamp that some number parsers take; each is signed as it stands.', [s.shown], [
    maybe('fraction', 'a fraction', `${T}.5`),
    maybe('fraction-zero', 'a fraction of zero', `${T}.0`),
    maybe('leading-blank', 'a blank in front', ` ${T}`),
    maybe('trailing-blank', 'a blank behind', `${T} `),
    maybe('plus', 'a plus sign', `+${T}`),
    maybe('leading-zero', 'a zero in front', `0${T}`),
    maybe('trailing-text', 'letters behind', `${T}abc`),
  ]);
}

// wrongSecret: any key but the configured one.
export function wrongSecret(s, weak) {
  const no = (name, comment, flag, key) =>
    invalid(s, name, comment, [flag], 'no-match', 'not signed with the configured secret', { key });
  return group('wrong-secret', 'Signed with a secret that is not configured.', [s.shown], [
    no('other', 'another secret of the same form', 'WrongSecret', s.other),
    no('one-bit', 'a secret that differs in one bit', 'WrongSecret', s.near),
    ...weak.map(([name, comment, flag, key]) => no(name, comment, flag, key)),
  ]);
}

// lists: the valid signature among others. unknown makes tokens of versions
// that this scheme does not know. costly tells that checking a signature costs
// so much that an implementation may stop after a few.
export function lists(s, unknown, costly = false) {
  const right = (c) => s.token(s.key, c);
  const yes = (name, comment, tokens) => valid(s, name, comment, ['TokenList'], { tokens });
  const no = (name, comment, tokens, flag = 'TokenList') =>
    invalid(s, name, comment, [flag], 'no-match', 'no signature in the list matches', { tokens });
  return group('list', 'Several signatures: any one of a known version may match.', [s.shown], [
    yes('first', 'the valid one first, then a foreign one', (c) => [right(c), ...foreign(s, c)]),
    yes('last', 'a foreign one, then the valid one', (c) => [...foreign(s, c), right(c)]),
    yes('middle', 'the valid one between foreign ones', (c) => {
      const [a, b] = foreign(s, c, 2);
      return [a, right(c), b];
    }),
    yes('last-of-five', 'the valid one after four foreign ones', (c) => [...foreign(s, c, 4), right(c)]),
    costly
      ? open(s, 'last-of-sixteen', 'the valid one after fifteen foreign ones', ['TokenList'],
        'an implementation may bound how many signatures it checks', { tokens: (c) => [...foreign(s, c, 15), right(c)] })
      : yes('last-of-sixteen', 'the valid one after fifteen foreign ones', (c) => [...foreign(s, c, 15), right(c)]),
    yes('after-unknown', 'the valid one after an unknown version', (c) => [...unknown(c).slice(0, 1), right(c)]),
    yes('before-unknown', 'the valid one before an unknown version', (c) => [right(c), ...unknown(c).slice(0, 1)]),
    yes('among-unknown', 'the valid one among several unknown versions', (c) => {
      const [first, ...rest] = unknown(c);
      return [first, right(c), ...rest];
    }),
    yes('among-both', 'the valid one among foreign ones and unknown versions', (c) =>
      [...foreign(s, c), ...unknown(c), right(c), ...foreign(s, c)]),
    yes('twice', 'the valid one twice', (c) => [right(c), right(c)]),
    no('two-foreign', 'two foreign ones', (c) => foreign(s, c, 2)),
    no('sixteen-foreign', 'sixteen foreign ones', (c) => foreign(s, c, 16)),
    no('foreign-and-unknown', 'a foreign one and the right bytes under unknown versions', (c) =>
      [...foreign(s, c), ...unknown(c)]),
    no('thousand-foreign', 'a thousand foreign ones', (c) => foreign(s, c, 1000), 'ManyTokens'),
    open(s, 'thousand-valid-last', 'the valid one after 999 foreign ones', ['ManyTokens'],
      'an implementation may bound how many tokens it looks at',
      { tokens: (c) => [...foreign(s, c, 999), right(c)] }),
  ]);
}

export function rotation(s) {
  const by = (...keys) => ({ tokens: (c) => keys.map((k) => s.token(k, c)) });
  const yes = (name, comment, o) => valid(s, name, comment, ['Rotation'], o);
  const no = (name, comment, o) =>
    invalid(s, name, comment, ['Rotation'], 'no-match', 'not signed with a configured secret', o);
  return [
    group('rotation', 'Two secrets are configured: the new one and, until the overlap ends, the old one.',
      [s.shownOther, s.shown], [
        yes('old', 'signed with the old one', by(s.key)),
        yes('new', 'signed with the new one', by(s.other)),
        yes('both', 'signed with both, the new one first', by(s.other, s.key)),
        yes('both-reversed', 'signed with both, the old one first', by(s.key, s.other)),
        yes('third-and-old', 'a third secret and the old one', by(s.third, s.key)),
        no('third', 'signed with a third secret', by(s.third)),
        no('third-twice', 'signed with a third secret, twice', by(s.third, s.third)),
        invalid(s, 'old-for-other-body', 'each secret signed, but another body', ['Rotation'], 'no-match',
          'the body is not the one that was signed',
          { ...by(s.other, s.key), signed: { body: Buffer.from(s.event('"other"')) } }),
      ]),
    group('rotated', 'The overlap is over: only the new secret is configured.', [s.shownOther], [
      yes('both', 'signed with both', by(s.key, s.other)),
      yes('new', 'signed with the new one', by(s.other)),
      no('old', 'signed with the retired one', by(s.key)),
    ]),
  ];
}
