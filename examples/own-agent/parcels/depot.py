"""The depot that the agent talks to, in place of a real one: ``python -m parcels.depot``.

``GET /parcels/NUMBER``, ``PUT /returns/NUMBER`` with a reason, and ``GET /returns`` for what is booked, and how often
each was asked for. ``DEPOT_SECONDS`` is how long it takes to answer a booking after it has been made.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Depot(ThreadingHTTPServer):
    """Serves on an address; ``dawdle`` is called between a booking and its answer."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], *, dawdle: Callable[[], object]) -> None:
        """Listen, and answer from ``serve_forever`` on."""
        super().__init__(address, _Request)
        self.dawdle = dawdle
        self.returns: dict[str, str] = {}
        self.asked: Counter[str] = Counter()


class _Request(BaseHTTPRequestHandler):
    server: Depot

    def do_GET(self) -> None:
        match self.path.split("/")[1:]:
            case ["parcels", number]:
                self._send(HTTPStatus.OK, {"number": number, "state": "delivered"})
            case ["returns"]:
                depot = self.server
                self._send(HTTPStatus.OK, {"returns": depot.returns, "asked": depot.asked})
            case _:
                self._send(HTTPStatus.NOT_FOUND, {})

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        match self.path.split("/")[1:]:
            case ["returns", number]:
                depot = self.server
                depot.returns.setdefault(number, body["reason"])
                depot.asked[number] += 1
                depot.dawdle()
                self._send(HTTPStatus.OK, {"number": number, "state": "return booked"})
            case _:
                self._send(HTTPStatus.NOT_FOUND, {})

    def _send(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    seconds = float(os.environ.get("DEPOT_SECONDS", "0"))
    Depot(("0.0.0.0", 8080), dawdle=lambda: time.sleep(seconds)).serve_forever()  # noqa: S104
