#!/usr/bin/env node
// Writes the vector files, or checks that they are what it would write.
//
//   node generate.mjs           write ../data/*.json
//   node generate.mjs --check   print nothing and exit 0 when the files are up
//                               to date; else name the first difference, exit 1
//
// It needs Node 18 or newer and no packages. Keys and times are fixed and
// nothing is random, so that two runs write the same bytes. It signs with
// node:crypto, and shares no code with the implementation that the vectors test.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tolerance } from './build.mjs';
import { format } from './format.mjs';
import { envelopeKeys, standardKeys } from './key-forms.mjs';
import { notes } from './notes.mjs';
import { envelope, standardV1, standardV1a } from './schemes.mjs';
import { signEnvelope, signV1, signV1a } from './sign.mjs';
import { verifyEnvelope } from './verify-envelope.mjs';
import { verifyV1, verifyV1a } from './verify-standard.mjs';

const warning =
  'EVERY KEY IN THIS FILE IS PUBLIC. NEVER USE ONE OF THEM FOR ANYTHING BUT TESTS: whoever can read this can sign with it.';

// file completes the groups: whole ids, and the notes of the flags in use.
function file(profile, scheme, topic, prefix, groups) {
  const used = new Set();
  const complete = groups.map((g) => ({
    ...g,
    tests: g.tests.map((t) => {
      t.flags.forEach((f) => used.add(f));
      return { ...t, id: `${prefix}.${topic}.${g.name}.${t.id}` };
    }),
  }));
  const unknown = [...used].filter((f) => !(f in notes));
  if (unknown.length > 0) {
    throw new Error(`no note for the flags ${unknown.join(', ')}`);
  }
  return {
    schema: '../schema.json',
    version: 1,
    profile,
    scheme,
    topic,
    generator: 'vectors/generate/generate.mjs',
    warning,
    tolerance,
    notes: Object.fromEntries([...used].map((f) => [f, notes[f]])),
    groups: complete,
  };
}

// files returns [name, text] for each file.
function files() {
  const v1 = standardV1();
  const v1a = standardV1a();
  const env = envelope();
  const of = (s, topic, groups) => [`${s.name}-${topic}.json`, file(s.profile, s.name, topic, s.prefix, groups)];
  return [
    of(v1, 'sign', signV1(v1)),
    of(v1, 'verify', verifyV1(v1)),
    of(v1a, 'sign', signV1a(v1a, v1)),
    of(v1a, 'verify', verifyV1a(v1a, v1)),
    of({ ...v1, name: 'standard-webhooks', prefix: 'standard-webhooks' }, 'keys', standardKeys(v1, v1a)),
    of(env, 'sign', signEnvelope(env)),
    of(env, 'verify', verifyEnvelope(env)),
    of(env, 'keys', envelopeKeys(env)),
  ].map(([name, content]) => [name, format(content)]);
}

// difference names the first line in which the stored text differs, or nothing.
function difference(name, want, got) {
  if (want === got) {
    return undefined;
  }
  const wanted = want.split('\n');
  const line = got.split('\n').findIndex((text, i) => text !== wanted[i]);
  return `${name}:${line < 0 ? got.split('\n').length : line + 1}: differs from what the generator writes`;
}

function check(dir, all) {
  let stored;
  try {
    stored = readdirSync(dir);
  } catch (err) {
    return `the folder of the files cannot be read: ${err.message}`;
  }
  for (const [name, text] of all) {
    if (!stored.includes(name)) {
      return `${name}: is missing`;
    }
    const found = difference(name, text, readFileSync(join(dir, name), 'utf8'));
    if (found) {
      return found;
    }
  }
  const extra = stored.find((name) => !all.some(([n]) => n === name));
  return extra && `${extra}: is not written by the generator`;
}

function main(args) {
  if (args.length > 1 || (args.length === 1 && args[0] !== '--check')) {
    process.stderr.write('usage: node generate.mjs [--check]\n');
    return 2;
  }
  const dir = join(dirname(fileURLToPath(import.meta.url)), '..', 'data');
  const all = files();
  if (args.length === 0) {
    mkdirSync(dir, { recursive: true });
    all.forEach(([name, text]) => writeFileSync(join(dir, name), text));
    return 0;
  }
  const found = check(dir, all);
  if (found) {
    process.stderr.write(`${found}\nrun: node vectors/generate/generate.mjs\n`);
    return 1;
  }
  return 0;
}

process.exitCode = main(process.argv.slice(2));
