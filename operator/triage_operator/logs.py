"""Logs: constant messages, facts as fields, as JSON or as text."""

import logging
import sys
from enum import StrEnum
from typing import Final

from pythonjsonlogger.json import JsonFormatter

_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


class LogFormat(StrEnum):
    """How log records are written."""

    JSON = "json"
    TEXT = "text"


class _TextFormatter(logging.Formatter):
    """``time level logger message key=value …``."""

    def format(self, record: logging.LogRecord) -> str:
        facts = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        shown = " ".join(f"{key}={value}" for key, value in facts.items() if value is not None)
        return f"{super().format(record)} {shown}".rstrip()


def set_up_logging(log_format: LogFormat, level: str) -> None:
    """Write all log records of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    if log_format is LogFormat.JSON:
        handler.setFormatter(
            JsonFormatter(
                "{asctime}{levelname}{name}{message}",
                style="{",
                rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            )
        )
    else:
        handler.setFormatter(_TextFormatter("{asctime} {levelname} {name} {message}", style="{"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # kopf says at each call that a handler was called; what goes wrong is a warning or an error.
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLogger().level))
    # That it leaves the signals alone is as it should be.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
