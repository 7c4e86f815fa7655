"""The observation from its first line to its last."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from observe.alerts import alert_groups, check_alerts, until_alerted
from observe.checking import Checker, histogram_bounds
from observe.comparing import Checked
from observe.dashboards import read_dashboards
from observe.evaluating import Evaluator
from observe.facts import check_facts
from observe.incident import Incident, let_it_happen
from observe.intervals import check_intervals, check_marks
from observe.operators import SETTINGS, Operators, Window
from observe.programs import find_prometheus
from observe.prometheus import SCRAPE_SECONDS, Prometheus
from observe.reporting import print_report
from observe.restarts import check_restarts
from observe.tables import read_tables
from observe.truth import count_samples
from triage_contract.database.engine import open_engine
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import API_VERSION
from triage_local.cluster import LocalCluster
from triage_local.demo.agents import write_archive
from triage_local.demo.following import Followed
from triage_local.demo.holds import prepare
from triage_local.demo.losses import Stage
from triage_local.demo.narrating import told
from triage_local.demo.story import Story
from triage_local.objects import NAMESPACE

Json = dict[str, Any]

_PLAIN_WIDTH: Final = 160
_COLLECTIONS: Final = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}"
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_DRAWN: Final = "Recovery"
_CONNECTIONS: Final = 16
"""One for each run that is held, and some."""

_QUIET_SECONDS: Final = 10 * SCRAPE_SECONDS
"""From the end of the incident to the questions: all of it is scraped, and what should resolve has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """An incident that is over, its Prometheus still there."""

    window: Window
    """From its begin to the last scrape that was asked for."""
    prometheus: Prometheus
    checked: Sequence[Checked]

    @property
    def is_good(self) -> bool:
        """Whether all is as it should be."""
        return all(one.finding.is_good for one in self.checked)


async def observe(*, log: Path, stay: bool, picture: Path | None) -> int:
    """Observe an incident and report; give the exit status: 0 where everything was as it should be.

    Args:
        log: File for the operators' log.
        stay: Keep all of it up until cancelled.
        picture: File into which the dashboard Recovery is drawn; None: no picture.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    async with observing(Story(console), log=log) as observed:
        print_report(console, observed.checked)
        if picture is not None:
            # It takes a second to import.
            from observe.picture import draw

            (recovery,) = (each for each in read_dashboards() if each.title == _DRAWN)
            await draw(recovery, observed.prometheus, observed.window, picture)
            console.print(f"Picture: {picture}", soft_wrap=True)
        if stay:
            console.print(f"Prometheus: {observed.prometheus.url}   Ctrl-C ends and removes all of it.")
            await asyncio.Event().wait()
    return 0 if observed.is_good else 1


@contextlib.asynccontextmanager
async def observing(story: Story, *, log: Path) -> AsyncIterator[Observed]:
    """Let the incident happen, and check every query; Prometheus is there until the block ends.

    Raises:
        LocalClusterError: A part does not start, or something of the incident does not come about.
    """
    program = await find_prometheus()

    def narrate(before: Json | None, after: Json) -> None:
        for line in told(before, after):
            story.observed(after["metadata"]["name"], line)

    story.done("cluster", "starts: API server, two nodes, Postgres, model, operator, Prometheus")
    async with contextlib.AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(LocalCluster(operator_log=log, operator_settings=SETTINGS))
        prometheus = await stack.enter_async_context(
            Prometheus(program, cluster.folder, cluster.guard, rules=alert_groups())
        )
        engine = open_engine(
            DatabaseUrl.parse(cluster.database_url), application="triage-observe", pool_size=_CONNECTIONS
        )
        stack.push_async_callback(engine.dispose)
        runs = Followed(cluster.api, f"{_COLLECTIONS}/triageruns", narrate)
        pods = Followed(cluster.api, _PODS, lambda before, after: None)
        await prepare(engine)
        for followed in (runs, pods):
            await stack.enter_async_context(_beside(followed))
        archive = cluster.folder / "issues"
        write_archive(archive)
        operators = Operators(cluster=cluster, prometheus=prometheus)
        stack.push_async_callback(operators.stop)
        story.done("cluster", f"is ready; Prometheus is {prometheus.url}")
        stage = Stage(cluster=cluster, engine=engine, runs=runs, pods=pods, story=story)
        incident = await let_it_happen(stage, operators, archive, alerted=partial(until_alerted, prometheus))
        await asyncio.sleep(_QUIET_SECONDS)
        window = Window(start=incident.began, end=await _last_scrape(prometheus))
        checked = await _check(stage, prometheus, incident, window)
        yield Observed(window=window, prometheus=prometheus, checked=checked)


async def _check(stage: Stage, prometheus: Prometheus, incident: Incident, window: Window) -> list[Checked]:
    agents = await stage.cluster.api.request("GET", f"{_COLLECTIONS}/triageagents")
    tables = await read_tables(stage.engine, list(stage.runs.objects.values()), agents["items"])
    # From before the first sample on.
    window_seconds = int(window.seconds + _QUIET_SECONDS)
    samples = count_samples(tables, await histogram_bounds(prometheus, window.end))
    evaluator = Evaluator(samples, window_seconds)
    checker = Checker(prometheus, evaluator, window.end, window_seconds)
    dashboards = read_dashboards()
    return [
        *await checker.dashboards(dashboards),
        *await checker.alerts([rule for rule in await prometheus.rules() if rule["type"] == "alerting"]),
        *await check_alerts(prometheus, window),
        *await check_intervals(prometheus, evaluator, dashboards, window, window_seconds),
        *await check_marks(prometheus, dashboards, window),
        *await checker.metrics(samples),
        *await check_restarts(prometheus, tables, incident.restarts),
        *await check_facts(prometheus, window),
    ]


async def _last_scrape(prometheus: Prometheus) -> datetime:
    """Give the time of the last sample: asked for that time, a range query has nothing to extrapolate at its end."""
    (latest,) = await prometheus.query("max(timestamp(triage_leader == 1))", datetime.now(UTC))
    return datetime.fromtimestamp(latest.value, UTC)


@contextlib.asynccontextmanager
async def _beside(followed: Followed) -> AsyncIterator[None]:
    """Follow a list as long as the block takes."""
    task = asyncio.create_task(followed.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
