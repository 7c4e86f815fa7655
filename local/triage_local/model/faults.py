"""Trouble on demand: errors, delays, and answers that do not come."""

import asyncio
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Fault(BaseModel):
    """What happens to the next matching requests. Read from ``POST /faults``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: int | None = Field(default=None, ge=400, le=599, description="HTTP status to answer with.")
    retry_after_seconds: float | None = Field(default=None, ge=0, description="Goes with a status.")
    delay_seconds: float = Field(default=0, ge=0, description="Wait before anything else happens.")
    hang: bool = Field(default=False, description="Say nothing until released, then answer as usual.")
    times: int = Field(default=1, ge=1, description="How many requests it befalls.")
    report: str = Field(default="", description="Only requests whose report contains this.")
    step: str = Field(default="", description="Only where the answer would be this tool's call, or `text`.")

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.status is None and not self.hang and not self.delay_seconds:
            raise ValueError("a fault needs status, hang or delay_seconds")
        return self


class Faults:
    """The faults that wait for their requests, oldest first."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self._release = asyncio.Event()

    def add(self, fault: Fault) -> None:
        """Let a fault befall requests from now on."""
        self._waiting.append(fault)

    def take(self, report: str, step: str) -> Fault | None:
        """Use up one time of the first fault that is meant for this request; None if there is none."""
        for place, fault in enumerate(self._waiting):
            if fault.report in report and fault.step in ("", step):
                left = fault.times - 1
                self._waiting[place : place + 1] = [fault.model_copy(update={"times": left})] if left else []
                return fault
        return None

    async def released(self) -> None:
        """Wait for the next ``release``."""
        await self._release.wait()

    def release(self) -> None:
        """Let every request go on that hangs now."""
        self._release.set()
        self._release = asyncio.Event()

    def clear(self) -> None:
        """Forget the faults that still wait, and release what hangs."""
        self._waiting.clear()
        self.release()
