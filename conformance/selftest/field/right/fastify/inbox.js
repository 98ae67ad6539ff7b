// The inbox: every authentic event once, keyed by webhook-id, on disk before it is
// acknowledged. A journal of JSON lines; what was not finished is taken up again at start.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';

const KEEP_MS = 7 * 24 * 3600 * 1000;

export class Inbox {
  #ids = new Map(); // webhook-id -> promise that the event is on disk
  #tail = Promise.resolve();
  #file;

  static async open(dir) {
    const inbox = new Inbox();
    inbox.pending = [];
    mkdirSync(dir, { recursive: true });
    const file = path.join(dir, 'journal.jsonl');
    inbox.#load(file);
    inbox.#file = await open(file, 'a');
    return inbox;
  }

  #load(file) {
    const rows = new Map();
    let text = '';
    try {
      text = readFileSync(file, 'utf8');
    } catch (err) {
      if (err.code !== 'ENOENT') throw err;
    }
    for (const line of text.split('\n')) {
      let row;
      try {
        row = JSON.parse(line);
      } catch {
        continue; // an empty or half-written line was never acknowledged
      }
      if (row.state) {
        const known = rows.get(row.id);
        if (known) known.state = row.state;
      } else if (Date.now() - row.at < KEEP_MS) {
        rows.set(row.id, row);
      }
    }
    const kept = [...rows.values()];
    const lines = kept.flatMap(({ state, ...row }) =>
      state ? [row, { id: row.id, state }] : [row]);
    writeFileSync(`${file}.new`, lines.map((l) => `${JSON.stringify(l)}\n`).join(''));
    renameSync(`${file}.new`, file);
    for (const row of kept) {
      this.#ids.set(row.id, Promise.resolve());
      if (!row.state) this.pending.push({ id: row.id, body: Buffer.from(row.body, 'base64') });
    }
  }

  #append(row) {
    const write = this.#tail.then(async () => {
      await this.#file.appendFile(`${JSON.stringify(row)}\n`);
      await this.#file.datasync();
    });
    this.#tail = write.catch(() => {});
    return write;
  }

  // Resolves to true for a new event, to false for one that is already here.
  async add(id, body) {
    const known = this.#ids.get(id);
    if (known) {
      await known;
      return false;
    }
    const stored = this.#append({ id, at: Date.now(), body: body.toString('base64') });
    this.#ids.set(id, stored);
    try {
      await stored;
    } catch (err) {
      this.#ids.delete(id); // not stored: the sender shall try again
      throw err;
    }
    return true;
  }

  mark(id, state) {
    return this.#append({ id, state });
  }
}
