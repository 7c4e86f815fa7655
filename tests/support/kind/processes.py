"""Processes of containers, as their node sees them: they may outlive what the API server knows of them."""

from dataclasses import dataclass

from support.kind.programs import Programs
from support.sight import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The first process of a container. ``pid`` is the node's number for it."""

    programs: Programs
    node: str
    container: str
    pid: int

    @classmethod
    async def find(cls, programs: Programs, pod: Json, container: str = "agent") -> "Process":
        """Find the process of a container that runs."""
        (uri,) = (
            one["containerID"] for one in pod["status"]["containerStatuses"] if one["name"] == container
        )
        identity, node = uri.removeprefix("containerd://"), pod["spec"]["nodeName"]
        tasks = await programs.docker("exec", node, "ctr", "-n", "k8s.io", "tasks", "ls")
        rows = (line.split() for line in tasks.splitlines())
        (pid,) = (int(row[1]) for row in rows if row[0] == identity)
        return cls(programs=programs, node=node, container=identity, pid=pid)

    async def signal(self, name: str) -> None:
        """Send it a signal, such as ``STOP``."""
        await self.programs.kill(self.node, self.container, name)

    async def lives(self) -> bool:
        """Say whether it is still there, running or stopped."""
        said = await self.programs.docker(
            "exec", self.node, "sh", "-c", f"kill -0 {self.pid} 2>/dev/null && echo yes || echo no"
        )
        return said.strip() == "yes"

    async def ended(self) -> None:
        """Wait for its end."""
        await self.programs.docker(
            "exec", self.node, "timeout", "150", "tail", f"--pid={self.pid}", "-f", "/dev/null"
        )
