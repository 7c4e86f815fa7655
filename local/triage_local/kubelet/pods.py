"""One pod on its node, from the start of its processes to its end."""

import asyncio
import contextlib
import logging
import shutil
import signal
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from triage_contract.quantities import parse_memory
from triage_local.kubelet.cluster import Json
from triage_local.kubelet.containers import Container
from triage_local.kubelet.exceptions import (
    ClusterError,
    NoSuchContainerError,
    NotSupportedError,
    NotYetError,
    StartError,
)
from triage_local.kubelet.launching import check_supported, prepare
from triage_local.kubelet.machine import HOST_IP, Machine
from triage_local.kubelet.reporting import Reporter
from triage_local.kubelet.resizing import Sizes
from triage_local.kubelet.statuses import PodFacts, build_status, running, stamp, terminated, waiting

_logger = logging.getLogger(__name__)


class PodRunner:
    """Runs a pod. ``observe`` and ``remove`` tell it what becomes of the object; ``run`` does the work."""

    def __init__(
        self,
        pod: Json,
        machine: Machine,
        capacity: Mapping[str, str],
        others: Callable[[], int],
        online: asyncio.Event,
    ) -> None:
        """Prepare, and start nothing.

        Args:
            pod: As the API server has it.
            machine: Where it runs.
            capacity: Allocatable resources of its node.
            others: Gives the bytes of memory that are set aside for the node's other pods.
            online: Set while the node's kubelet reaches the API server; else nothing is reported.
        """
        self.pod = pod
        self.uid: str = pod["metadata"]["uid"]
        self._machine = machine
        self._capacity = capacity
        self._sizes = Sizes(pod, capacity, others)
        self._giving: asyncio.TimerHandle | None = None
        self._folder = machine.folder / "pods" / self.uid
        self._reporter = Reporter(pod, machine.cluster, online, self._status)
        self._start_time = stamp(datetime.now(UTC))
        # A pod keeps its address, also from one kubelet to the next.
        self._pod_ip = (pod.get("status") or {}).get("podIP") or next(machine.addresses)
        self._failure: tuple[str, str] | None = None
        self._init_states: dict[str, Json] = {}
        self._states: dict[str, Json] = {}
        self._containers: dict[str, Container] = {}
        self._deletion = asyncio.Event()
        self._kill_at = float("inf")
        self._ending: asyncio.Task[None] | None = None

    @property
    def name(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.pod["metadata"]["namespace"], self.pod["metadata"]["name"]

    @property
    def requested_bytes(self) -> int:
        """Memory that is set aside for it, until its containers have ended."""
        is_over = bool(self._states) and all("terminated" in state for state in self._states.values())
        return 0 if is_over else self._sizes.requested

    @property
    def removed(self) -> bool:
        """Whether the object is gone."""
        return self._reporter.gone.is_set()

    def observe(self, pod: Json) -> None:
        """See the object as it is now."""
        self.pod = pod
        if "deletionTimestamp" in pod["metadata"]:
            grace_seconds = pod["metadata"].get("deletionGracePeriodSeconds", 0)
            # A deletion by force is seen a moment before the object is gone, and means no less than that.
            self._end(grace_seconds or self._machine.timing.forced_grace_seconds)
        else:
            self.resize()

    def resize(self) -> None:
        """Give the containers what the object asks for, if there is room for it now."""
        before = self._sizes.condition
        if self._sizes.ask(self.pod):
            loop = asyncio.get_running_loop()
            self._giving = loop.call_later(self._machine.timing.resize_seconds, self._give)
        if self._sizes.condition != before:
            self._reporter.change()

    def _give(self) -> None:
        self._sizes.give()
        self._reporter.change()

    def remove(self) -> None:
        """See that the object is gone. A process that is still there was deleted by force."""
        self._reporter.gone.set()
        self._end(self._machine.timing.forced_grace_seconds)

    def container(self, name: str | None = None) -> Container:
        """A container by name, by default the first.

        Raises:
            NoSuchContainerError: It has never had a process.
        """
        name = name or self.pod["spec"]["containers"][0]["name"]
        if name not in self._containers:
            raise NoSuchContainerError(f'container "{name}" in pod "{self.name[1]}" has not started')
        return self._containers[name]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of every container."""
        for container in self._containers.values():
            if container.alive:
                container.signal_tree(number)

    async def run(self) -> None:
        """Go with the pod until its object is gone and its processes with it."""
        reporting: asyncio.Task[None] | None = None
        try:
            if (self.pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                reporting = asyncio.create_task(self._reporter.run())
                await self._live()
                self._reporter.settle()
                await reporting
            await self._deletion.wait()
            await self._reporter.finalize()
            await self._reporter.gone.wait()
        finally:
            if reporting is not None:
                reporting.cancel()
            if self._ending is not None:
                self._ending.cancel()
            if self._giving is not None:
                self._giving.cancel()
            self.signal(signal.SIGKILL)
            for container in self._containers.values():
                await container.reap()
            # What a process that left its session still writes there goes with the kubelet's own folder.
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _live(self) -> None:
        """Run all containers to their end, the init containers one after the other before the rest."""
        spec = self.pod["spec"]
        try:
            check_supported(spec)
        except NotSupportedError as error:
            self._failure = ("NotSupported", str(error))
            return
        statuses = (self.pod.get("status") or {}).get("containerStatuses") or []
        if any("running" in each["state"] for each in statuses):
            self._lose(statuses)
            return
        self._reporter.change()
        for container in spec.get("initContainers") or []:
            if await self._run_container(container, self._init_states) != 0:
                return
        await asyncio.gather(*(self._run_container(each, self._states) for each in spec["containers"]))

    def _lose(self, statuses: list[Json]) -> None:
        """Say of containers that an earlier kubelet started, and that are not here, what a real one says."""
        message = "The container could not be located when the pod was terminated"
        for status in statuses:
            self._states[status["name"]] = terminated(
                exit_code=137, reason="ContainerStatusUnknown", message=message
            )

    async def _run_container(self, spec: Json, states: dict[str, Json]) -> int | None:
        """Run one container; its exit code, or None where the pod's deletion came first."""
        name, attempt = spec["name"], 0
        while not self._deletion.is_set():
            try:
                launch = await prepare(
                    self.pod,
                    spec,
                    machine=self._machine,
                    folder=self._folder,
                    capacity=self._capacity,
                    pod_ip=self._pod_ip,
                    attempt=attempt,
                )
                container = await Container.start(launch, self._machine.guard)
            except NotYetError as error:
                self._set(states, name, waiting(error.reason, str(error)))
            except ClusterError as error:
                _logger.warning("Could not prepare a container", extra={"error": str(error)})
            except StartError as error:
                message = f"failed to create containerd task: failed to create shim task: {error}: unknown"
                self._set(states, name, terminated(exit_code=128, reason="StartError", message=message))
                return 128
            else:
                return await self._follow(spec, states, container)
            attempt += 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._machine.timing.retry_seconds):
                    await self._deletion.wait()
        return None

    async def _follow(self, spec: Json, states: dict[str, Json], container: Container) -> int:
        name = spec["name"]
        self._containers[name] = container
        self._machine.memory.watch(container, lambda: self._memory_limit(name))
        self._set(states, name, running(container.started))
        if self._ending is not None:
            self._restart_ending()  # the deletion came while the process was started
        await container.wait()
        await asyncio.sleep(self._machine.timing.termination_delay_seconds)
        ended = terminated(
            exit_code=container.exit_code,
            reason=container.reason,
            started=container.started,
            finished=container.finished,
            message=container.termination_message(),
            container_id=container.id,
        )
        self._set(states, name, ended)
        return container.exit_code

    def _memory_limit(self, name: str) -> int | None:
        """The limit as it is now: that of a running pod can be changed."""
        limit = (self._sizes.given[name].get("limits") or {}).get("memory")
        return None if limit is None else parse_memory(limit)

    def _end(self, grace_seconds: float) -> None:
        """Ask the containers to end, and kill them after the grace, which a later call can only shorten."""
        self._deletion.set()
        kill_at = asyncio.get_running_loop().time() + grace_seconds
        if kill_at < self._kill_at:
            self._kill_at = kill_at
            self._restart_ending()

    def _restart_ending(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.create_task(self._end_containers())

    async def _end_containers(self) -> None:
        for container in self._containers.values():
            container.signal_main(signal.SIGTERM)
        await asyncio.sleep(self._kill_at - asyncio.get_running_loop().time())
        self.signal(signal.SIGKILL)

    def _set(self, states: dict[str, Json], name: str, state: Json) -> None:
        states[name] = state
        self._reporter.change()

    def _status(self, written: Json) -> Json:
        facts = PodFacts(
            host_ip=HOST_IP,
            pod_ip=self._pod_ip,
            start_time=self._start_time,
            init_states=self._init_states,
            states=self._states,
            container_ids={name: container.id for name, container in self._containers.items()},
            sizes=self._sizes,
            failure=self._failure,
        )
        return build_status(self.pod, facts, written, datetime.now(UTC))
