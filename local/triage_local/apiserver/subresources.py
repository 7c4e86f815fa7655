"""Subresources of pods and namespaces that are not the object itself: binding, eviction, log, finalize."""

from dataclasses import replace
from http import HTTPStatus

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from triage_local.apiserver.bodies import read_object
from triage_local.apiserver.deleting import check_preconditions
from triage_local.apiserver.exceptions import ApiError, BadRequestError, MethodNotAllowedError, conflict
from triage_local.apiserver.objects import Json, metadata, name_of, timestamp
from triage_local.apiserver.options import Target, delete_options
from triage_local.apiserver.rendering import one, success
from triage_local.apiserver.store import Store
from triage_local.apiserver.writing import Writer


class Subresources:
    """Answers requests to these subresources."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    async def answer(self, target: Target, request: web.Request) -> web.StreamResponse | None:
        """The answer; None: the request is to the object, or to a part of it."""
        match request.method, target.subresource:
            case "POST", "eviction":
                return self._evict(target, await read_object(request, "V1Eviction"))
            case "POST", "binding":
                return self._bind(target, await read_object(request, "V1Binding"))
            case "PUT", "finalize":
                return self._finalize(target, request, await read_object(request, "V1Namespace"))
            case "GET", "log":
                return await self._log(target, request)
            case _, "" | "status" | "resize":
                return None
        raise MethodNotAllowedError("the server does not allow this method on the requested resource")

    def _evict(self, target: Target, eviction: Json) -> web.Response:
        asked = delete_options({}, eviction.get("deleteOptions") or {})
        pod = self._writer.read(target.resource, target.key)
        check_preconditions(target.resource, pod, asked)
        disrupted = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": timestamp(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        if not asked.dry_run:
            self._writer.store(target.resource, _with_condition(pod, disrupted))
        # That write made a version of its own.
        self._writer.delete(target.resource, target.key, replace(asked, resource_version=None))
        return success(status=201)

    def _bind(self, target: Target, binding: Json) -> web.Response:
        pod = self._writer.read(target.resource, target.key)
        node = (binding.get("target") or {}).get("name")
        if not node:
            raise BadRequestError("target.name: Required value")
        if metadata(pod).get("deletionTimestamp"):
            why = f"pod {target.name} is being deleted, cannot be assigned to a host"
            raise conflict("", "pods/binding", target.name, why)
        if pod["spec"].get("nodeName"):
            why = f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            raise conflict("", "pods/binding", target.name, why)
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp()}
        bound = _with_condition({**pod, "spec": {**pod["spec"], "nodeName": node}}, scheduled)
        self._writer.store(target.resource, bound)
        return success(status=201)

    def _finalize(self, target: Target, request: web.Request, sent: Json) -> web.Response:
        namespace = self._writer.read(target.resource, target.key)
        spec = {**namespace["spec"], "finalizers": (sent.get("spec") or {}).get("finalizers") or []}
        stored = self._writer.store(target.resource, {**namespace, "spec": spec})
        return one(target.resource, stored, request)

    async def _log(self, target: Target, request: web.Request) -> web.StreamResponse:
        pod = self._writer.read(target.resource, target.key)
        container = request.query.get("container") or pod["spec"]["containers"][0]["name"]
        if not pod["spec"].get("nodeName"):
            return web.Response(status=HTTPStatus.NO_CONTENT)
        node = self._store.get(("", "nodes"), ("", pod["spec"]["nodeName"]))
        if node is None:
            raise BadRequestError(
                f'container "{container}" in pod "{target.name}" is not running on any node'
            )
        url = f"{_kubelet_url(node)}/containerLogs/{target.namespace}/{target.name}/{container}"
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        # A log that is followed lasts as long as its container.
        async with ClientSession(timeout=ClientTimeout(total=None)) as session:
            try:
                answer = await session.get(url, params=request.query)
            except ClientError as error:
                raise ApiError(f"the kubelet of node {name_of(node)} does not answer") from error
            async with answer:
                if answer.status != 200:
                    raise BadRequestError((await answer.text()).strip())
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
        return response


def _kubelet_url(node: Json) -> str:
    """Where the node's kubelet serves logs: at the port that its status names, in plain HTTP."""
    status = node.get("status") or {}
    addresses = {entry["type"]: entry["address"] for entry in status.get("addresses") or []}
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
    if not port or "InternalIP" not in addresses:
        raise ApiError(f"node {name_of(node)} has no kubelet endpoint")
    return f"http://{addresses['InternalIP']}:{port}"


def _with_condition(pod: Json, condition: Json) -> Json:
    status = pod.get("status") or {}
    others = [entry for entry in status.get("conditions") or [] if entry["type"] != condition["type"]]
    return {**pod, "status": {**status, "conditions": [*others, condition]}}
