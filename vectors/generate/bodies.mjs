// The bodies: one event, spelt in every way that a re-serialising middleware
// would change, and bodies that are not JSON or not text at all.

// bodies returns [name, comment, flags, bytes] for each body. event(probe) is the
// scheme's own event with a member "note" of that JSON text.
export function bodies(event) {
  return [...spellings(event), ...oddJson(event), ...notJson(event)].map(
    ([name, comment, flag, body]) => [name, comment, [flag], Buffer.from(body)],
  );
}

function spellings(event) {
  const plain = event('"plain"');
  const raw = (name, comment, body) => [name, comment, 'RawBytes', body];
  return [
    ['compact', 'a compact JSON event that most serialisers would print unchanged', 'Ordinary', plain],
    raw('space-after-colon', 'a blank after each colon between members', plain.replaceAll('":', '": ')),
    raw('space-after-comma', 'a blank after each comma', plain.replaceAll(',', ', ')),
    raw('spaces', 'a blank after each colon and comma', plain.replaceAll('":', '": ').replaceAll(',', ', ')),
    raw('one-space-more', 'a compact body with one blank more: the sharpest probe', plain.replace('":', '": ')),
    raw('plus-offset', 'a time with the offset +00:00 for Z', plain.replace('00Z"', '00+00:00"')),
    raw('utf8-raw', 'letters beyond ASCII as raw UTF-8', event('"Zo\u00eb \u00c5ngstr\u00f6m \u017b\u00f3\u0142\u0107"')),
    raw('escape-latin', 'a letter escaped that need not be, lower-case digits', event('"caf\\u00e9"')),
    raw('escape-latin-upper', 'a letter escaped that need not be, upper-case digits', event('"caf\\u00E9"')),
    raw('escape-ascii', 'an ASCII letter escaped', event('"\\u0041BC"')),
    raw('escape-ampersand', 'an ampersand escaped', event('"a\\u0026b"')),
    raw('html-chars', 'raw <, > and &', event('"<b>R&D</b> <i>&amp;</i>"')),
    raw('slashes', 'raw slashes', event('"https://example.com/a/b/c"')),
    raw('escaped-slashes', 'escaped slashes', event('"https:\\/\\/example.com\\/a\\/b"')),
    raw('mixed-slashes', 'raw and escaped slashes side by side', event('"https://example.com\\/a/b"')),
    raw('unsorted-keys', 'members in no order', event('{"zebra":1,"apple":2,"mango":3}')),
    raw('integer-keys', 'integer-like keys out of order', event('{"10":"ten","2":"two","1":"one"}')),
    raw('float-one', 'the number 1.0', event('1.0')),
    raw('exponent', 'the number 1e2', event('1e2')),
    raw('trailing-zero', 'the number 10.50', event('10.50')),
    raw('twenty-digits', 'an integer of twenty digits', event('12345678901234567890')),
    raw('minus-zero', 'the number -0', event('-0')),
    raw('long-fraction', 'more digits than a double holds', event('0.1234567890123456789012345')),
    raw('outer-blanks', 'a string with blanks at both ends', event('"  padded  "')),
    raw('empty-string', 'an empty string', event('""')),
    raw('null', 'a null member', event('null')),
    raw('empty-containers', 'an empty object and an empty list', event('{"a":{},"b":[]}')),
    raw('trailing-newline', 'a newline at the end', plain + '\n'),
    raw('trailing-crlf', 'CR LF at the end', plain + '\r\n'),
    raw('leading-newline', 'a newline and blanks in front', '\n  ' + plain),
    raw('tabs', 'indented by tabs', plain.replaceAll(',', ',\n\t').replace('{', '{\n\t')),
    raw('crlf', 'lines that end with CR LF', plain.replaceAll(',', ',\r\n')),
    raw('cr-alone', 'lines that end with CR', plain.replaceAll(',', ',\r')),
    raw('line-separator', 'raw U+2028 and U+2029', event('"a\u2028b\u2029c"')),
    raw('emoji-raw', 'an emoji as raw UTF-8', event('"\u{1f600}"')),
    raw('emoji-escaped', 'an emoji as an escaped surrogate pair', event('"\\ud83d\\ude00"')),
    raw('decomposed', 'a letter as a base letter and a combining mark (NFD)', event('"cafe\u0301"')),
    raw('short-escapes', 'the short escapes of JSON', event('"\\b\\f\\n\\r\\t\\"\\\\"')),
    raw('delete-char', 'raw U+007F and U+0085', event('"a\u007fb\u0085c"')),
  ];
}

function oddJson(event) {
  const odd = (name, comment, body) => [name, comment, 'OddJson', body];
  return [
    odd('duplicate-keys', 'the same key twice', event('{"a":1,"a":2}')),
    odd('escaped-nul', 'an escaped NUL', event('"a\\u0000b"')),
    odd('lone-surrogate', 'an escaped surrogate without its pair', event('"\\ud800"')),
    odd('empty-object', 'an object without members', '{}'),
    odd('scalar', 'a number alone', '1'),
    odd('broken-json', 'JSON that ends too early', '{"broken":'),
  ];
}

function notJson(event) {
  const plain = event('"plain"');
  const every = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  return [
    ['empty', 'no body at all', 'EmptyBody', ''],
    ['newline-only', 'a newline alone', 'NotJson', '\n'],
    ['nul-only', 'one NUL byte', 'NotText', Buffer.from([0])],
    ['form', 'a form body', 'NotJson', 'type=invoice.paid&note=a+b%20c%2Fd'],
    ['xml', 'an XML body', 'NotJson', '<?xml version="1.0"?>\n<event type="invoice.paid"/>\n'],
    ['digits-and-full-stops', 'digits and full stops, as in the signed content itself', 'NotJson', '1767225600.1.2'],
    ['binary', 'all 256 byte values', 'NotText', every],
    ['not-utf8', 'JSON in which one byte is not UTF-8', 'NotText', Buffer.from(event('"caf\u00e9"'), 'latin1')],
    ['utf16', 'the event in UTF-16', 'NotText', Buffer.from(plain, 'utf16le')],
    ['byte-order-mark', 'a UTF-8 byte order mark in front', 'ByteOrderMark', '\ufeff' + plain],
    ['replacement-char', 'the replacement character U+FFFD itself', 'RawBytes', event('"caf\ufffd"')],
  ];
}

// large returns an event of exactly n bytes.
export function large(event, n) {
  const empty = event('""').length;
  return Buffer.from(event(`"${'x'.repeat(n - empty)}"`));
}
