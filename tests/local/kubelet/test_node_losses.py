"""Nodes: scheduling, cordon, drain, silence, return; and an owner that dies."""

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest
from kubernetes.aio import client

from support.nodes import PYTHON, QUICK, Json, Nodes, build_pod, python
from triage_local.apiserver import ApiServer
from triage_local.kubelet import NoSuchContainerError, ProcessKubelet, python_image
from triage_local.kubelet.exceptions import ClusterError

SLEEP = python("print('ready'); import time; time.sleep(60)")


async def _node(nodes: Nodes, name: str) -> Json:
    return await nodes.cluster.request("GET", f"/api/v1/nodes/{name}")


def _conditions(obj: Json) -> dict[str, Json]:
    return {each["type"]: each for each in obj["status"]["conditions"]}


async def test_nodes_are_ready_and_renew_their_leases(nodes: Nodes) -> None:
    for name in ("node-1", "node-2"):
        node = await _node(nodes, name)
        assert _conditions(node)["Ready"]["status"] == "True"
        assert node["status"]["allocatable"]["memory"] == "4Gi"
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
        assert (await nodes.cluster.request("GET", path))["spec"]["holderIdentity"] == name


async def test_pods_go_where_memory_is_free(nodes: Nodes) -> None:
    wants = {"resources": {"requests": {"memory": "3Gi"}}}
    used = {await nodes.start(name, *SLEEP, container=wants) for name in ("one", "two")}
    assert used == {"node-1", "node-2"}
    await nodes.create(build_pod("three", *SLEEP, container=wants))
    pod = await nodes.until("three", lambda pod: _conditions(pod) if "conditions" in pod["status"] else None)
    scheduled = _conditions(pod)["PodScheduled"]
    assert scheduled["reason"] == "Unschedulable"
    assert scheduled["message"] == "0/2 nodes are available: 2 Insufficient memory."
    await nodes.delete("one", grace_seconds=0)
    await nodes.until_phase("three", "Running")


async def test_a_drain_evicts_what_runs_on_the_node_and_keeps_others_off(nodes: Nodes) -> None:
    node = await nodes.start("run", *SLEEP)
    async with asyncio.timeout(20):
        await nodes.kubelet.drain(node)
    pod = await nodes.until_phase("run", "Failed")
    assert _conditions(pod)["DisruptionTarget"]["reason"] == "EvictionByEvictionAPI"
    await nodes.until_gone("run")
    assert await nodes.start("next", *SLEEP) != node
    await nodes.kubelet.cordon(node, unschedulable=False)
    assert "unschedulable" not in (await _node(nodes, node))["spec"]


async def test_a_lost_node_is_silent_while_its_process_goes_on(nodes: Nodes) -> None:
    node = await nodes.start("run", *SLEEP)
    process = psutil.Process(nodes.kubelet.container("default", "run").pid)
    await nodes.kubelet.lose(node)
    await nodes.kubelet.declare_unreachable(node)
    assert _conditions(await _node(nodes, node))["Ready"]["status"] == "Unknown"
    assert await nodes.start("next", *SLEEP) != node
    await nodes.delete("run", grace_seconds=1)
    await nodes.until("run", lambda pod: "deletionTimestamp" in pod["metadata"])
    assert process.is_running()
    await nodes.kubelet.recover(node)
    await nodes.until_gone("run")
    assert not process.is_running()
    assert _conditions(await _node(nodes, node))["Ready"]["status"] == "True"
    assert not (await _node(nodes, node))["spec"].get("taints")


async def test_a_frozen_node_wakes_up(nodes: Nodes) -> None:
    node = await nodes.start("run", *SLEEP)
    process = psutil.Process(nodes.kubelet.container("default", "run").pid)
    await nodes.kubelet.lose(node, signal.SIGSTOP)
    async with asyncio.timeout(10):
        while process.status() != psutil.STATUS_STOPPED:
            await asyncio.sleep(0.01)
    await nodes.kubelet.recover(node)
    assert process.status() != psutil.STATUS_STOPPED
    assert (await nodes.read("run"))["status"]["phase"] == "Running"


