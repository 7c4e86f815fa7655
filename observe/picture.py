"""A dashboard's content as a picture: what Prometheus answers, drawn where the dashboard has its panels.

It is no picture of Grafana, which is not needed for it; titles, places, units and legends are the dashboard's.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, DateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from observe.dashboards import Dashboard, Panel, Target, filled_in
from observe.intervals import RATE_INTERVAL, marked
from observe.operators import Window
from observe.prometheus import Point, Prometheus, Series
from observe.units import shown_value

_COLUMNS: Final = 24
_WIDTH_INCHES: Final = 15.0
_ROW_INCHES: Final = 0.36
_TITLE_INCHES: Final = 0.5
_GAP_INCHES: Final = 0.06
_STEPS: Final = 240
"""Points of a curve."""
_RATE_SECONDS: Final = 15
"""For ``$__rate_interval`` in a curve: several scrapes."""
_MOST_SERIES: Final = 10

_BACKGROUND: Final = "#111217"
_PANEL: Final = "#181b1f"
_EDGE: Final = "#2c3235"
_TEXT: Final = "#d8d9da"
_DIM: Final = "#8e9196"
_MARKS: Final = ("#ff9830", "#8ab8ff", "#ca95e5")
_COLOURS: Final = (
    "#73bf69",
    "#f2cc0c",
    "#8ab8ff",
    "#ff780a",
    "#f2495c",
    "#5794f2",
    "#b877d9",
    "#37872d",
    "#e0b400",
    "#c0d8ff",
)

_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    # The same picture for the same answers.
    "svg.hashsalt": "triage-operator",
    "font.family": "sans-serif",
    "font.size": 8,
    "text.color": _TEXT,
    "axes.labelcolor": _TEXT,
    "xtick.color": _DIM,
    "ytick.color": _DIM,
}

Named = Sequence[tuple[str, Series]]
Drawer = Callable[[Axes, Panel, Named, "Colours"], None]


class Colours:
    """The colour of each name on a dashboard, in whichever panel it is."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def of(self, name: str) -> str:
        """Give it."""
        if name not in self._names:
            self._names.append(name)
        return _COLOURS[self._names.index(name) % len(_COLOURS)]


async def draw(dashboard: Dashboard, prometheus: Prometheus, window: Window, file: Path) -> None:
    """Draw a dashboard over a time into a file; its suffix says the format.

    Raises:
        ProgramError: Prometheus refuses a query.
    """
    rows = max(panel.top + panel.height for panel in dashboard.panels)
    height = rows * _ROW_INCHES + _TITLE_INCHES
    colours = Colours()
    marks = {mark.legend: await _times(prometheus, mark, window) for mark in dashboard.annotations}
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH_INCHES, height), facecolor=_BACKGROUND)
        top = 1 - 0.22 / height
        figure.text(0.008, top, dashboard.title, size=13, weight="bold", va="center")
        times = f"{window.start:%Y-%m-%d %H:%M:%S} to {window.end:%H:%M:%S} UTC"
        figure.text(0.992, top, times, size=9, color=_DIM, ha="right", va="center")
        for place, (name, colour) in enumerate(zip(marks, _MARKS, strict=False)):
            figure.text(0.70 - 0.06 * place, top, f"¦ {name}", size=9, color=colour, va="center")
        for panel in dashboard.panels:
            is_curve = panel.kind in _CURVES
            answers = [
                answer
                for target in panel.targets
                for answer in await _ask(prometheus, target, window, is_curve=is_curve)
            ]
            axes = _place(figure, panel, height)
            _DRAWERS.get(panel.kind, _draw_numbers)(axes, panel, answers, colours)
            if is_curve:
                _mark(axes, marks)
                axes.set_xlim(window.start, window.end)  # type: ignore[arg-type]
        figure.savefig(
            file, facecolor=_BACKGROUND, metadata={"Date": None} if file.suffix == ".svg" else None
        )


async def _ask(
    prometheus: Prometheus, target: Target, window: Window, *, is_curve: bool
) -> list[tuple[str, Series]]:
    seconds = int(window.seconds)
    if is_curve:
        query = RATE_INTERVAL.sub(f"{_RATE_SECONDS}s", target.query)
        answer = await prometheus.query_range(
            filled_in(query, seconds), window.start, window.end, window.seconds / _STEPS
        )
    else:
        answer = await prometheus.query(filled_in(target.query, seconds), window.end)
    return [(_named(target.legend, series), series) for series in answer]


async def _times(prometheus: Prometheus, mark: Target, window: Window) -> list[datetime]:
    answer = await _ask(prometheus, mark, window, is_curve=True)
    begun = {time for _, series in answer for time in marked(series.points)}
    return [datetime.fromtimestamp(time, UTC) for time in sorted(begun)]


