"""The dashboards as they are shipped: their panels, where these are, and what they ask."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

DASHBOARDS: Final = Path(__file__).parents[1] / "charts" / "triage-operator" / "dashboards"

_PREFIX: Final = "triage-operator / "
_VARIABLE: Final = re.compile(r"\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?::\w+)?\})")
_RANGES: Final = ("__rate_interval", "__range", "__interval")


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
    kind: str
    unit: str
    is_stacked: bool
    left: int
    top: int
    width: int
    height: int
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """A dashboard."""

    title: str
    """Without the project's name."""
    panels: tuple[Panel, ...]
    annotations: tuple[Target, ...]
    """Queries whose samples are drawn as marks over all panels."""


def read_dashboards(folder: Path = DASHBOARDS) -> tuple[Dashboard, ...]:
    """Read all dashboards, by their title."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json"))]
    return tuple(sorted(map(_dashboard, map(json.loads, texts)), key=lambda each: each.title))


def filled_in(query: str, window_seconds: int) -> str:
    """Give a query with every range as long as the incident."""
    known = {**dict.fromkeys(_RANGES, f"{window_seconds}s"), "__range_s": str(window_seconds)}
    return _replaced(query, known)


def _replaced(query: str, known: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return known.get(match["name"] or match["braced"], match[0])

    return _VARIABLE.sub(value, query)


def _dashboard(source: Json) -> Dashboard:
    # Each variable for all there is.
    variables = {
        each["name"]: each.get("allValue") or ".*" for each in source.get("templating", {}).get("list", ())
    }

    def target(query: str, legend: str) -> Target:
        return Target(query=_replaced(query, variables), legend=legend)

    def panels(sources: Sequence[Json]) -> Iterator[Panel]:
        for each in sources:
            if each["type"] == "row":
                yield from panels(each.get("panels") or ())
                continue
            grid: Mapping[str, int] = each["gridPos"]
            defaults = each.get("fieldConfig", {}).get("defaults", {})
            yield Panel(
                title=each["title"],
                kind=each["type"],
                unit=defaults.get("unit", ""),
                is_stacked=defaults.get("custom", {}).get("stacking", {}).get("mode") == "normal",
                left=grid["x"],
                top=grid["y"],
                width=grid["w"],
                height=grid["h"],
                targets=tuple(
                    target(one["expr"], one.get("legendFormat") or "") for one in each.get("targets") or ()
                ),
            )

    return Dashboard(
        title=source["title"].removeprefix(_PREFIX),
        panels=tuple(panels(source["panels"])),
        annotations=tuple(
            target(each["expr"], each["name"])
            for each in source.get("annotations", {}).get("list", ())
            if each.get("expr")
        ),
    )
