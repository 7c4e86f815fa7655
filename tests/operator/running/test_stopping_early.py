"""An operator that is told to end while it still waits for its cluster."""

import asyncio
import signal
import sys
from pathlib import Path

import yaml

_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "somebody", "user": {"token": "any"}}],
    "contexts": [{"name": "away", "context": {"cluster": "away", "user": "somebody"}}],
    "current-context": "away",
}


async def test_an_operator_that_waits_for_its_cluster_ends_in_order(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(_KUBECONFIG))
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("triage-operator")),
        "run",
        "--database-url=postgresql://127.0.0.1:1/none",
        f"--kube-config={kubeconfig}",
        "--kube-patience-seconds=0",
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    assert b"waiting for the cluster" in await process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