async def test_a_pod_that_died_while_its_node_was_silent_is_reported_afterwards(nodes: Nodes) -> None:
    node = await nodes.start("run", *SLEEP)
    await nodes.kubelet.lose(node, signal.SIGKILL)
    assert (await nodes.read("run"))["status"]["phase"] == "Running"
    await nodes.kubelet.recover(node)
    pod = await nodes.until_phase("run", "Failed")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


async def test_a_pod_of_the_same_name_is_another_pod(nodes: Nodes) -> None:
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready'); time.sleep(60)"
    await nodes.start("run", *python(deaf))
    first = psutil.Process(nodes.kubelet.container("default", "run").pid)
    await nodes.delete("run", grace_seconds=0)
    await nodes.create(build_pod("run", *SLEEP))
    second = await nodes.read("run")
    await nodes.until(
        "run",
        lambda pod: (
            pod["metadata"]["uid"] == second["metadata"]["uid"] and pod["status"]["phase"] == "Running"
        ),
    )
    assert nodes.kubelet.container("default", "run").pid != first.pid
    await asyncio.to_thread(first.wait, 10)
    assert (await nodes.read("run"))["status"]["phase"] == "Running"


async def test_logs_are_served_through_the_api_server(nodes: Nodes) -> None:
    source = "print('one'); print('two'); print('ready'); import time; time.sleep(0.3); print('end')"
    await nodes.start("run", *python(source))
    async with client.ApiClient(nodes.configuration) as api:
        read = partial(client.CoreV1Api(api).read_namespaced_pod_log, "run", "default")
        assert (await read(follow=True)).split() == ["one", "two", "ready", "end"]
        assert await read(tail_lines=2) == "ready\nend\n"
        assert await read(limit_bytes=5) == "one\nt"
    with pytest.raises(ClusterError) as refused:
        await nodes.cluster.request("GET", "/api/v1/namespaces/default/pods/run/log?tailLines=x")
    assert refused.value.status == 400


async def test_what_is_not_here_cannot_be_killed(nodes: Nodes) -> None:
    with pytest.raises(NoSuchContainerError, match='pod "nobody" in namespace "default"'):
        nodes.kubelet.kill("default", "nobody")


async def test_containers_of_an_earlier_kubelet_are_lost(tmp_path: Path) -> None:
    images = {PYTHON: python_image()}
    async with ApiServer() as server:
        configuration = client.Configuration(host=server.url)
        first = ProcessKubelet(configuration, folder=tmp_path / "1", images=images, timing=QUICK)
        second = ProcessKubelet(configuration, folder=tmp_path / "2", images=images, timing=QUICK)
        cluster = Nodes(configuration, first)
        async with first, cluster:
            await cluster.start("run", *SLEEP)
            await cluster.create(build_pod("over", *python("pass")))
            await cluster.until_phase("over", "Succeeded")
            process = psutil.Process(first.container("default", "run").pid)
        assert not process.is_running()
        cluster = Nodes(configuration, second)
        async with second, cluster:
            pod = await cluster.until_phase("run", "Failed")
            ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
            assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
            assert (await cluster.read("over"))["status"]["phase"] == "Succeeded"
            await cluster.delete("over")
            await cluster.until_gone("over")


_OWNER = """
import asyncio, pathlib, sys
from kubernetes.aio import client
from support.nodes import PYTHON, Nodes, python
from triage_local.apiserver import ApiServer
from triage_local.kubelet import ProcessKubelet, python_image

async def main():
    async with ApiServer() as server:
        configuration = client.Configuration(host=server.url)
        folder = pathlib.Path(sys.argv[1])
        kubelet = ProcessKubelet(configuration, folder=folder, images={PYTHON: python_image()})
        nodes = Nodes(configuration, kubelet)
        async with kubelet, nodes:
            await nodes.start("run", *python("print('ready'); import time; time.sleep(60)"))
            print(kubelet.container("default", "run").pid, flush=True)
            await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_processes_and_files_go_when_the_owner_dies(tmp_path: Path, number: signal.Signals) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(tmp_path / "kubelet")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert owner.stdout is not None
    with owner.stdout:
        process = psutil.Process(int(owner.stdout.readline()))
    guard = next(child for child in psutil.Process(owner.pid).children() if child.pid != process.pid)
    owner.send_signal(number)
    owner.wait()
    assert psutil.wait_procs([process, guard], timeout=10)[1] == []
    assert not (tmp_path / "kubelet").exists()
