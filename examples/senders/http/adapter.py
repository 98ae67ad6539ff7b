"""The adapter protocol in front of the service's HTTP API: one message a line,
requests on stdin, answers on stdout, and everything else on stderr.

    whconform sender -- python3 adapter.py
"""
import datetime, http.client, json, os, subprocess, sys
from urllib.parse import urlencode, urlsplit

# For the run: nobody can move the service's clock, so every delay is waited for.
SHORT = [0, 0.5, 1.5, 7]
SHIPPED = [0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
TIMEOUT = 1.5

process = None  # the service's
service = None  # the connection to it


class Refused(Exception):
    pass


def ask(method, path, body=None):
    service.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    answer = service.getresponse()
    result = json.loads(answer.read())
    if answer.status >= 400:
        raise Refused(f"{answer.status} {result.get('error')}")
    return result


def initialize(p):
    global process, service
    if p["protocolVersion"] != 1:
        raise Refused("this adapter speaks version 1")
    process = subprocess.Popen(
        [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "service.py")], stdout=subprocess.PIPE, text=True,
        env=os.environ | {
            "PORT": "0", "DATABASE": os.path.join(p["stateDir"], "service.db"), "SCHEDULE": json.dumps(SHORT), "TIMEOUT": str(TIMEOUT),
            "ALLOW_HOSTS": ",".join(p.get("allowHosts", [])), "CA_CERTIFICATE": p.get("caCertificate", ""),
        },
    )
    service = http.client.HTTPConnection(urlsplit(process.stdout.readline().strip()).netloc)
    return {
        "protocolVersion": 1, "name": "example-http", "version": "1.0",
        "capabilities": ["managed", "own-events"] + [name for name in methods if name not in ("initialize", "shutdown")],
        "retrySchedule": SHORT, "defaultSchedule": SHIPPED, "jitter": {"low": 0, "high": 0.1}, "timeout": TIMEOUT,
        "finalStatuses": [400, 404], "perEndpointLimit": 2,
    }


def create(p):
    made = ask("POST", "/endpoints", {"url": p["url"], "types": p.get("eventTypes")})
    return {"endpointId": made["id"], "secret": made["secret"]}


def status(p):
    found = ask("GET", "/endpoints/" + p["endpointId"])
    return {"status": found["state"], "reason": found["why"]}


def publish(p):
    if "payload" not in p:
        raise Refused("the service builds payloads itself, from data that is JSON")
    return {"messageIds": ask("POST", "/events", {"type": p["type"], "at": p["timestamp"], "data": p["payload"]})["messages"]}


def resend(p):
    if "messageId" not in p:
        raise Refused("messages are sent again one by one")
    return ask("POST", f"/messages/{p['messageId']}/resend")


def attempts(p):
    return {"attempts": [attempt(a) for a in ask("GET", "/messages/" + p["messageId"])["attempts"]]}


def attempt(a):
    out = {"at": datetime.datetime.fromtimestamp(a["at"], datetime.timezone.utc).isoformat(), "duration": a["took"]}
    return out | {name: a[name] for name in ("status", "error", "body") if a[name]}


def messages(p):
    query = {"endpoint": p.get("endpointId"), "state": p.get("status")}
    found = ask("GET", "/messages?" + urlencode({name: value for name, value in query.items() if value}))["messages"]
    return {"messages": [{"messageId": m["id"], "endpointId": m["endpoint"], "status": m["state"], "type": m["type"]} for m in found]}


methods = {
    "initialize": initialize,
    "endpoint.create": create,
    "endpoint.get": status,
    "endpoint.enable": lambda p: ask("POST", f"/endpoints/{p['endpointId']}/enable"),
    "endpoint.disable": lambda p: ask("POST", f"/endpoints/{p['endpointId']}/disable"),
    "endpoint.delete": lambda p: ask("DELETE", f"/endpoints/{p['endpointId']}"),
    "event.publish": publish,
    "message.resend": resend,
    "message.attempts": attempts,
    "messages.list": messages,
    "shutdown": lambda p: None,
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue  # cancel: nothing here takes long
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    try:
        answer["result"] = methods[request["method"]](request.get("params", {}))
    except Refused as e:
        answer["error"] = {"code": -32000, "message": str(e)}
    except Exception as e:
        answer["error"] = {"code": -32603, "message": repr(e)}
    print(json.dumps(answer), flush=True)

if process:
    process.terminate()
