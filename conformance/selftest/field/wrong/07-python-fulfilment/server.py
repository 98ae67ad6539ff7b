"""Fulfilment service: receives payment and order events (Standard Webhooks) with
nothing but the standard library, confirms the order, issues the invoice and mails it.

Field subject of the self test; ../EXPECTED.md says what is wrong with it.
"""
import base64
import binascii
import hashlib
import hmac
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY = 64 * 1024
TOLERANCE = 300


def load_keys():
    current = os.environ.get("WEBHOOK_SECRET")
    if not current:
        sys.exit("WEBHOOK_SECRET is not set")
    values = [current, os.environ.get("WEBHOOK_SECRET_PREVIOUS")]
    return [base64.b64decode(v.removeprefix("whsec_")) for v in values if v]


KEYS = load_keys()

done = set()
done_lock = threading.Lock()


def verify(message_id, timestamp, signatures, body):
    if not message_id or not signatures or not timestamp:
        return False
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    signed = f"{message_id}.{timestamp}.".encode("latin-1") + body
    for key in KEYS:
        expected = hmac.new(key, signed, hashlib.sha256).digest()
        for entry in signatures.split(" "):
            if not entry.startswith("v1,"):
                continue
            try:
                given = base64.b64decode(entry[3:], validate=True)
            except (binascii.Error, ValueError):
                continue
            if hmac.compare_digest(given, expected):
                return True
    return False


# The three systems a paid order has to reach. Their usual response times are what
# they are: the ERP is on premises, the invoice is rendered as PDF, the mail relay
# greylists.
def confirm_order(event):
    time.sleep(3)


def issue_invoice(event):
    time.sleep(5)


def send_confirmation_mail(event):
    time.sleep(4)


def fulfil(event):
    confirm_order(event)
    issue_invoice(event)
    send_confirmation_mail(event)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def reply(self, status, text=""):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse_unread(self, status, text):
        self.close_connection = True
        self.reply(status, text)

    def do_POST(self):
        if self.path.split("?")[0] != "/webhooks":
            return self.refuse_unread(404, "not found")
        length = self.headers.get("Content-Length")
        if length is None or not length.isdigit():
            return self.refuse_unread(411, "length required")
        if int(length) > MAX_BODY:
            return self.refuse_unread(413, "too large")
        body = self.rfile.read(int(length))

        message_id = self.headers.get("webhook-id")
        if not verify(message_id, self.headers.get("webhook-timestamp"),
                      self.headers.get("webhook-signature"), body):
            return self.reply(401, "invalid signature")

        with done_lock:
            if message_id in done:
                return self.reply(200, "already done")

        try:
            event = json.loads(body)
        except ValueError:
            event = None
        fulfil(event)

        with done_lock:
            done.add(message_id)
        self.reply(200, "ok")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Handler).serve_forever()
