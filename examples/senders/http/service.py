"""A webhook service with an HTTP API of its own, on the standard library alone:
endpoints, events, a delivery log, an outbox in SQLite.

It is here to be judged. What it does right and wrong stands in README.md; copy
reference/sender in its place.

    POST   /endpoints               {"url", "types"?}          201 {"id", "secret"}
    GET    /endpoints/ID                                       {"state", "why"}
    POST   /endpoints/ID/disable
    POST   /endpoints/ID/enable
    DELETE /endpoints/ID
    POST   /events                  {"type", "at", "data"}     202 {"messages": [ID, …]}
    GET    /messages?endpoint=ID&state=failed                  {"messages": [{"id", "endpoint", "type", "state"}, …]}
    GET    /messages/ID                                        {"attempts": [{"at", "took", "status", "error", "body"}, …]}
    POST   /messages/ID/resend
"""
import base64, contextlib, hashlib, hmac, http.client, http.server, ipaddress, json, os, random, socket, sqlite3, ssl
import threading, time, uuid
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from urllib.parse import parse_qs, urlsplit

HOUR = 3600
SCHEDULE = [0, 5, 300, 1800, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR]  # before each attempt
JITTER = 0.1  # of a delay, at most
FINAL = [400, 404]  # a message is not tried again after these
PER_ENDPOINT = 2  # attempts at a time

# For tests: other numbers, and hosts that may be called although they are internal.
schedule = json.loads(os.environ.get("SCHEDULE", "null")) or SCHEDULE
timeout = float(os.environ.get("TIMEOUT", "15"))
allowed = os.environ.get("ALLOW_HOSTS", "").split(",")
trust = ssl.create_default_context()
if os.environ.get("CA_CERTIFICATE"):
    trust.load_verify_locations(cadata=os.environ["CA_CERTIFICATE"])

TABLES = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS endpoints (id TEXT PRIMARY KEY, url TEXT, types TEXT, secret TEXT, state TEXT, why TEXT);
    CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, endpoint TEXT, type TEXT, body BLOB, state TEXT, next REAL, tries INTEGER);
    CREATE TABLE IF NOT EXISTS attempts (message TEXT, at REAL, took REAL, status INTEGER, error TEXT, body TEXT);
    CREATE INDEX IF NOT EXISTS due ON messages (state, next);
