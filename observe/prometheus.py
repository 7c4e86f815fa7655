"""A Prometheus server of this machine that watches operators, and what it answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import yaml

from triage_local.exceptions import ProgramError
from triage_local.guard import Guard
from triage_local.ports import HOST, free_port
from triage_local.processes import Process

Json = dict[str, Any]
Labels = frozenset[tuple[str, str]]
Point = tuple[float, float]
"""Seconds since the epoch, and a value."""

SCRAPE_SECONDS: Final = 1.0
_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 5.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of an answer: one point of an instant query, several of a range query."""

    labels: Mapping[str, str]
    points: tuple[Point, ...]

    @property
    def value(self) -> float:
        """The last value."""
        return self.points[-1][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An alert that is pending or firing."""

    name: str
    state: str
    labels: Mapping[str, str]


class Prometheus:
    """``async with Prometheus(...) as prometheus`` runs it until the block ends."""

    def __init__(self, program: Path, folder: Path, guard: Guard, *, rules: Sequence[Json] = ()) -> None:
        """Prepare, and start nothing.

        Args:
            program: The server.
            folder: Gets a folder with its files; goes with its owner.
            guard: Ends it should we be killed.
            rules: Groups of rules, as they are in a rule file.
        """
        self.url = f"http://{HOST}:{free_port()}"
        self._program = program
        self._folder = folder / "prometheus"
        self._guard = guard
        self._rules = rules

    async def __aenter__(self) -> Self:
        """Start it. ProgramError, PatienceError: it does not come up; the message has the end of its log."""
        self._folder.mkdir()
        self._write("rules.json", {"groups": list(self._rules)})
        self.watch({})
        self._write(
            "prometheus.yml",
            {
                "global": {
                    "scrape_interval": f"{SCRAPE_SECONDS:g}s",
                    "scrape_timeout": f"{SCRAPE_SECONDS:g}s",
                    "evaluation_interval": f"{SCRAPE_SECONDS:g}s",
                },
                "rule_files": ["rules.json"],
                "scrape_configs": [
                    {
                        "job_name": "triage-operator",
                        # As the chart's ServiceMonitor has it.
                        "honor_labels": True,
                        "file_sd_configs": [{"files": ["targets.json"], "refresh_interval": "1s"}],
                    }
                ],
            },
        )
        self._session = aiohttp.ClientSession(self.url, timeout=_TIMEOUT)
        self._process = await Process.start(
            str(self._program),
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
            environment={},
            log=self._folder / "log",
            guard=self._guard,
        )
        try:
            await self._process.until_ready(self._is_ready, _START_SECONDS)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def watch(self, operators: Mapping[str, str]) -> None:
        """Watch these operators from now on, by the name of their pod, and no others; takes a moment.

        Args:
            operators: URL of each by its pod's name.
        """
        self._write(
            "targets.json",
            [
                {"targets": [url.removeprefix("http://")], "labels": {"pod": pod, "namespace": "triage"}}
                for pod, url in operators.items()
            ],
        )

    async def query(self, query: str, at: datetime) -> tuple[Series, ...]:
        """Give what a query comes to at a time. ProgramError: it is refused."""
        data = await self._get("query", query=query, time=str(at.timestamp()))
        if data["resultType"] == "scalar":
            return (Series(labels={}, points=(_point(data["result"]),)),)
        return tuple(Series(labels=one["metric"], points=(_point(one["value"]),)) for one in data["result"])

    async def query_range(
        self, query: str, start: datetime, end: datetime, step_seconds: float
    ) -> tuple[Series, ...]:
        """Give what a query comes to over a time. ProgramError: it is refused."""
        data = await self._get(
            "query_range",
            query=query,
            start=str(start.timestamp()),
            end=str(end.timestamp()),
            step=str(step_seconds),
        )
        return tuple(
            Series(labels=one["metric"], points=tuple(map(_point, one["values"]))) for one in data["result"]
        )

    async def alerts(self) -> tuple[Firing, ...]:
        """Give the alerts that are pending or firing now."""
        data = await self._get("alerts")
        return tuple(
            Firing(name=one["labels"]["alertname"], state=one["state"], labels=one["labels"])
            for one in data["alerts"]
        )

    async def rules(self) -> list[Json]:
        """Give all rules as they are evaluated: name, query, health."""
        data = await self._get("rules")
        return [rule for group in data["groups"] for rule in group["rules"]]

    async def _get(self, path: str, **parameters: str) -> Json:
        try:
            async with (
                self._session.post(f"/api/v1/{path}", data=parameters)
                if parameters
                else (self._session.get(f"/api/v1/{path}")) as response
            ):
                answer = await response.json()
        except aiohttp.ClientError as error:
            raise ProgramError(f"Prometheus does not answer: {error}") from error
        if answer["status"] != "success":
            raise ProgramError(f"Prometheus refuses {parameters.get('query', path)}: {answer['error']}")
        data: Json = answer["data"]
        return data

    async def _is_ready(self) -> bool:
        try:
            async with self._session.get("/-/ready") as response:
                return response.ok
        except aiohttp.ClientError:
            return False

    async def _close(self) -> None:
        await self._session.close()
        await self._process.stop(_STOP_SECONDS)

    def _write(self, name: str, content: object) -> None:
        # Renamed, since it is read while it changes. JSON is YAML.
        new = self._folder / f".{name}"
        new.write_text(json.dumps(content) if name.endswith(".json") else yaml.safe_dump(content))
        new.rename(self._folder / name)


def _point(pair: Sequence[Any]) -> Point:
    return float(pair[0]), float(pair[1])