def _place(figure: Figure, panel: Panel, height: float) -> Axes:
    """Give the axes of a panel's content, inside its frame."""
    gap = _GAP_INCHES
    left = panel.left / _COLUMNS * _WIDTH_INCHES + gap
    width = panel.width / _COLUMNS * _WIDTH_INCHES - 2 * gap
    bottom = height - _TITLE_INCHES - (panel.top + panel.height) * _ROW_INCHES + gap
    tall = panel.height * _ROW_INCHES - 2 * gap

    def share(x: float, y: float, w: float, h: float) -> tuple[float, float, float, float]:
        return (x / _WIDTH_INCHES, y / height, w / _WIDTH_INCHES, h / height)

    frame = figure.add_axes(share(left, bottom, width, tall), facecolor=_PANEL)
    frame.set_xticks([])
    frame.set_yticks([])
    for spine in frame.spines.values():
        spine.set_color(_EDGE)
    frame.text(0.1 / width, 1 - 0.16 / tall, panel.title, size=9, weight="bold", va="center")
    if panel.kind in _CURVES:
        # Room for the values at the left, the times and the legend below.
        return figure.add_axes(
            share(left + 0.62, bottom + 0.62, width - 0.8, max(tall - 1.0, 0.3)), facecolor=_PANEL
        )
    inner = figure.add_axes(
        share(left + 0.1, bottom + 0.08, width - 0.2, max(tall - 0.4, 0.2)), facecolor=_PANEL
    )
    inner.set_axis_off()
    inner.set_xlim(0, 1)
    inner.set_ylim(0, 1)
    return inner


def _draw_curves(axes: Axes, panel: Panel, answers: Named, colours: Colours) -> None:
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.grid(color=_EDGE, linewidth=0.5)
    axes.tick_params(length=0, labelsize=7)
    times = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(times)
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))  # type: ignore[no-untyped-call]
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=panel.unit == "short"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown_value(value, panel.unit)))
    ranked = sorted(answers, key=lambda named: -max(value for _, value in named[1].points))[:_MOST_SERIES]
    below: dict[float, float] = defaultdict(float)
    for name, series in ranked:
        colour, (moments, values) = colours.of(name), _with_gaps(series.points)
        floor = [below[moment] for moment in moments] if panel.is_stacked else [0.0] * len(moments)
        heights = [low + value for low, value in zip(floor, values, strict=True)]
        drawn: Any = [datetime.fromtimestamp(moment, UTC) for moment in moments]
        axes.plot(drawn, heights, color=colour, linewidth=1.2, label=name, drawstyle="steps-post")
        if panel.is_stacked:
            axes.fill_between(drawn, floor, heights, color=colour, alpha=0.3, linewidth=0, step="post")
            below.update(
                (moment, height)
                for moment, height in zip(moments, heights, strict=True)
                if not math.isnan(height)
            )
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if ranked:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(-0.1, -0.13 * 2.0 / max(panel.height * _ROW_INCHES - 1.1, 0.5)),
            ncols=max(1, panel.width // 2),
            fontsize=7,
            frameon=False,
            handlelength=1.0,
            columnspacing=1.0,
            borderpad=0,
        )
    else:
        _say_nothing(axes)


def _with_gaps(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Give times and values, with no number where a series is interrupted."""
    steps = [after - before for (before, _), (after, _) in pairwise(points)]
    moments, values = [], []
    for place, (moment, value) in enumerate(points):
        if place and steps[place - 1] > 1.5 * min(steps):
            moments.append(points[place - 1][0])
            values.append(math.nan)
        moments.append(moment)
        values.append(value)
    return moments, values


def _draw_numbers(axes: Axes, panel: Panel, answers: Named, colours: Colours) -> None:
    """Draw values beside each other, with their names where there are several."""
    for place, (name, series) in enumerate(answers):
        x = (place + 0.5) / len(answers)
        text = shown_value(series.value, panel.unit)
        axes.text(x, 0.55, text, size=18, color=_COLOURS[0], weight="bold", ha="center", va="center")
        if len(answers) > 1:
            axes.text(x, 0.08, name, size=7, color=_DIM, ha="center", va="center")
    if not answers:
        _say_nothing(axes)


def _draw_bars(axes: Axes, panel: Panel, answers: Named, colours: Colours) -> None:
    ranked = sorted(answers, key=lambda named: -named[1].value)[:_MOST_SERIES]
    most = max((series.value for _, series in ranked), default=0) or 1.0
    for place, (name, series) in enumerate(ranked):
        y = 1 - (place + 0.5) / max(len(ranked), 4)
        axes.text(0.27, y, name, size=8, ha="right", va="center")
        axes.barh(y, 0.58 * series.value / most, height=0.09, left=0.29, color=colours.of(name))
        axes.text(0.30 + 0.58 * series.value / most, y, shown_value(series.value, panel.unit), va="center")
    if not ranked:
        _say_nothing(axes)


def _say_nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "No data", color=_DIM, ha="center", va="center", transform=axes.transAxes)


def _mark(axes: Axes, marks: Mapping[str, Sequence[datetime]]) -> None:
    for times, colour in zip(marks.values(), _MARKS, strict=False):
        for time in times:
            axes.axvline(time, color=colour, linewidth=0.8, linestyle="--")  # type: ignore[arg-type]


def _named(legend: str, series: Series) -> str:
    if not legend or legend == "__auto":
        return (
            ", ".join(value for name, value in sorted(series.labels.items()) if name != "__name__") or "value"
        )
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: series.labels.get(match[1], ""), legend)


_CURVES: Final = ("timeseries", "graph", "state-timeline", "heatmap")
_DRAWERS: Final[Mapping[str, Drawer]] = {
    **dict.fromkeys(_CURVES, _draw_curves),
    **dict.fromkeys(("bargauge", "barchart", "piechart", "table"), _draw_bars),
}
