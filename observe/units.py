"""Numbers as a dashboard shows them, by the name of their unit in Grafana."""

import math
from typing import Final

_STEPS: Final = {
    "bytes": (1024.0, ("B", "KiB", "MiB", "GiB", "TiB")),
    "decbytes": (1000.0, ("B", "kB", "MB", "GB", "TB")),
    "short": (1000.0, ("", " K", " Mil", " Bil")),
}
_RATES: Final = {"ops": "ops/s", "reqps": "req/s", "cps": "c/s", "eps": "ev/s", "wps": "wr/s"}
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


def shown_value(value: float, unit: str) -> str:
    """Show a value; a unit that is not known here is left out."""
    if math.isnan(value):
        return "-"
    match unit:
        case "s":
            return _duration(value)
        case "ms":
            return _duration(value / 1000)
        case "percentunit":
            return f"{_number(value * 100)} %"
        case "percent":
            return f"{_number(value)} %"
        case "bytes" | "decbytes":
            return _stepped(value, unit)
        case _ if unit in _RATES:
            return f"{_number(value)} {_RATES[unit]}"
    return _stepped(value, "short")


def _duration(seconds: float) -> str:
    if 0 < abs(seconds) < 1:
        return f"{_number(seconds * 1000)} ms"
    if abs(seconds) < _MINUTE:
        return f"{_number(seconds)} s"
    if abs(seconds) < _HOUR:
        return f"{_number(seconds / _MINUTE)} min"
    return f"{_number(seconds / _HOUR)} h"


def _stepped(value: float, unit: str) -> str:
    base, names = _STEPS[unit]
    place = 0
    while abs(value) >= base and place < len(names) - 1:
        value, place = value / base, place + 1
    gap = " " if names[place] and not names[place].startswith(" ") else ""
    return f"{_number(value)}{gap}{names[place]}"


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
