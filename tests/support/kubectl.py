"""The real kubectl, run by tests."""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """What a call of kubectl came to."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """Runs kubectl in a namespace. ``environment`` says which cluster that is in."""

    program: str
    namespace: str
    environment: Mapping[str, str]

    async def start(self, *arguments: str) -> Process:
        """A running kubectl; whoever calls waits for it."""
        command = (self.program, f"--namespace={self.namespace}", *arguments)
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self.environment
        )

    async def __call__(self, *arguments: str, stdin: str = "") -> Completed:
        """Run it to its end, for 30 seconds at most."""
        process = await self.start(*arguments)
        async with asyncio.timeout(30):
            out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Completed(code=process.returncode, out=out.decode(), err=err.decode())
