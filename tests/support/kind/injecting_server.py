"""A webhook that puts a sidecar into each pod. It runs in a pod, on the standard library alone.

``SIDECAR`` is the container that it adds, as JSON; the key and certificate are in ``/certificates``.
"""

import base64
import json
import os
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Review(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send({})

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        change = [{"op": "add", "path": "/spec/containers/-", "value": json.loads(os.environ["SIDECAR"])}]
        review["response"] = {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(change).encode()).decode(),
        }
        self._send(review)

    def _send(self, answer: dict[str, object]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/certificates/tls.crt", "/certificates/tls.key")
    server = ThreadingHTTPServer(("", 8443), _Review)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
