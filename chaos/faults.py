"""What befalls an agent process, and where: before and after each step that does something durable, or asks for it."""

import asyncio
import inspect
import os
import signal
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from typing import Any, Final

from chaos.ledger import Ledger
from chaos.models import ScriptedModel
from triage_agent.attempt.record import AttemptRecord
from triage_agent.attempt.sessions import AttemptSessionService
from triage_contract.database.direct import DirectConnection
from triage_contract.database.url import DatabaseUrl


class Step(StrEnum):
    """A step that a fault may come before or after."""

    CLAIM = "claim"
    APPEND = "append"
    REPLY = "reply"
    BEGIN = "begin"
    END = "end"
    SETTLE = "settle"
    FINISH = "finish"
    EFFECT = "effect"
    MODEL = "model"


class Harm(StrEnum):
    """What happens to the process."""

    KILL = "SIGKILL"
    STOP = "SIGSTOP, woken later"
    DRAIN = "SIGTERM"
    CUT = "connections cut"
    RACE = "overtaken while it works"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``harm`` comes before or after the ``nth`` execution, from 1, of ``step``."""

    harm: Harm
    when: str
    step: Step
    nth: int

    def __str__(self) -> str:
        return f"{self.harm} {self.when} {self.step} {self.nth}"


_METHODS: Final[dict[Step, tuple[type[Any], str]]] = {
    Step.CLAIM: (AttemptRecord, "claim"),
    Step.APPEND: (AttemptSessionService, "append_event"),
    Step.REPLY: (AttemptRecord, "store_reply"),
    Step.BEGIN: (AttemptRecord, "begin_call"),
    Step.END: (AttemptRecord, "end_call"),
    Step.SETTLE: (AttemptRecord, "settle_call"),
    Step.FINISH: (AttemptRecord, "finish"),
    Step.EFFECT: (Ledger, "perform"),
    Step.MODEL: (ScriptedModel, "answer"),
}


@dataclass(slots=True, kw_only=True)
class Harness:
    """Wraps the steps of this process. ``bell`` is told when the fault has come and the process lives on."""

    fault: Fault | None
    bell: socket.socket
    url: DatabaseUrl
    counts: Counter[Step] = field(default_factory=Counter)

    def install(self) -> None:
        """Wrap them all."""
        for step, (owner, name) in _METHODS.items():
            setattr(owner, name, self._wrapped(step, getattr(owner, name)))

    def _wrapped(self, step: Step, method: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(method):

            @wraps(method)
            async def around(*args: Any, **kwargs: Any) -> Any:
                self.counts[step] += 1
                nth = self.counts[step]
                await self._meet("before", step, nth)
                result = await method(*args, **kwargs)
                await self._meet("after", step, nth)
                return result

            return around

        @wraps(method)
        def around_sync(*args: Any, **kwargs: Any) -> Any:
            self.counts[step] += 1
            nth = self.counts[step]
            asyncio.run(self._meet("before", step, nth)) if self._is_due("before", step, nth) else None
            result = method(*args, **kwargs)
            asyncio.run(self._meet("after", step, nth)) if self._is_due("after", step, nth) else None
            return result

        return around_sync

    def _is_due(self, when: str, step: Step, nth: int) -> bool:
        fault = self.fault
        return fault is not None and (fault.when, fault.step, fault.nth) == (when, step, nth)

    async def _meet(self, when: str, step: Step, nth: int) -> None:
        if not self._is_due(when, step, nth):
            return
        assert self.fault is not None
        match self.fault.harm:
            case Harm.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Harm.STOP:
                self.bell.send(b"stopped")
                os.kill(os.getpid(), signal.SIGSTOP)
            case Harm.DRAIN:
                os.kill(os.getpid(), signal.SIGTERM)
            case Harm.CUT:
                await self._cut()
            case Harm.RACE:
                self.bell.send(b"racing")

    async def _cut(self) -> None:
        """End all connections of this attempt's process, from outside."""
        connection = await DirectConnection.open(self.url, application="chaos")
        try:
            await connection.fetch_one(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name LIKE 'triage-agent/%' AND client_port = ANY($1)",
                [*_local_ports()],
            )
        finally:
            await connection.close()


def _local_ports() -> list[int]:
    import psutil

    return [link.laddr.port for link in psutil.Process().net_connections("tcp") if link.laddr]
