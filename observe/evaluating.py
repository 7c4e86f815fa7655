"""What a query should come to: PromQL over samples that were counted from the tables.

A counter was 0 before the incident, and every step of it was seen, so ``increase`` over the whole incident is its value
exactly. Prometheus itself knows only scrapes, and extrapolates between them; how far its answers may be off is said in
``comparing``.
"""

import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias

import promql_parser as promql

from observe.truth import Labels, Samples

Vector: TypeAlias = dict[Labels, float]
Value: TypeAlias = float | Vector


class NotKnownError(Exception):
    """The tables do not tell what a query comes to; the message says which part of it they do not."""


class Evaluator:
    """Evaluates queries at the end of an incident."""

    def __init__(self, samples: Mapping[str, Samples], window_seconds: float) -> None:
        """Prepare.

        Args:
            samples: By metric.
            window_seconds: Length of the incident. Ranges of queries have to be as long, or longer.
        """
        self._samples = samples
        self._window = timedelta(seconds=window_seconds)

    def evaluate(self, query: str) -> Vector:
        """Give what a query should come to. NotKnownError: the tables do not tell."""
        value = self._value(promql.parse(query))
        return value if isinstance(value, dict) else {frozenset(): value}

    def _value(self, node: Any) -> Value:
        match node:
            case promql.NumberLiteral():
                return float(node.val)
            case promql.ParenExpr():
                return self._value(node.expr)
            case promql.UnaryExpr():
                value = self._value(node.expr)
                return _each(value, operator.neg) if isinstance(value, dict) else -value
            case promql.VectorSelector():
                return self._selected(node)
            case promql.AggregateExpr():
                return self._aggregated(node)
            case promql.BinaryExpr():
                return self._combined(node)
            case promql.Call():
                return self._called(node)
        raise NotKnownError(f"no value of {node} is known")

    def _selected(self, node: Any) -> Vector:
        if node.name not in self._samples:
            raise NotKnownError(f"{node.name} is not in the tables")
        if node.at is not None:
            raise NotKnownError(f"{node} is of another time")
        if node.offset is not None and node.offset < self._window:
            raise NotKnownError(f"{node} is of the middle of the incident")
        chosen = {
            labels: value
            for labels, value in self._samples[node.name].items()
            if all(_matches(dict(labels), matcher) for matcher in node.matchers.matchers)
        }
        # Nothing had been counted before the incident.
        return {} if node.offset is not None else chosen

    def _called(self, node: Any) -> Value:
        name, arguments = node.func.name, node.args
        if name in ("increase", "rate"):
            return self._increased(name, arguments[0])
        if name in ("max_over_time", "last_over_time"):
            return self._before(arguments[0])
        values = [self._value(argument) for argument in arguments]
        match name, values:
            case "vector", [float(number)]:
                return {frozenset(): number}
            case "scalar", [dict(vector)]:
                return next(iter(vector.values())) if len(vector) == 1 else math.nan
            case (("sort" | "sort_desc"), [dict(vector)]):
                return vector
            case "abs", [dict(vector)]:
                return _each(vector, abs)
            case "round", [dict(vector)]:
                return _each(vector, lambda value: math.floor(value + 0.5))
            case "clamp_min", [dict(vector), float(least)]:
                return _each(vector, lambda value: max(value, least))
            case "clamp_max", [dict(vector), float(most)]:
                return _each(vector, lambda value: min(value, most))
            case "histogram_quantile", [float(quantile), dict(vector)]:
                return _quantiles(quantile, vector)
        raise NotKnownError(f"{name}() is not evaluated here")

    def _increased(self, name: str, argument: Any) -> Vector:
        if not isinstance(argument, promql.MatrixSelector):
            raise NotKnownError(f"{argument} is of the middle of the incident")
        if argument.range < self._window:
            raise NotKnownError(f"{argument} is shorter than the incident")
        vector = self._selected(argument.vector_selector)
        seconds = argument.range.total_seconds()
        return vector if name == "increase" else _each(vector, lambda value: value / seconds)

    def _before(self, argument: Any) -> Vector:
        """What was the latest before the incident: nothing. During it, that is another time's."""
        selector = getattr(argument, "vector_selector", None)
        if selector is None or selector.offset is None:
            raise NotKnownError(f"{argument} is of the middle of the incident")
        return self._selected(selector)

    def _aggregated(self, node: Any) -> Vector:
        vector = self._value(node.expr)
        if not isinstance(vector, dict):
            raise NotKnownError(f"{node} is no vector")
        if str(node.op) in ("topk", "bottomk"):
            count = self._value(node.param)
            ranked = sorted(vector.items(), key=lambda item: item[1], reverse=str(node.op) == "topk")
            return dict(ranked[: int(count) if isinstance(count, float) else 0])
        if str(node.op) not in _AGGREGATIONS:
            raise NotKnownError(f"{node.op} is not evaluated here")
        groups: dict[Labels, list[float]] = defaultdict(list)
        for labels, value in vector.items():
            groups[_group(labels, node.modifier)].append(value)
        return {labels: _AGGREGATIONS[str(node.op)](values) for labels, values in groups.items()}

    def _combined(self, node: Any) -> Value:
        left, right, sign = self._value(node.lhs), self._value(node.rhs), str(node.op)
        if isinstance(left, dict) and isinstance(right, dict):
            return _joined(sign, left, right, node.modifier)
        if sign in _COMPARISONS:
            compare = _COMPARISONS[sign]
            if isinstance(left, dict) and isinstance(right, float):
                return {labels: value for labels, value in left.items() if compare(value, right)}
            raise NotKnownError(f"{node} is not evaluated here")
        work = _ARITHMETIC[sign]
        if isinstance(left, dict):
            return _each(left, lambda value: work(value, right))
        if isinstance(right, dict):
            return _each(right, lambda value: work(left, value))
        return work(left, right)


