"""Partner API: FastAPI application whose webhooks router takes in the partner's
events (Standard Webhooks).

Field subject of the self test; ../EXPECTED.md says what is wrong with it.
"""
import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import re
import time
from contextlib import asynccontextmanager

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response

MAX_BODY = 64 * 1024
TOLERANCE = 300


def load_keys() -> list[bytes]:
    if not os.environ.get("WEBHOOK_SECRET"):
        raise SystemExit("WEBHOOK_SECRET is not set")
    names = ("WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS")
    values = [os.environ.get(name) for name in names]
    return [base64.b64decode(v.removeprefix("whsec_")) for v in values if v]


KEYS = load_keys()


def is_authentic(headers, body: bytes) -> bool:
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not message_id or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    signed = f"{message_id}.{timestamp}.".encode("latin-1") + body
    for key in KEYS:
        expected = hmac.new(key, signed, hashlib.sha256).digest()
        for entry in headers.get("webhook-signature", "").split(" "):
            version, _, value = entry.partition(",")
            if version != "v1":
                continue
            try:
                given = base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError):
                continue
            if hmac.compare_digest(given, expected):
                return True
    return False


router = APIRouter(prefix="/webhooks", tags=["webhooks"])


@router.post("/")
async def receive(request: Request) -> Response:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > MAX_BODY:
        return Response(status_code=413)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return Response(status_code=413)

    if not is_authentic(request.headers, bytes(body)):
        return Response(status_code=401)

    state = request.app.state
    message_id = request.headers["webhook-id"]
    if message_id not in state.seen:
        state.seen.add(message_id)
        state.queue.put_nowait((message_id, bytes(body)))
    return Response(status_code=200)


async def worker(queue: asyncio.Queue) -> None:
    while True:
        message_id, body = await queue.get()
        print(f"{message_id}: {len(body)} bytes handed to the importer", flush=True)


@asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.seen = set()
    app.state.queue = asyncio.Queue()
    task = asyncio.create_task(worker(app.state.queue))
    yield
    task.cancel()


app = FastAPI(title="partner-api", lifespan=lifespan)
app.include_router(router)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))
