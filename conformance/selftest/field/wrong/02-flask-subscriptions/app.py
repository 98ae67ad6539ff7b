"""Subscription service: receives subscription events (Standard Webhooks) with
Flask behind waitress and applies them from a worker thread.

Field subject of the self test; ../EXPECTED.md says what is wrong with it.
"""
import base64
import hashlib
import hmac
import json
import logging
import os
import queue
import re
import sys
import threading
import time

from flask import Flask, jsonify, request

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("subscriptions")

TOLERANCE = 300

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 64 * 1024


def load_secrets():
    secrets = []
    for name in ("WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"):
        value = os.environ.get(name)
        if value:
            secrets.append(base64.b64decode(value.removeprefix("whsec_")))
    return secrets


if not os.environ.get("WEBHOOK_SECRET"):
    sys.exit("WEBHOOK_SECRET is required")
SECRETS = load_secrets()


def sign(secret: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    message = f"{message_id}.{timestamp}.".encode("latin-1") + body
    return base64.b64encode(hmac.new(secret, message, hashlib.sha256).digest()).decode()


def signatures_match(expected: str, received: str) -> bool:
    """Constant time: looks at every character, never returns early."""
    difference = 0
    for a, b in zip(expected, received):
        difference |= ord(a) ^ ord(b)
    return difference == 0


def verify(headers, body: bytes) -> bool:
    message_id = headers.get("webhook-id")
    timestamp = headers.get("webhook-timestamp")
    signature_list = headers.get("webhook-signature")
    if not message_id or not timestamp or not signature_list:
        return False

    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE:
        return False

    for secret in SECRETS:
        expected = sign(secret, message_id, timestamp, body)
        for entry in signature_list.split():
            version, _, signature = entry.partition(",")
            if version == "v1" and signatures_match(expected, signature):
                return True
    return False


events: "queue.Queue[bytes]" = queue.Queue()
processed_ids: set = set()
lock = threading.Lock()


@app.post("/webhooks")
def receive():
    body = request.get_data()
    if not verify(request.headers, body):
        return jsonify(error="invalid signature"), 401

    message_id = request.headers["webhook-id"]
    with lock:
        duplicate = message_id in processed_ids
        processed_ids.add(message_id)
    if not duplicate:
        events.put(body)
    return jsonify(status="ok")


def worker():
    while True:
        body = events.get()
        try:
            event = json.loads(body)
            log.info("applying %s", event.get("type"))
        except Exception:
            log.exception("could not process event")


if __name__ == "__main__":
    from waitress import serve

    threading.Thread(target=worker, daemon=True).start()
    serve(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))
