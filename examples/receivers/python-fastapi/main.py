"""A receiver of signed webhooks with FastAPI.

The order matters: bound the body, verify its bytes as sent, store the event
under its id, answer, and only then parse and work.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response
from standardwebhooks import Webhook, WebhookVerificationError
from starlette.requests import ClientDisconnect

SECRET = os.environ.get("WEBHOOK_SECRET")
if not SECRET:
    sys.exit("WEBHOOK_SECRET is not set")  # never run with a default

# During a rotation the previous secret is accepted beside the current one.
# Webhook raises on a secret that is empty.
webhooks = [Webhook(s) for s in (SECRET, os.environ.get("WEBHOOK_SECRET_PREVIOUS")) if s]


@dataclass
class Entry:
    body: bytes
    state: str = "received"  # then processed, or failed
    error: str = ""


# The events by webhook-id. In a real system this is a table with the id as its
# primary key: the insert tells a duplicate, also between two instances, and an
# answered event survives a restart.
inbox: dict[str, Entry] = {}
queue: asyncio.Queue[str] = asyncio.Queue()


def authentic(body: bytes, headers: dict[str, str]) -> bool:
    for webhook in webhooks:
        try:
            # json_parse=False, or an authentic body that is not JSON raises a
            # JSONDecodeError.
            webhook.verify(body, headers, json_parse=False)
            return True
        except (WebhookVerificationError, ValueError):
            # ValueError: a signature without its comma, one that is not base64,
            # a body that is not UTF-8. Forgers send them; none is a crash.
            continue
    return False


async def process() -> None:
    while True:
        entry = inbox[await queue.get()]
        try:
            event = json.loads(entry.body)
            if not isinstance(event["type"], str):
                raise ValueError("the event has no type")
            # The work goes here. It may be cut off and run again: make it idempotent.
            entry.state = "processed"
        except Exception as err:
            # The sender was answered and will not send again, so the event stays,
            # for a rerun or a person.
            entry.state, entry.error = "failed", repr(err)


@asynccontextmanager
async def lifespan(app: FastAPI):
    worker = asyncio.create_task(process())
    yield
    worker.cancel()


app = FastAPI(lifespan=lifespan, max_body_size=64 * 1024)  # events are a few KB


@app.post("/webhooks", status_code=204)
async def receive(request: Request) -> Response:
    # Request, not a model: FastAPI would parse the body before it is verified.
    try:
        async with asyncio.timeout(30):  # uvicorn lets a sender stall for ever
            body = await request.body()
    except (TimeoutError, ClientDisconnect):
        raise HTTPException(408)
    if not authentic(body, dict(request.headers)):
        raise HTTPException(401)  # for whatever reason: a forger learns nothing
    event_id = request.headers["webhook-id"]
    if event_id not in inbox:
        inbox[event_id] = Entry(body)
        queue.put_nowait(event_id)
    return Response(status_code=204)  # a duplicate as well: the sender asks whether it arrived


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8080")), log_level="warning")
