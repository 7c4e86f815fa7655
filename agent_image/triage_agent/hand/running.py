"""One run by hand, on whatever database it was asked for."""

import os
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from google.adk.apps.app import App
from google.adk.events.event import Event

from triage_agent.attempt.ending import Ending
from triage_agent.docs_triage.agent import build_app
from triage_agent.docs_triage.settings import DocsSettings
from triage_agent.exceptions import ConfigurationError
from triage_agent.hand import postgres, sqlite
from triage_agent.hand.deciding import Decisions
from triage_agent.hand.printing import event_lines
from triage_contract.database.rows import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOptions:
    """How a run by hand differs from one in a pod. ``say`` prints one line of the run, ``warn`` one about it."""

    sqlite_url: str | None
    keyed: bool
    crash_after_write: bool
    say: Callable[[str], None]
    warn: Callable[[str], None]


def start(settings: DocsSettings, options: HandOptions, report: str) -> Coroutine[Any, Any, Ending]:
    """Start a run about a report."""
    app = _build(settings, options)
    if options.sqlite_url is not None:
        return sqlite.start(
            _on_sqlite(options.sqlite_url, options, app),
            report,
            lambda session, invocation: _say_ids(options, session, invocation),
        )

    def started(run: RunRow) -> None:
        _say_ids(options, run.session.session_id, run.invocation_id)

    return postgres.start(_on_postgres(settings, options, app), report, started)


def resume(
    settings: DocsSettings, options: HandOptions, session: str, invocation: str, decisions: Decisions
) -> Coroutine[Any, Any, Ending]:
    """Go on with an invocation; the coroutine raises RefusedError where there is nothing to go on with.

    Raises:
        ConfigurationError: there are decisions, and no journal that could name a call in doubt.
    """
    app = _build(settings, options)
    if options.sqlite_url is not None:
        if decisions != Decisions():
            raise ConfigurationError("--in-doubt and --done need Postgres: SQLite keeps no journal of calls")
        return sqlite.resume(_on_sqlite(options.sqlite_url, options, app), session, invocation)
    return postgres.resume(
        replace(_on_postgres(settings, options, app), decisions=decisions), session, invocation
    )


def _build(settings: DocsSettings, options: HandOptions) -> App:
    after_write = _die if options.crash_after_write else lambda: None
    return build_app(settings, keyed=options.keyed, after_write=after_write)


def _on_sqlite(given: str, options: HandOptions, app: App) -> sqlite.SqliteRun:
    url = sqlite.sqlite_url(given)
    return sqlite.SqliteRun(url=url, app=app, on_event=_printer(options), warn=options.warn)


def _on_postgres(settings: DocsSettings, options: HandOptions, app: App) -> postgres.HandSettings:
    assert settings.database is not None
    return postgres.HandSettings(
        database=settings.database, load=lambda: app, app_name=app.name, on_event=_printer(options)
    )


def _printer(options: HandOptions) -> Callable[[Event], None]:
    def print_event(event: Event) -> None:
        for line in event_lines(event):
            options.say(line)

    return print_event


def _say_ids(options: HandOptions, session: str, invocation: str) -> None:
    options.say(f"session {session}")
    options.say(f"invocation {invocation}")


def _die() -> None:
    """End with the status of a killed process: no handler runs, no buffer is written, nothing more is stored."""
    os._exit(128 + signal.SIGKILL)
