"""Billing service: receives payment events (Standard Webhooks) with FastAPI and
books them in a background task.

Field subject of the self test; ../EXPECTED.md says what is wrong with it.
"""
import base64
import hashlib
import hmac
import json
import logging
import os

import uvicorn
from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException, Request

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("billing")


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))


if not os.environ.get("WEBHOOK_SECRET"):
    raise SystemExit("WEBHOOK_SECRET is not set")
SECRETS = [_key(os.environ["WEBHOOK_SECRET"])]
if os.environ.get("WEBHOOK_SECRET_PREVIOUS"):
    SECRETS.append(_key(os.environ["WEBHOOK_SECRET_PREVIOUS"]))

app = FastAPI(title="billing", docs_url=None, redoc_url=None, openapi_url=None)

inbox: dict[str, bytes] = {}


async def verified_body(request: Request) -> bytes:
    message_id = request.headers.get("webhook-id")
    timestamp = request.headers.get("webhook-timestamp")
    signature = request.headers.get("webhook-signature")
    if not (message_id and timestamp and signature):
        raise HTTPException(status_code=401, detail="missing webhook headers")

    body = await request.body()

    # The timestamp is part of the signed content, so it can't be tampered with
    signed = f"{message_id}.{timestamp}.".encode("latin-1") + body
    for key in SECRETS:
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        for part in signature.split(" "):
            if part.startswith("v1,") and hmac.compare_digest(part[3:].encode("latin-1"), expected):
                return body
    raise HTTPException(status_code=401, detail="invalid signature")


def book(message_id: str) -> None:
    try:
        event = json.loads(inbox[message_id])
        log.info("%s: booking %s", message_id, event["type"])
    except Exception:
        log.exception("%s: not booked", message_id)


@app.post("/webhooks")
async def receive(request: Request, tasks: BackgroundTasks, body: bytes = Depends(verified_body)):
    message_id = request.headers["webhook-id"]
    if message_id in inbox:
        return {"status": "already received"}
    inbox[message_id] = body
    tasks.add_task(book, message_id)
    return {"status": "accepted"}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))
