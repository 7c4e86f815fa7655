"""A lone Kubernetes API server with etcd, for as long as a command runs or standard input is open.

``etcd`` and ``kube-apiserver`` come from the PATH. Whoever shows the token in the kubeconfig may do everything; other
users have what RBAC gives them. Pods are neither scheduled nor run. ``--controllers`` adds the controller manager:
garbage collection, namespaces, eviction of what their nodes lost.
"""

import argparse
import base64
import http.client
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

READY_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.02
HOST: Final = "127.0.0.1"


class NotReadyError(Exception):
    """A program ended, or was not ready in time."""


@contextmanager
def lone_apiserver(folder: Path, *, controllers: bool = False) -> Iterator[Path]:
    """Start the servers with their files in a folder, and give the path of a kubeconfig once they answer."""
    client_port, peer_port, port = _free_ports(3)
    etcd_url, peer_url = f"http://{HOST}:{client_port}", f"http://{HOST}:{peer_port}"
    key, tokens, certificates = folder / "service-account.key", folder / "tokens.csv", folder / "certificates"
    token = secrets.token_urlsafe(24)
    tokens.touch(mode=0o600)
    tokens.write_text(f"{token},admin,admin,system:masters\n")
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    with ExitStack() as running:
        running.enter_context(
            _program(
                folder,
                "etcd",
                f"--data-dir={folder / 'etcd'}",
                f"--listen-client-urls={etcd_url}",
                f"--advertise-client-urls={etcd_url}",
                f"--listen-peer-urls={peer_url}",
                f"--initial-advertise-peer-urls={peer_url}",
                f"--initial-cluster=default={peer_url}",
                # Nothing here has to outlive the machine.
                "--unsafe-no-fsync",
            )
        )
        server = running.enter_context(
            _program(
                folder,
                "kube-apiserver",
                f"--etcd-servers={etcd_url}",
                f"--bind-address={HOST}",
                f"--advertise-address={HOST}",
                # An address of loopback is refused as an endpoint of the service `kubernetes`, which nobody calls.
                "--endpoint-reconciler-type=none",
                f"--secure-port={port}",
                f"--cert-dir={certificates}",
                f"--token-auth-file={tokens}",
                "--authorization-mode=RBAC",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.0.0.0/24",
                # Pods need no account where no controller makes one for each namespace.
                "--disable-admission-plugins=ServiceAccount",
            )
        )
        certificate = certificates / "apiserver.crt"
        _wait_until_ready(server, port, certificate)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(_build_kubeconfig(port, certificate.read_bytes(), token)))
        if controllers:
            running.enter_context(
                _program(
                    folder,
                    "kube-controller-manager",
                    f"--kubeconfig={kubeconfig}",
                    f"--service-account-private-key-file={key}",
                    f"--root-ca-file={certificate}",
                    "--leader-elect=false",
                    "--secure-port=0",
                )
            )
        yield kubeconfig


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def _program(folder: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{name}.log").open("wb") as log:
        # It ends with this process, however this one ends.
        command = ("setpriv", "--pdeathsig", "KILL", "--", name, *arguments)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(server: subprocess.Popen[bytes], port: int, certificate: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            context = ssl.create_default_context(cafile=str(certificate))
            connection = http.client.HTTPSConnection(HOST, port, timeout=5, context=context)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == http.client.OK:
                return
        # No certificate yet, half of one, or nobody who listens.
        except OSError:
            pass
        time.sleep(POLL_SECONDS)
    raise NotReadyError(f"kube-apiserver did not become ready (exit code: {server.poll()})")


def _build_kubeconfig(port: int, certificate: bytes, token: str) -> dict[str, object]:
    name = "lone"
    cluster = {
        "server": f"https://{HOST}:{port}",
        "certificate-authority-data": base64.b64encode(certificate).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def _run(command: Sequence[str], kubeconfig: Path, *, controllers: bool) -> int:
    if not command:
        print(kubeconfig, flush=True)
        sys.stdin.read()
        return 0
    environment = {**os.environ, "TRIAGE_TEST_KUBECONFIG": str(kubeconfig)}
    if controllers:
        environment["TRIAGE_TEST_CONTROLLERS"] = "yes"
    return subprocess.run(command, env=environment, check=False).returncode


def main() -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--controllers", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    # As an exception, so that the servers end and their files go.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="lone-apiserver-") as folder:
        try:
            with lone_apiserver(Path(folder), controllers=given.controllers) as kubeconfig:
                return _run(given.command, kubeconfig, controllers=given.controllers)
        except NotReadyError as error:
            print(error, (Path(folder) / "kube-apiserver.log").read_text()[-2000:], sep="\n", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
