"""The demo from its first line to its last."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from rich.console import Console

from triage_contract.database.engine import open_engine
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import API_VERSION
from triage_contract.states import Phase
from triage_local.apiserver import ApiServer
from triage_local.cluster import Gemini, LocalCluster
from triage_local.demo.agents import (
    build_archived,
    build_pinned,
    build_undeclared,
    read_archive,
    write_archive,
)
from triage_local.demo.by_hand import crash_without_key, refused_resume
from triage_local.demo.checking import problems
from triage_local.demo.evidence import ByHand, Evidence, see_runs
from triage_local.demo.following import Followed
from triage_local.demo.holds import Place, holding, prepare
from triage_local.demo.losses import (
    Stage,
    decide_in_doubt,
    delete_while_operator_is_dead,
    drain,
    kill_after_write,
    kill_half_done,
    run_out_of_memory,
)
from triage_local.demo.names import RunName
from triage_local.demo.narrating import told
from triage_local.demo.reporting import print_report, write_summary
from triage_local.demo.story import Story
from triage_local.exceptions import LocalClusterError
from triage_local.lone import LoneApiServer
from triage_local.objects import NAMESPACE

Json = dict[str, Any]

_MANIFESTS: Final = Path(__file__).with_name("runs.yaml")
_PLAIN_WIDTH: Final = 132
_RUNS: Final = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/triageruns"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"


async def show(*, gemini: Gemini | None, folder: Path, server: ApiServer | LoneApiServer) -> int:
    """Run the demo; give its exit status: 0 where everything was as it should be.

    Args:
        gemini: The agents' model; None: the scripted one.
        folder: Gets ``summary.json`` and the operator's log.
        server: The API server, not started.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    summary, log = folder / "summary.json", folder / "operator.log"
    _clear(summary, log)
    story = Story(console)
    api_server = "API server" if isinstance(server, ApiServer) else "kube-apiserver with etcd and controllers"
    story.done("cluster", f"starts: {api_server}, two nodes, Postgres, model, operator")
    async with LocalCluster(gemini=gemini, operator_log=log, server=server) as cluster:
        story.done("cluster", "is ready")
        evidence = await _perform(cluster, story)
    found = problems(evidence)
    write_summary(summary, evidence, found)
    print_report(console, evidence, found)
    console.print(f"Summary: {summary}   Operator's log: {log}   To look further: make local", soft_wrap=True)
    return 1 if found else 0


async def _perform(cluster: LocalCluster, story: Story) -> Evidence:
    def narrate(before: Json | None, after: Json) -> None:
        for line in told(before, after):
            story.observed(after["metadata"]["name"], line)

    archive = cluster.folder / "issues"
    archived = write_archive(archive)
    engine = open_engine(DatabaseUrl.parse(cluster.database_url), application="triage-demo", pool_size=8)
    runs = Followed(cluster.api, _RUNS, narrate)
    pods = Followed(cluster.api, _PODS, lambda before, after: None)
    stage = Stage(cluster=cluster, engine=engine, runs=runs, pods=pods, story=story)
    failures: list[str] = []
    by_hand: ByHand | None = None
    try:
        await prepare(engine)
        async with _beside(runs.run(), pods.run()):
            # What comes later stands on what came before: the first failure ends it, and what is there is shown.
            try:
                await _lose(stage, archive)
                by_hand = await _finish(stage)
                metrics = await cluster.operator.metrics()
            except* LocalClusterError as group:
                failures = [str(error) for error in _leaves(group)]
                metrics = ""
            filed = read_archive(archive)[archived:]
            objects = [runs.objects[name] for name in RunName if name in runs.objects]
            seen, strays = await see_runs(engine, objects, stage.lost_at, filed)
    finally:
        await engine.dispose()
    return Evidence(
        runs=seen, stray_issues=strays, by_hand=by_hand, metrics=metrics, failures=tuple(failures)
    )


async def _lose(stage: Stage, archive: Path) -> None:
    """Start all runs, and lose those that are to be lost, the next one when the last one has gone on."""
    engine = stage.engine
    async with (
        holding(engine, RunName.KILLED, Place.AFTER_WRITE) as killed,
        holding(engine, RunName.DRAINED, Place.IN_TOOL) as drained,
        holding(engine, RunName.OPERATOR_AWAY, Place.IN_TOOL) as left_alone,
        holding(engine, RunName.HALF_DONE, Place.IN_TOOL) as half_done,
        holding(engine, RunName.IN_DOUBT, Place.IN_TOOL) as in_doubt,
    ):
        await _start_runs(stage, archive)
        async with asyncio.TaskGroup() as group:
            group.create_task(run_out_of_memory(stage))
            group.create_task(decide_in_doubt(stage, in_doubt))
            await kill_after_write(stage, killed)
            await kill_half_done(stage, half_done)
            await drain(stage, drained)
            await delete_while_operator_is_dead(stage, left_alone)


async def _start_runs(stage: Stage, archive: Path) -> None:
    cluster = stage.cluster
    manifests = {each["metadata"]["name"]: each for each in yaml.safe_load_all(_read(_MANIFESTS))}
    await cluster.create(manifests.pop(RunName.DRAINED))
    # The others keep off the node that will be drained, so that the drain is one run's loss.
    node = (await stage.pod(RunName.DRAINED))["spec"]["nodeName"]
    nodes = await cluster.api.request("GET", "/api/v1/nodes")
    quiet = next(name for each in nodes["items"] if (name := each["metadata"]["name"]) != node)
    await cluster.create(build_pinned(cluster.agent, quiet))
    await cluster.create(build_undeclared(cluster.agent, quiet))
    await cluster.create(build_archived(cluster.agent, quiet, archive))
    for manifest in manifests.values():
        await cluster.create(manifest)


async def _finish(stage: Stage) -> ByHand:
    """Wait for the end of all runs, and do meanwhile what is done by hand."""
    cluster, name = stage.cluster, RunName.UNDISTURBED
    undisturbed = await stage.runs.until(
        lambda runs: runs[name] if _is_over(runs[name]) else None, f"{name} ends"
    )
    stage.story.done("by hand", "triage resume of a finished run; and a crash and a resume without a key")
    async with asyncio.TaskGroup() as group:
        group.create_task(
            stage.runs.until(lambda runs: all(map(_is_over, runs.values())) or None, "all runs end")
        )
        refusing = group.create_task(refused_resume(cluster, undisturbed["status"]))
        crashing = group.create_task(crash_without_key(cluster, undisturbed["spec"]["report"]))
    return ByHand(refusal=refusing.result(), issues_without_key=crashing.result())


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


@contextlib.asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let endless work run beside the block."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_over(run: Mapping[str, Any]) -> bool:
    phase = (run.get("status") or {}).get("phase")
    return phase is not None and Phase(phase).terminal


def _clear(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
