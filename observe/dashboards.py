"""The dashboards as they are shipped: their panels, where these are, and what they ask."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

DASHBOARDS: Final = Path(__file__).parents[1] / "charts" / "triage-operator" / "dashboards"

_EVERYTHING: Final = ".*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One query of a panel."""

    query: str
    legend: str
    """Names each series of its answer; empty: its labels do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A panel. Places and sizes are in the units of the dashboard's grid, which is 24 wide."""

    title: str
    description: str
    kind: str
    unit: str
    left: int
    top: int
    width: int
    height: int
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard."""

    title: str
    panels: tuple[Panel, ...]
    annotations: tuple[Target, ...]
    """Queries whose samples are drawn as marks over all panels."""


def read_dashboards(folder: Path = DASHBOARDS) -> tuple[Dashboard, ...]:
    """Read all dashboards, by their title."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json"))]
    return tuple(sorted(map(_dashboard, map(json.loads, texts)), key=lambda each: each.title))


def filled_in(query: str, window_seconds: int) -> str:
    """Give a query with every variable for all there is, and every range as long as the incident."""
    ranges = {"__rate_interval", "__range", "__interval"}

    def value(match: re.Match[str]) -> str:
        name = match["name"] or match["braced"]
        if name in ranges:
            return f"{window_seconds}s"
        return str(window_seconds) if name == "__range_s" else _EVERYTHING

    return re.sub(r"\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?::\w+)?\})", value, query)


def _dashboard(source: Json) -> Dashboard:
    return Dashboard(
        title=source["title"],
        panels=tuple(_panels(source["panels"])),
        annotations=tuple(
            Target(query=each["expr"], legend=each["name"])
            for each in source.get("annotations", {}).get("list", ())
            if each.get("expr")
        ),
    )


def _panels(sources: Sequence[Json]) -> Iterator[Panel]:
    for source in sources:
        if source["type"] == "row":
            yield from _panels(source.get("panels") or ())
            continue
        grid: Mapping[str, int] = source["gridPos"]
        yield Panel(
            title=source["title"],
            description=source.get("description", ""),
            kind=source["type"],
            unit=source.get("fieldConfig", {}).get("defaults", {}).get("unit", ""),
            left=grid["x"],
            top=grid["y"],
            width=grid["w"],
            height=grid["h"],
            targets=tuple(
                Target(query=target["expr"], legend=target.get("legendFormat") or "")
                for target in source.get("targets") or ()
            ),
        )
