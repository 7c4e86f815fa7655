"""Settings of a process that works on one attempt, read once from its environment."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import UUID

from triage_agent.exceptions import ConfigurationError
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUrlError
from triage_contract.names import AttemptEnv
from triage_contract.states import InDoubt, Pooler, ToolKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSettings:
    """What the operator tells an agent process. ``token`` is a secret; memory None: no limit."""

    run_id: UUID
    epoch: int
    token: str
    database: DatabaseUrl
    app: str
    tools: Mapping[str, ToolKind]
    in_doubt: InDoubt
    grace_seconds: float
    heartbeat_seconds: float
    memory_limit_bytes: int | None
    termination_log: Path

    def __repr__(self) -> str:
        return f"AttemptSettings(run_id={self.run_id}, epoch={self.epoch})"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the variables of ``AttemptEnv``.

        Raises:
            ConfigurationError: one is missing or wrong; the message names it and never shows a secret.
        """
        reader = _Reader(environment)
        return cls(
            run_id=reader.uuid(AttemptEnv.RUN_ID),
            epoch=reader.integer(AttemptEnv.EPOCH, minimum=1),
            token=reader.text(AttemptEnv.TOKEN),
            database=reader.database(),
            app=reader.text(AttemptEnv.APP),
            tools=reader.tools(AttemptEnv.TOOLS),
            in_doubt=reader.in_doubt(AttemptEnv.IN_DOUBT),
            grace_seconds=reader.number(AttemptEnv.GRACE_SECONDS, default=30.0),
            heartbeat_seconds=reader.number(AttemptEnv.HEARTBEAT_SECONDS, default=2.0, minimum=0.1),
            memory_limit_bytes=reader.integer(AttemptEnv.MEMORY_LIMIT_BYTES, default=0) or None,
            termination_log=termination_log(environment),
        )


@dataclass(frozen=True, slots=True)
class _Reader:
    environment: Mapping[str, str]

    def text(self, name: AttemptEnv) -> str:
        value = self.environment.get(name, "")
        if not value:
            raise ConfigurationError(f"{name} is not set: the operator sets it in every agent pod")
        return value

    def uuid(self, name: AttemptEnv) -> UUID:
        try:
            return UUID(self.text(name))
        except ValueError:
            raise ConfigurationError(f"{name} is not a UUID") from None

    def number(self, name: AttemptEnv, default: float | None = None, minimum: float = 0.0) -> float:
        value = self.environment.get(name, "") if default is not None else self.text(name)
        if not value and default is not None:
            return default
        try:
            number = float(value)
        except ValueError:
            raise ConfigurationError(f"{name} is {value!r}, not a number") from None
        if not minimum <= number < float("inf"):
            raise ConfigurationError(f"{name} is {value!r}, not a finite number of at least {minimum:g}")
        return number

    def integer(self, name: AttemptEnv, default: int | None = None, minimum: int = 0) -> int:
        number = self.number(name, default, minimum)
        if number != int(number):
            raise ConfigurationError(f"{name} is {number}, not an integer")
        return int(number)

    def database(self) -> DatabaseUrl:
        pooler = self.environment.get(AttemptEnv.DATABASE_POOLER) or Pooler.NONE
        try:
            return DatabaseUrl.parse(
                self.text(AttemptEnv.DATABASE_URL),
                direct_dsn=self.environment.get(AttemptEnv.DATABASE_DIRECT_URL) or None,
                pooler=Pooler(pooler),
            )
        except DatabaseUrlError as error:
            raise ConfigurationError(f"{AttemptEnv.DATABASE_URL}: {error}") from error
        except ValueError:
            raise ConfigurationError(
                f"{AttemptEnv.DATABASE_POOLER} is {pooler!r}, not one of {', '.join(Pooler)}"
            ) from None

    def tools(self, name: AttemptEnv) -> Mapping[str, ToolKind]:
        try:
            kinds = json.loads(self.environment.get(name) or "{}")
            return {str(tool): ToolKind(kind) for tool, kind in kinds.items()}
        except (ValueError, AttributeError):
            raise ConfigurationError(
                f"{name} is not a JSON object of tool names with one of {', '.join(ToolKind)}"
            ) from None

    def in_doubt(self, name: AttemptEnv) -> InDoubt:
        policy = self.environment.get(name) or InDoubt.PARK
        try:
            return InDoubt(policy)
        except ValueError:
            raise ConfigurationError(f"{name} is {policy!r}, not one of {', '.join(InDoubt)}") from None


def termination_log(environment: Mapping[str, str]) -> Path:
    """Give the path of the termination message. Where there is no kubelet, it is a file of the temporary folder."""
    if path := environment.get(AttemptEnv.TERMINATION_LOG):
        return Path(path)
    kubernetes = Path("/dev/termination-log")
    return kubernetes if kubernetes.exists() else Path(tempfile.gettempdir()) / "termination-log"
