"""The process of one attempt: signals, threads, exit code. What `triage attempt` runs in a pod."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from triage_agent.attempt.settings import AttemptSettings, termination_log
from triage_agent.attempt.tail import Tail
from triage_agent.attempt.vitals import Vitals
from triage_agent.exceptions import ConfigurationError
from triage_contract.exceptions import TriageError
from triage_contract.states import ExitCode, Outcome
from triage_contract.termination import TerminationMessage

if TYPE_CHECKING:
    from google.adk.apps.app import App
    from google.adk.events.event import Event

    from triage_agent.attempt.ending import Ending

logger = logging.getLogger(__name__)

FENCED_PATIENCE_SECONDS: Final = 5.0
"""How long a fenced process may take to leave, for instance because a tool blocks its event loop."""

ENDED_PATIENCE_SECONDS: Final = 5.0
"""How long a process may take to leave after its outcome was recorded. Python waits for threads, without an end."""


def run_attempt(environment: Mapping[str, str], *, tail: Tail | None = None) -> int:
    """Work on the attempt that the environment names, until its outcome or a hand-off; gives the exit code.

    ``tail`` has the lines that the process writes; None: they are not kept.
    """
    try:
        settings = AttemptSettings.from_environment(environment)
    except ConfigurationError as error:
        logger.error("bad configuration", extra={"action": "start", "error": str(error)})
        message = TerminationMessage(outcome=Outcome.BAD_CONFIGURATION, message=str(error))
        _write(termination_log(environment), message)
        return ExitCode.BAD_CONFIGURATION
    logger.info("started", extra={"action": "start", "run": str(settings.run_id), "epoch": settings.epoch})
    ending = _Process(settings, tail or Tail()).run()
    _tell(settings, ending)
    if ending.exit_code is ExitCode.FENCED:
        _leave_at_once(ExitCode.FENCED)
    return ending.exit_code


def leave(code: int) -> NoReturn:
    """End the process with an exit code, and what a tool may have left running with it, after a short while."""
    _later(ENDED_PATIENCE_SECONDS, lambda: _leave_at_once(code))
    sys.exit(code)


class _Process:
    def __init__(self, settings: AttemptSettings, tail: Tail) -> None:
        self._settings = settings
        # Plain flags: a signal handler may set one while this very thread is setting it.
        self._is_handoff = False
        self._is_fenced = False
        self._vitals = Vitals(settings, tail=tail, on_handoff=self._hand_off, on_fenced=self._lose)
        self._ended = False
        self._limit: threading.Timer | None = None
        self._tell: Callable[[], None] = lambda: None

    def run(self) -> "Ending":
        signal.signal(signal.SIGTERM, self._on_sigterm)
        self._vitals.start()
        # Importing ADK takes longer than anything else, and meanwhile the thread above connects. None of it is
        # ever garbage: not looking for any saves a tenth of the time.
        gc.disable()
        from triage_agent.apps import load_app
        from triage_agent.attempt.ending import Ending

        app = _kept(lambda: load_app(self._settings.app))
        logger.info("loaded", extra={"action": "load", "run": str(self._settings.run_id)})
        try:
            return asyncio.run(self._work(app))
        except TriageError as error:
            return Ending.of_error(error)
        finally:
            self._ended = True
            if self._limit is not None:
                self._limit.cancel()
            self._vitals.stop()

    async def _work(self, app: "Future[App]") -> "Ending":
        from triage_agent.apps import load_run_config
        from triage_agent.attempt.working import Interruptions, work
        from triage_agent.replay.gate import Gate

        gc.freeze()
        gc.enable()
        loop = asyncio.get_running_loop()
        interruptions = Interruptions(gate=Gate(), fenced=asyncio.Event())

        def look() -> None:
            if self._is_handoff:
                interruptions.gate.shut()
            if self._is_fenced:
                interruptions.fenced.set()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(look)

        self._tell = tell
        look()
        serial = await asyncio.to_thread(self._vitals.serial)
        ending = await work(
            self._settings,
            serial=serial,
            load=app.result,
            configure=lambda: load_run_config(self._settings.app),
            interruptions=interruptions,
            on_event=self._log_event,
        )
        self._limit = _later(ENDED_PATIENCE_SECONDS, lambda: self._leave_with(ending))
        return ending

    def _log_event(self, event: "Event") -> None:
        facts = {
            "action": "event",
            "run": str(self._settings.run_id),
            "event": event.id,
            "author": event.author,
        }
        logger.info("event stored", extra=facts)

    def _on_sigterm(self, _number: int, _frame: object) -> None:
        self._vitals.tell_sigterm()
        self._hand_off("sigterm")

    def _hand_off(self, _reason: str) -> None:
        self._is_handoff = True
        self._tell()

    def _lose(self) -> None:
        if not self._is_fenced:
            self._is_fenced = True
            _later(FENCED_PATIENCE_SECONDS, self._leave_unless_ended)
        self._tell()

    def _leave_unless_ended(self) -> None:
        if not self._ended:
            _leave_at_once(ExitCode.FENCED)

    def _leave_with(self, ending: "Ending") -> None:
        # Closing the loop waits for the threads of its executor.
        _tell(self._settings, ending)
        _leave_at_once(ending.exit_code)


def _tell(settings: AttemptSettings, ending: "Ending") -> None:
    _write(settings.termination_log, TerminationMessage(outcome=ending.outcome, message=ending.message))
    logger.info(
        "attempt ended",
        extra={
            "action": "end",
            "run": str(settings.run_id),
            "epoch": settings.epoch,
            "outcome": ending.outcome,
            "exit_code": int(ending.exit_code),
            "why": ending.message,
        },
    )


def _later(seconds: float, what: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, what)
    timer.daemon = True
    timer.start()
    return timer


def _kept(load: "Callable[[], App]") -> "Future[App]":
    """Load now, and keep what that raises for whoever asks for the result."""
    loaded: Future[App] = Future()
    try:
        loaded.set_result(load())
    except TriageError as error:
        loaded.set_exception(error)
    return loaded


def _leave_at_once(code: int) -> None:
    """End the process without its threads: nothing that they still do may matter to anybody."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _write(path: Path, message: TerminationMessage) -> None:
    try:
        path.write_text(message.to_json(), encoding="utf-8")
    except OSError as error:
        logger.warning("no termination message", extra={"action": "end", "error": str(error)})
