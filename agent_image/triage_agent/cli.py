"""The command `triage`: an attempt in a pod, and the docs-triage agent by hand."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click
from pythonjsonlogger.json import JsonFormatter
from typing_extensions import override

from triage_agent.exceptions import InDoubtError
from triage_agent.redacting import without_secrets
from triage_contract.exceptions import TriageError
from triage_contract.names import DocsEnv
from triage_contract.states import ExitCode, Outcome

if TYPE_CHECKING:
    from triage_agent.attempt.ending import Ending
    from triage_agent.docs_triage.settings import DocsSettings
    from triage_agent.hand.running import HandOptions

logger = logging.getLogger(__name__)

DEFAULT_DATABASE: Final = "sqlite:///triage.db"

_LIBRARIES: Final = ("google_adk", "google_genai", "httpx")


class _JsonLines(JsonFormatter):
    """One JSON object a line, whatever was logged, and no secret in it."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="triage-operator", prog_name="triage")
def main() -> None:
    """Run documentation triage, and go on with runs that were lost."""


@main.command()
def attempt() -> None:
    """Work on one attempt of a run: what an agent pod runs. All settings come from the environment."""
    # The first process of a container never gets a signal that it has no handler for, and what handles this one
    # is still to be imported. Nothing is claimed yet that could be released.
    signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))
    from triage_agent.attempt.tail import Tail

    tail = Tail()
    tail.capture()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    sys.excepthook = _log_unexpected
    threading.excepthook = lambda it: _log_unexpected(it.exc_type, it.exc_value, it.exc_traceback)
    _hush(logging.WARNING)  # below it they tell of each of their requests
    from triage_agent.attempt.process import leave, run_attempt

    leave(run_attempt(os.environ, tail=tail))


def _by_hand(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `start` and `resume` share."""
    options = (
        click.option(
            "--database",
            envvar=DocsEnv.DB,
            default=DEFAULT_DATABASE,
            show_default=True,
            show_envvar=True,
            help="postgresql://… (fenced and journaled), or sqlite:///FILE (neither).",
        ),
        click.option(
            "--model",
            envvar=DocsEnv.MODEL,
            show_envvar=True,
            help="gemini-…, a LiteLLM name such as ollama_chat/qwen3, record:FILE:NAME or replay:FILE.",
        ),
        click.option(
            "--tracker",
            envvar=DocsEnv.TRACKER,
            show_envvar=True,
            help="`postgres`, `file:PATH` or `github:OWNER/NAME`, which takes DOCS_GITHUB_TOKEN."
            "  [default: postgres on Postgres, else file:issues.json]",
        ),
        click.option(
            "--docs",
            envvar=DocsEnv.PATH,
            show_envvar=True,
            help="Folder of Markdown pages.  [default: four pages that come with the package]",
        ),
        click.option(
            "--no-idempotency-key",
            is_flag=True,
            help="File issues without a key, to see the duplicate that the key prevents.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("report")
@click.option(
    "--crash-after-write",
    is_flag=True,
    help="Die as if killed right after the issue is filed, with nothing more stored (exit status 137).",
)
@_by_hand
def start(report: str, crash_after_write: bool, **options: Any) -> None:
    """Start a run about REPORT: a text, or `-` for standard input. Prints its events, one a line."""
    report = _checked(sys.stdin.buffer.read() if report == "-" else os.fsencode(report))

    def begin(settings: "DocsSettings", hand: "HandOptions") -> Any:
        from triage_agent.hand import running

        return running.start(settings, hand, report)

    _run(begin, crash_after_write=crash_after_write, **options)


@main.command()
@click.argument("session")
@click.argument("invocation")
@click.option(
    "--in-doubt",
    type=click.Choice(["park", "retry", "fail"]),
    default="park",
    show_default=True,
    help="What to do about a call that may have happened: leave it (exit status 85), run it again, or give up.",
)
@click.option(
    "--done",
    metavar="CALL=JSON",
    multiple=True,
    help="The result of a call in doubt, as a JSON object. May be given several times.",
)
@_by_hand
def resume(session: str, invocation: str, in_doubt: str, done: tuple[str, ...], **options: Any) -> None:
    """Go on with INVOCATION of SESSION, as `triage start` printed them."""

    def begin(settings: "DocsSettings", hand: "HandOptions") -> Any:
        from triage_agent.hand import running
        from triage_agent.hand.deciding import Decisions

        return running.resume(settings, hand, session, invocation, Decisions.parse(in_doubt, done))

    _run(begin, crash_after_write=False, **options)


def _run(
    begin: Callable[["DocsSettings", "HandOptions"], Any],
    *,
    database: str,
    model: str | None,
    tracker: str | None,
    docs: str | None,
    no_idempotency_key: bool,
    crash_after_write: bool,
) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    _hush(logging.CRITICAL)  # they log a traceback for each error, which is told in one line here
    from triage_agent.docs_triage.settings import DocsSettings
    from triage_agent.hand.running import HandOptions

    given: dict[str, str | None] = {
        DocsEnv.DB: database,
        DocsEnv.MODEL: model,
        DocsEnv.TRACKER: tracker,
        DocsEnv.PATH: docs,
    }
    environment = {**os.environ, **{name: value for name, value in given.items() if value is not None}}
    hand = HandOptions(
        sqlite_url=database if database.startswith("sqlite") else None,
        keyed=not no_idempotency_key,
        crash_after_write=crash_after_write,
        say=click.echo,
        warn=partial(click.echo, err=True),
    )
    try:
        ending: Ending = asyncio.run(begin(DocsSettings.from_environment(environment), hand))
    except InDoubtError as error:
        _fail(str(error), ExitCode.IN_DOUBT)
    except TriageError as error:
        _fail(str(error))
    if ending.outcome is not Outcome.FINISHED:
        _fail(ending.message, ExitCode.IN_DOUBT if ending.outcome is Outcome.IN_DOUBT else 1)


def _checked(report: bytes) -> str:
    """Refuse what a TriageRun may not hold either."""
    from triage_contract.api.run import MAX_REPORT_LENGTH

    try:
        text = report.decode()
    except UnicodeDecodeError:
        _fail("the report is not UTF-8 text")
    if not text.strip():
        _fail("the report is empty")
    if "\0" in text:
        _fail("the report holds a NUL character")
    if len(text) > MAX_REPORT_LENGTH:
        _fail(f"the report has {len(text)} characters, more than {MAX_REPORT_LENGTH}")
    return text


def _fail(message: str, code: int = 1) -> NoReturn:
    click.echo(f"triage: {message}", err=True)
    sys.exit(code)


def _log_unexpected(kind: Any, error: Any, trace: Any) -> None:
    """Log what nobody caught, which Python would print with whatever secrets are in it."""
    logger.critical(
        "unexpected error", extra={"action": "end", "error": repr(error)}, exc_info=(kind, error, trace)
    )


def _hush(level: int) -> None:
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(level)