def _joined(sign: str, left: Vector, right: Vector, modifier: Any) -> Vector:
    def key(labels: Labels) -> Labels:
        matching = modifier.matching if modifier is not None else None
        if matching is None:
            return labels
        kept = matching.type == promql.LabelModifierType.Include
        return frozenset(pair for pair in labels if (pair[0] in matching.labels) == kept)

    keys = {key(labels): value for labels, value in right.items()}
    if sign == "and":
        return {labels: value for labels, value in left.items() if key(labels) in keys}
    if sign == "unless":
        return {labels: value for labels, value in left.items() if key(labels) not in keys}
    if sign == "or":
        had = {key(labels) for labels in left}
        return {**left, **{labels: value for labels, value in right.items() if key(labels) not in had}}
    if len(keys) != len(right):
        raise NotKnownError("several on the right side of a match are not evaluated here")
    pairs = {labels: (value, keys[key(labels)]) for labels, value in left.items() if key(labels) in keys}
    if sign in _COMPARISONS:
        return {labels: pair[0] for labels, pair in pairs.items() if _COMPARISONS[sign](*pair)}
    return {key(labels): _ARITHMETIC[sign](*pair) for labels, pair in pairs.items()}


def _quantiles(quantile: float, vector: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
    for labels, value in vector.items():
        bound = float(dict(labels)["le"])
        groups[frozenset(pair for pair in labels if pair[0] != "le")].append((bound, value))
    return {labels: _quantile(quantile, sorted(buckets)) for labels, buckets in groups.items()}


def _quantile(quantile: float, buckets: list[tuple[float, float]]) -> float:
    """As Prometheus does it: linear between the bounds of the bucket that the quantile falls into."""
    total = buckets[-1][1]
    if not total:
        return math.nan
    rank = quantile * total
    place = next(place for place, (_, count) in enumerate(buckets) if count >= rank)
    if place == len(buckets) - 1:
        return buckets[-2][0]
    below, counted = buckets[place - 1] if place else (0.0, 0.0)
    bound, count = buckets[place]
    return below + (bound - below) * (rank - counted) / (count - counted) if count > counted else bound


def _matches(labels: Mapping[str, str], matcher: Any) -> bool:
    value = labels.get(matcher.name, "")
    if matcher.op in (promql.MatchOp.Equal, promql.MatchOp.NotEqual):
        return bool((value == matcher.value) == (matcher.op == promql.MatchOp.Equal))
    return bool(bool(re.fullmatch(matcher.value, value)) == (matcher.op == promql.MatchOp.Re))


def _group(labels: Labels, modifier: Any) -> Labels:
    if modifier is None:
        return frozenset()
    kept = modifier.type == promql.AggModifierType.By
    return frozenset(pair for pair in labels if (pair[0] in modifier.labels) == kept)


def _each(vector: Vector, work: Callable[[float], float]) -> Vector:
    return {labels: work(value) for labels, value in vector.items()}


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


_AGGREGATIONS: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "avg": _mean,
    "count": lambda values: float(len(values)),
}
_ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
