// client.mjs URL SECONDS CA-FILE: posts "{}" once, by Node's own client, and
// prints "STATUS BYTES", "STATUS stopped" where it had enough, or "error WHY".
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import zlib from 'node:zlib';

const [address, seconds, ca] = process.argv.slice(2);
const enough = 8 << 20;
const url = new URL(address);
const client = url.protocol === 'https:' ? https : http;

function say(text) {
  console.log(text);
  process.exit(0);
}

setTimeout(() => say('error timeout'), seconds * 1000);
const request = client.request(url, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', 'Content-Length': 2, 'Accept-Encoding': 'gzip' },
  ca: fs.readFileSync(ca),
}, (answer) => {
  let n = 0;
  const body = answer.headers['content-encoding'] === 'gzip' ? answer.pipe(zlib.createGunzip()) : answer;
  body.on('data', (part) => {
    n += part.length;
    if (n >= enough) say(`${answer.statusCode} stopped`);
  });
  body.on('end', () => say(`${answer.statusCode} ${n}`));
  body.on('error', (e) => say(`error ${e.code}`));
  answer.on('error', (e) => say(`error ${e.code}`));
});
request.on('error', (e) => say(`error ${e.code}`));
request.end('{}');
