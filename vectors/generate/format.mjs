// Writes a vector file as text: stable, ASCII only, one test a few lines, so
// that a change to one test is a change to its own lines in a diff.

// ascii is JSON.stringify with everything outside printable ASCII escaped: a
// raw U+2028 or an emoji in a vector must survive editors and copy and paste.
function ascii(value) {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

// inline writes a flat object or list on one line, with a blank after each
// comma and colon.
function inline(value) {
  if (Array.isArray(value)) {
    return '[' + value.map(inline).join(', ') + ']';
  }
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).map(([k, v]) => `${ascii(k)}: ${inline(v)}`);
    return '{' + members.join(', ') + '}';
  }
  return ascii(value);
}

// lines writes one member a line, each indented by pad.
function lines(object, pad) {
  return Object.entries(object)
    .map(([k, v]) => `${pad}${ascii(k)}: ${inline(v)}`)
    .join(',\n');
}

function list(items, pad, one) {
  if (items.length === 0) {
    return '[]';
  }
  return '[\n' + items.map(one).join(',\n') + `\n${pad}]`;
}

function note([flag, n]) {
  return `    ${ascii(flag)}: {\n${lines(n, '      ')}\n    }`;
}

function test(t) {
  const { headers, ...rest } = t;
  const before = {};
  const after = {};
  let seen = false;
  for (const [k, v] of Object.entries(rest)) {
    seen = seen || k === 'now' || k === 'result';
    (seen ? after : before)[k] = v;
  }
  const pad = '          ';
  const parts = [lines(before, pad)];
  if (headers !== undefined) {
    parts.push(`${pad}"headers": ` + list(headers, pad, (h) => `${pad}  ${inline(h)}`));
  }
  parts.push(lines(after, pad));
  return `        {\n${parts.join(',\n')}\n        }`;
}

function group(g) {
  return [
    '    {',
    `      "name": ${ascii(g.name)},`,
    `      "comment": ${ascii(g.comment)},`,
    `      "keys": ${list(g.keys, '      ', (k) => `        ${inline(k)}`)},`,
    `      "tests": ${list(g.tests, '      ', test)}`,
    '    }',
  ].join('\n');
}

// format returns the text of a file.
export function format(file) {
  const { notes, groups, ...head } = file;
  const flags = Object.entries(notes).sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    '{',
    lines(head, '  ') + ',',
    `  "notes": {\n${flags.map(note).join(',\n')}\n  },`,
    `  "groups": ${list(groups, '  ', group)}`,
    '}',
    '',
  ].join('\n');
}
