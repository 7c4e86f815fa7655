"""The alerts as the chart ships them, with thresholds for an incident of a minute, and which of them should fire."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from helm_python import Chart, HelmError

from observe.comparing import Checked, Finding
from observe.operators import Window
from observe.prometheus import Prometheus
from triage_local.exceptions import PatienceError, ProgramError

Json = dict[str, Any]

_CHART: Final = Path(__file__).parents[1] / "charts" / "triage-operator"
_VALUES: Final[Json] = {
    "database": {"urlSecret": {"name": "database"}},
    "alerts": {
        "enabled": True,
        "thresholds": {
            "recoverySeconds": 1,
            "inDoubtSeconds": 3,
            "waitingSeconds": 3,
            "fenceRefusals": 0.5,
            "unattendedSeconds": 120,
            "leaderlessFor": "30s",
        },
    },
}
_SHORTER: Final[Mapping[str, str]] = {"TriageOutOfMemoryAtCap": "2s"}
"""How long these have to hold; the chart has no value for it."""

_FOR_GOOD: Final[Mapping[str, str]] = {
    "TriageRecoverySlow": "going on takes longer than a second",
    "TriageOutOfMemoryAtCap": "a run is killed at its cap again and again",
    "TriageResumeLoop": "that run is given up",
    "TriageFenceRefusals": "a frozen process wakes up and is refused",
}
"""Alerts that fire, and why; they look back further than the incident, and so still do at its end."""
_FOR_A_WHILE: Final[Mapping[str, str]] = {
    "TriageCallInDoubt": "nobody has decided about a call yet",
    "TriageWaitingForPerson": "its run waits for that",
}
"""Alerts that fire, and why, and are resolved at the end."""

_PATIENCE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2


def alert_groups() -> list[Json]:
    """Render the groups of the chart's PrometheusRule.

    Raises:
        ProgramError: The values do not fit the chart.
    """
    try:
        with Chart.load(_CHART) as chart:
            texts = chart.render(_VALUES, name="triage-operator", namespace="triage")
    except HelmError as error:
        raise ProgramError(f"the chart's alerts cannot be rendered: {error}") from error
    objects = [
        each for name, text in texts.items() if name.endswith(".yaml") for each in yaml.safe_load_all(text)
    ]
    (rule,) = (each for each in objects if each and each["kind"] == "PrometheusRule")
    groups: list[Json] = rule["spec"]["groups"]
    for group in groups:
        for alert in group["rules"]:
            if shorter := _SHORTER.get(alert["alert"]):
                alert["for"] = shorter
    return groups


async def until_alerted(prometheus: Prometheus) -> None:
    """Wait until alerts tell that a call is in doubt, and that its run waits for somebody.

    Raises:
        PatienceError: One of them does not.
    """
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not _FOR_A_WHILE.keys() <= await _firing(prometheus):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise PatienceError(
            f"waited {_PATIENCE_SECONDS:.0f} s in vain: {' and '.join(_FOR_A_WHILE)} fire"
        ) from None


async def check_alerts(prometheus: Prometheus, window: Window) -> list[Checked]:
    """Check which alerts fired in the incident, and which still do."""
    rules = [rule for rule in await prometheus.rules() if rule["type"] == "alerting"]
    query = f'count by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{int(window.seconds)}s]))'
    fired = {series.labels["alertname"] for series in await prometheus.query(query, window.end)}
    fires = await _firing(prometheus)
    checked = []
    for rule in sorted(rules, key=lambda rule: str(rule["name"])):
        name = rule["name"]
        why = _FOR_GOOD.get(name) or _FOR_A_WHILE.get(name)
        wanted = (why is not None, name in _FOR_GOOD)
        found = (name in fired, name in fires)
        checked.append(
            Checked(
                place=f"alert {name}",
                query=query,
                finding=Finding.EQUAL if found == wanted else Finding.WRONG,
                answer=_said(*found),
                note=f"should be: {_said(*wanted)}" + (f", since {why}" if why else ""),
            )
        )
    missing = {*_FOR_GOOD, *_FOR_A_WHILE} - {str(rule["name"]) for rule in rules}
    checked += [
        Checked(
            place=f"alert {name}", query="", finding=Finding.SILENT, answer="", note="there is no such rule"
        )
        for name in sorted(missing)
    ]
    return checked


async def _firing(prometheus: Prometheus) -> set[str]:
    return {alert.name for alert in await prometheus.alerts() if alert.state == "firing"}


def _said(has_fired: bool, fires: bool) -> str:
    if not has_fired:
        return "did not fire"
    return "fired, and still does" if fires else "fired, and is resolved"
