"""Subresources of pods and namespaces that are not the object itself: binding, eviction, log, finalize."""

from aiohttp import ClientError, ClientSession, web

from triage_local.apiserver.bodies import read_object
from triage_local.apiserver.exceptions import ApiError, BadRequestError, MethodNotAllowedError, conflict
from triage_local.apiserver.objects import Json, metadata, timestamp
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
        """The answer; None: the request is to the object or its status."""
        match request.method, target.subresource:
            case "POST", "eviction":
                return self._evict(target, await read_object(request))
            case "POST", "binding":
                return self._bind(target, await read_object(request))
            case "PUT", "finalize":
                return self._finalize(target, request, await read_object(request))
            case "GET", "log":
                return await self._log(target, request)
            case _, "" | "status":
                return None
        raise MethodNotAllowedError("the server does not allow this method on the requested resource")

    def _evict(self, target: Target, eviction: Json) -> web.Response:
        asked = delete_options({}, eviction.get("deleteOptions") or {})
        pod = self._writer.read(target.resource, target.key)
        disrupted = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": timestamp(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        if asked.uid and asked.uid != metadata(pod)["uid"]:
            found = metadata(pod)["uid"]
            why = f"Precondition failed: UID in precondition: {asked.uid}, UID in object meta: {found}"
            raise conflict("", "pods", target.name, why)
        if not asked.dry_run:
            self._writer.store(target.resource, _with_condition(pod, disrupted))
        self._writer.delete(target.resource, target.key, asked)
        return success(status=201)

    def _bind(self, target: Target, binding: Json) -> web.Response:
        pod = self._writer.read(target.resource, target.key)
        node = (binding.get("target") or {}).get("name")
        if not node:
            raise BadRequestError("target.name: Required value")
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
        node = self._store.get(("", "nodes"), ("", pod["spec"].get("nodeName", "")))
        if node is None:
            raise BadRequestError(
                f'container "{container}" in pod "{target.name}" is not running on any node'
            )
        url = f"{_kubelet_url(node)}/containerLogs/{target.namespace}/{target.name}/{container}"
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        try:
            async with ClientSession() as session, session.get(url, params=request.query) as answer:
                if answer.status != 200:
                    raise BadRequestError((await answer.text()).strip())
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
        except ClientError as error:
            raise ApiError(f"the kubelet of node {node['metadata']['name']} does not answer") from error
        return response


def _kubelet_url(node: Json) -> str:
    """Where the node's kubelet serves logs: at the port that its status names, in plain HTTP."""
    status = node.get("status") or {}
    addresses = {entry["type"]: entry["address"] for entry in status.get("addresses") or []}
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
    if not port or "InternalIP" not in addresses:
        raise ApiError(f"node {node['metadata']['name']} has no kubelet endpoint")
    return f"http://{addresses['InternalIP']}:{port}"


def _with_condition(pod: Json, condition: Json) -> Json:
    status = pod.get("status") or {}
    others = [entry for entry in status.get("conditions") or [] if entry["type"] != condition["type"]]
    return {**pod, "status": {**status, "conditions": [*others, condition]}}