"""
database = sqlite3.connect(os.environ.get("DATABASE", "service.db"), check_same_thread=False)
database.row_factory = sqlite3.Row
database.executescript(TABLES)
changed = threading.Condition()  # guards the database and what is in flight
in_flight = {}  # message: endpoint


@contextlib.contextmanager
def transaction():
    with changed:
        with database:
            yield database
        changed.notify_all()


class Refused(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


# Endpoints and events.


def create_endpoint(url, types):
    u = urlsplit(url)
    if not u.hostname or u.scheme not in ("http", "https"):
        raise Refused(422, "this is no address of an endpoint")
    if u.hostname not in allowed:
        if u.scheme != "https":
            raise Refused(422, "events are sent by https only")
        with contextlib.suppress(ValueError):  # a name: see connect
            check_address(u.hostname)
    id, secret = "ep_" + uuid.uuid4().hex, "whsec_" + base64.b64encode(os.urandom(32)).decode()
    with transaction() as db:
        db.execute("INSERT INTO endpoints VALUES (?, ?, ?, ?, 'enabled', '')", (id, url, json.dumps(types), secret))
    return {"id": id, "secret": secret}


def endpoint(id):
    with changed:
        row = database.execute("SELECT * FROM endpoints WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise Refused(404, "there is no such endpoint")
    return row


def set_endpoint(id, state, why):
    endpoint(id)
    with transaction() as db:
        db.execute("UPDATE endpoints SET state = ?, why = ? WHERE id = ? AND state != 'deleted'", (state, why, id))
        if state == "deleted":
            db.execute("UPDATE messages SET state = 'failed' WHERE endpoint = ? AND state = 'pending'", (id,))
    return {}


def publish(type, at, data):
    """Builds the payload once and stores it for each endpoint that gets it."""
    body = json.dumps({"type": type, "timestamp": at, "data": data}, separators=(",", ":"), ensure_ascii=False).encode()
    ids = []
    with transaction() as db:
        for e in db.execute("SELECT id, types FROM endpoints WHERE state != 'deleted'").fetchall():
            types = json.loads(e["types"])
            if types is None or type in types:
                ids.append("msg_" + uuid.uuid4().hex)
                row = (ids[-1], e["id"], type, body, time.time() + schedule[0])
                db.execute("INSERT INTO messages VALUES (?, ?, ?, ?, 'pending', ?, 0)", row)
    return {"messages": ids}


def list_messages(endpoint=None, state=None):
    with changed:
        rows = database.execute(
            "SELECT id, endpoint, type, state FROM messages WHERE endpoint = ifnull(?, endpoint) AND state = ifnull(?, state)",
            (endpoint, state),
        ).fetchall()
    return {"messages": [dict(row) for row in rows]}


def message(id):
    with changed:
        rows = database.execute("SELECT at, took, status, error, body FROM attempts WHERE message = ? ORDER BY at", (id,)).fetchall()
    return {"attempts": [dict(row) for row in rows]}


def resend(id):
    with transaction() as db:
        db.execute("UPDATE messages SET state = 'pending', tries = 0, next = ? WHERE id = ?", (time.time(), id))
    return {}


# Sending.


def dispatch(workers):
    """Begins what is due, the oldest first, but no more than a few at each endpoint."""
    while True:
        with changed:
            rows = database.execute(
                "SELECT m.*, e.url, e.secret FROM messages m JOIN endpoints e ON e.id = m.endpoint "
                "WHERE m.state = 'pending' AND e.state = 'enabled' ORDER BY m.next"
            ).fetchall()
            soonest = 60.0
            for row in rows:
                wait = row["next"] - time.time()
                if wait > 0:
                    soonest = min(soonest, wait)
                    break
                if row["id"] not in in_flight and list(in_flight.values()).count(row["endpoint"]) < PER_ENDPOINT:
                    in_flight[row["id"]] = row["endpoint"]
                    workers.submit(attempt, row)
            changed.wait(soonest)


def attempt(row):
    at, status, retry_after, error, body = time.time(), None, None, None, b""
    try:
        status, retry_after, body = post(row["url"], row["secret"], row["id"], row["body"])
    except Exception as e:  # whatever it is, the message must go on
        error = f"{type(e).__name__}: {e}"
    now, tries = time.time(), row["tries"] + 1
    with transaction() as db:
        del in_flight[row["id"]]
        db.execute("INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?)", (row["id"], at, now - at, status, error, body.decode(errors="replace")))
        if status is not None and 200 <= status < 300:
            state, next = "delivered", now
        elif status == 410 or status in FINAL or tries >= len(schedule):
            state, next = "failed", now
        else:
            state, next = "pending", now + max(schedule[tries], wish(retry_after, now)) * (1 + random.uniform(0, JITTER))
        db.execute("UPDATE messages SET state = ?, next = ?, tries = ? WHERE id = ? AND state = 'pending'", (state, next, tries, row["id"]))
        if status == 410:
            db.execute("UPDATE endpoints SET state = 'disabled', why = 'it answered 410' WHERE id = ? AND state = 'enabled'", (row["endpoint"],))


def wish(retry_after, now):
    """The seconds that a Retry-After asks for, a day at most, 0 for nonsense."""
    try:
        seconds = int(retry_after) if retry_after.strip().isdigit() else parsedate_to_datetime(retry_after).timestamp() - now
    except (AttributeError, TypeError, ValueError):
        return 0
    return min(max(seconds, 0), 24 * HOUR)


def post(url, secret, id, body):
    u = urlsplit(url)
    now = str(int(time.time()))
    mac = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), f"{id}.{now}.".encode() + body, hashlib.sha256)
    connection = http.client.HTTPConnection(u.netloc)
    connection.sock = connect(u)
    try:
        connection.request("POST", (u.path or "/") + (u.query and "?" + u.query), body, {
            "Content-Type": "application/json", "User-Agent": "example-http/1.0", "webhook-id": id,
            "webhook-timestamp": now, "webhook-signature": "v1," + base64.b64encode(mac.digest()).decode(),
        })
        answer = connection.getresponse()
        return answer.status, answer.headers["Retry-After"], b"" if 200 <= answer.status < 300 else answer.read(1024)
    finally:
        connection.close()


def connect(u):
    """Connects to an address of the host that was looked at, and to no other."""
    port = u.port or (443 if u.scheme == "https" else 80)
    address = socket.getaddrinfo(u.hostname, port, type=socket.SOCK_STREAM)[0][4]
    if u.hostname not in allowed:
        check_address(address[0])
    sock = socket.create_connection(address[:2], timeout)
    if u.scheme != "https":
        return sock
    return trust.wrap_socket(sock, server_hostname=u.hostname)


def check_address(text):
    address = ipaddress.ip_address(text.partition("%")[0])
    address = getattr(address, "ipv4_mapped", None) or address
    public = address.version == 4 or address in ipaddress.ip_network("2000::/3")
    if not public or not address.is_global or address.is_multicast or any(address in network for network in NOT_PUBLIC):
        raise Refused(422, f"{text} is an internal address")


# What the library takes for public: protocols' own addresses, and 6to4, which may lead to any.
NOT_PUBLIC = [ipaddress.ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "2002::/16")]


# The API.


class API(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def route(self):
        u = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(u.query).items()}
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        match [self.command, *u.path.strip("/").split("/")]:
            case ["POST", "endpoints"]:
                return 201, create_endpoint(body["url"], body.get("types"))
            case ["GET", "endpoints", id]:
                return 200, {"state": endpoint(id)["state"], "why": endpoint(id)["why"]}
            case ["POST", "endpoints", id, "disable"]:
                return 200, set_endpoint(id, "disabled", "by its owner")
            case ["POST", "endpoints", id, "enable"]:
                return 200, set_endpoint(id, "enabled", "")
            case ["DELETE", "endpoints", id]:
                return 200, set_endpoint(id, "deleted", "by its owner")
            case ["POST", "events"]:
                return 202, publish(body["type"], body["at"], body["data"])
            case ["GET", "messages"]:
                return 200, list_messages(query.get("endpoint"), query.get("state"))
            case ["GET", "messages", id]:
                return 200, message(id)
            case ["POST", "messages", id, "resend"]:
                return 200, resend(id)
        raise Refused(404, "there is no such thing")

    def do(self):
        try:
            status, answer = self.route()
        except Refused as e:
            status, answer = e.status, {"error": str(e)}
        except (KeyError, ValueError) as e:
            status, answer = 400, {"error": repr(e)}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = do

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(os.environ.get("PORT", "8800"))), API)
    threading.Thread(target=dispatch, args=(ThreadPoolExecutor(32),), daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
