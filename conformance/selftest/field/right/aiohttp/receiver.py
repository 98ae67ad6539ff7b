"""Library service: receives events (Standard Webhooks) with aiohttp, keeps them in
an SQLite inbox and processes them in the background.

Field subject of the self test: meant to be right.
"""
from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import os
import re
import sqlite3
import sys
import time

from aiohttp import web

MAX_BODY = 64 * 1024
READ_SECONDS = 15
TOLERANCE = 5 * 60
KEEP_SECONDS = 7 * 24 * 3600

log = logging.getLogger("receiver")


# ---- verification ----------------------------------------------------------------


def load_keys(env) -> list[bytes]:
    """The current secret and, during a rotation, the previous one."""
    if not env.get("WEBHOOK_SECRET"):
        raise ValueError("WEBHOOK_SECRET is not set")
    keys = []
    for name in ("WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"):
        value = env.get(name)
        if not value:
            continue
        try:
            key = base64.b64decode(value.removeprefix("whsec_"), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not key:
            raise ValueError(f"{name} is not a webhook secret (whsec_ and base64)")
        keys.append(key)
    return keys


def refusal(message_id: bytes, timestamp: bytes, signatures: bytes, body: bytes,
            keys: list[bytes], now: float) -> str | None:
    """None when the delivery is authentic, otherwise the reason why it is not."""
    if not message_id or not timestamp or not signatures:
        return "missing headers"
    if not re.fullmatch(rb"[0-9]{1,12}", timestamp):
        return "bad timestamp"
    if abs(now - int(timestamp)) > TOLERANCE:
        return "stale timestamp"

    candidates = []
    for entry in signatures.split(b" "):
        if entry.startswith(b"v1,"):
            try:
                candidates.append(base64.b64decode(entry[3:], validate=True))
            except binascii.Error:
                continue

    signed = message_id + b"." + timestamp + b"." + body
    for key in keys:
        expected = hmac.new(key, signed, hashlib.sha256).digest()
        for candidate in candidates:
            if hmac.compare_digest(candidate, expected):
                return None
    return "bad signature"


# ---- inbox -----------------------------------------------------------------------


class Inbox:
    """Every event once: webhook-id is the primary key. Used from worker threads,
    one connection for each call, so that the event loop never waits for the disk."""

    def __init__(self, path: str):
        self.path = path
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with self._connect() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(
                "CREATE TABLE IF NOT EXISTS inbox (id BLOB PRIMARY KEY, body BLOB NOT NULL,"
                " received REAL NOT NULL, state TEXT NOT NULL, error TEXT)"
            )
            db.execute(
                "DELETE FROM inbox WHERE state = 'processed' AND received < ?",
                (time.time() - KEEP_SECONDS,),
            )

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=10)

    def add(self, message_id: bytes, body: bytes) -> bool:
        db = self._connect()
        try:
            with db:
                cursor = db.execute(
                    "INSERT OR IGNORE INTO inbox (id, body, received, state)"
                    " VALUES (?, ?, ?, 'received')",
                    (message_id, body, time.time()),
                )
            return cursor.rowcount == 1
        finally:
            db.close()

    def body(self, message_id: bytes) -> bytes:
        db = self._connect()
        try:
            return db.execute("SELECT body FROM inbox WHERE id = ?", (message_id,)).fetchone()[0]
        finally:
            db.close()

    def mark(self, message_id: bytes, state: str, error: str | None = None) -> None:
        db = self._connect()
        try:
            with db:
                db.execute("UPDATE inbox SET state = ?, error = ? WHERE id = ?",
                           (state, error, message_id))
        finally:
            db.close()

    def unfinished(self) -> list[bytes]:
        db = self._connect()
        try:
            rows = db.execute("SELECT id FROM inbox WHERE state = 'received' ORDER BY received")
            return [row[0] for row in rows]
        finally:
            db.close()


# ---- background work -------------------------------------------------------------


def process(message_id: bytes, body: bytes) -> None:
    """May run again for the same event, and takes events in any order."""
    event = json.loads(body)
    kind = event.get("type") if isinstance(event, dict) else None
    if kind in ("order.shipped", "order.delivered"):
        log.info("%r: %s, order looked up again", message_id, kind)
    else:
        log.info("%r: nothing to do for type %r", message_id, kind)


async def worker(inbox: Inbox, queue: asyncio.Queue[bytes]) -> None:
    while True:
        message_id = await queue.get()
        try:
            body = await asyncio.to_thread(inbox.body, message_id)
            await asyncio.to_thread(process, message_id, body)
            await asyncio.to_thread(inbox.mark, message_id, "processed")
        except Exception as err:
            # Already acknowledged: the failed row is for us to look at
            log.exception("%r failed", message_id)
            try:
                await asyncio.to_thread(inbox.mark, message_id, "failed", repr(err))
            except sqlite3.Error:
                log.exception("%r could not be marked", message_id)


# ---- receiving -------------------------------------------------------------------

KEYS = web.AppKey("keys", list)
INBOX = web.AppKey("inbox", Inbox)
QUEUE = web.AppKey("queue", asyncio.Queue)


async def read_body(request: web.Request) -> bytes | None:
    """The raw bytes up to the limit, or None. Content-Length can lie or be missing,
    so the bytes are counted as well."""
    if (request.content_length or 0) > MAX_BODY:
        return None
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY:
            return None
    return bytes(body)


def header(request: web.Request, name: bytes) -> list[bytes]:
    return [value for key, value in request.raw_headers if key.lower() == name]


def only(values: list[bytes]) -> bytes:
    return values[0] if len(values) == 1 else b""


async def receive(request: web.Request) -> web.Response:
    try:
        async with asyncio.timeout(READ_SECONDS):
            body = await read_body(request)
    except TimeoutError:
        return web.json_response({"error": "body not received in time"}, status=408)
    if body is None:
        response = web.json_response({"error": "payload too large"}, status=413)
        response.force_close()
        return response

    message_id = only(header(request, b"webhook-id"))
    reason = refusal(
        message_id,
        only(header(request, b"webhook-timestamp")),
        b" ".join(header(request, b"webhook-signature")),
        body,
        request.app[KEYS],
        time.time(),
    )
    if reason:
        log.warning("refused %r: %s", message_id[:100], reason)
        return web.json_response({"error": "unauthorized"}, status=401)

    if await asyncio.to_thread(request.app[INBOX].add, message_id, body):
        request.app[QUEUE].put_nowait(message_id)
    else:
        log.info("%r is a duplicate, acknowledged", message_id)
    return web.json_response({"received": True})


async def main(keys: list[bytes]) -> None:
    inbox = Inbox(os.path.join(os.environ.get("INBOX_DIR", "inbox"), "inbox.db"))
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    for message_id in inbox.unfinished():
        queue.put_nowait(message_id)

    app = web.Application()
    app[KEYS], app[INBOX], app[QUEUE] = keys, inbox, queue
    app.router.add_post("/webhooks", receive)

    # auto_decompress off: the signature covers the bytes as they were sent
    runner = web.AppRunner(app, handle_signals=True, access_log=None,
                           auto_decompress=False, max_field_size=32 * 1024)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(os.environ.get("PORT", "8000"))).start()
    task = asyncio.create_task(worker(inbox, queue))
    try:
        await asyncio.Event().wait()
    finally:
        task.cancel()
        await runner.cleanup()


if __name__ == "__main__":
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "INFO"))
    try:
        secret_keys = load_keys(os.environ)
    except ValueError as err:
        sys.exit(str(err))
    try:
        asyncio.run(main(secret_keys))
    except (web.GracefulExit, KeyboardInterrupt):
        pass
