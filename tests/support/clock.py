"""The time at which test scenarios are looked at."""

from datetime import UTC, datetime, timedelta

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def ahead(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def stamp(time: datetime) -> str:
    """Write a time as Kubernetes does, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
