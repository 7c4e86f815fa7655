"""The API server, as far as the operator needs it. The only module that imports the Kubernetes client.

Objects are JSON as the API server gives it, since a decision must see what a newer API server says too.
Every request is safe to repeat (names are deterministic, deletions name a UID, updates a resource version),
hence all of them are, for as long as the answer is "later".
"""

import json
import logging
import os
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_before_delay,
    wait_random_exponential,
)

from triage_contract.names import API_VERSION, MANAGER
from triage_operator import paths
from triage_operator.exceptions import (
    KubeConfigError,
    KubeConflictError,
    KubeExpiredError,
    KubeRefusedError,
    KubeUnavailableError,
)
from triage_operator.settings import KubeSettings
from triage_operator.throttling import Throttle

Object = Mapping[str, Any]
"""An object as JSON."""

Answered = Callable[[str, str, str, float], None]

PAGE: Final = "500"
"""Objects per page of a list, as kubectl asks for them."""

_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_LATER: Final = frozenset({429, 500, 502, 503, 504})
_BACKOFF: Final = wait_random_exponential(multiplier=0.1, max=2.0)

_logger = logging.getLogger(__name__)


class Kube:
    """A connection to the API server.

    Every method raises ``KubeUnavailableError`` where no answer came within the patience of the settings,
    ``KubeRefusedError`` where the answer was no, and ``KubeConflictError`` for a 409.
    """

    def __init__(self, configuration: Configuration, settings: KubeSettings) -> None:
        proxy = configuration.proxy or _proxy_for(str(configuration.host))
        self._proxy_headers: dict[str, str] = dict(configuration.proxy_headers or {})
        if proxy is not None:
            configuration.proxy, credentials = _split(proxy)
            self._proxy_headers |= credentials
            configuration.proxy_headers = self._proxy_headers
        # Else the environment, and the user's netrc file, are read anew for each request.
        configuration.client_session_kwargs = {"trust_env": False}
        self._configuration = configuration
        self._client = ApiClient(configuration)
        self._client.user_agent = MANAGER
        self._settings = settings
        self._throttle = Throttle(per_second=settings.requests_per_second, burst=settings.burst)
        self.answered: Answered = lambda *_: None
        """Called with each answer's method, resource, status (``none``: there was no answer) and seconds."""

    @classmethod
    @asynccontextmanager
    async def connect(cls, settings: KubeSettings) -> AsyncIterator[Self]:
        """Open a connection, by the settings' kubeconfig, else the service account, else the user's.

        Raises:
            KubeConfigError: none of them is there, or it cannot be read.
        """
        kube = cls(await _load(settings), settings)
        try:
            yield kube
        finally:
            await kube._client.close()  # type: ignore[no-untyped-call]

    @property
    def server(self) -> str:
        """URL of the API server."""
        return str(self._configuration.host)

    def session(self, *middlewares: aiohttp.ClientMiddlewareType) -> aiohttp.ClientSession:
        """Make an HTTP session with the connection's TLS and credentials, for another client."""

        async def authorize(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            # Asked for at each request, as a service account's token is replaced about once an hour.
            token = await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
            if token:
                request.headers["Authorization"] = token
            # A session has no such headers of its own.
            request.update_proxy(request.proxy, None, self._proxy_headers)
            return await handler(request)

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._client.rest_client.ssl_context),
            proxy=self._configuration.proxy,
            middlewares=(*middlewares, authorize),
        )

    async def cluster_id(self) -> str:
        """Give what tells this cluster from others: the UID of its ``kube-system`` namespace."""
        namespace = await self._get("/api/v1/namespaces/kube-system")
        if namespace is None:
            raise KubeRefusedError("there is no namespace kube-system: set a cluster id")
        return str(namespace["metadata"]["uid"])

    async def served_resources(self) -> frozenset[str]:
        """Give the plural names of our resources that are served; none where the CRDs are missing."""
        found = await self._get(f"/apis/{API_VERSION}")
        return frozenset(item["name"] for item in (found or {}).get("resources", ()))

    async def allowed(
        self, verb: str, group: str, resource: str, namespace: str | None, *, name: str = ""
    ) -> bool:
        """Say whether this client may do something.

        ``resource`` may name a subresource (``pods/status``). Namespace None: in all of them. No name: with
        objects of any name.
        """
        plural, _, subresource = resource.partition("/")
        attributes = {
            "verb": verb,
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "name": name,
        }
        if namespace is not None:
            attributes["namespace"] = namespace
        review = await self._request(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            body={
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            },
        )
        # An API server without authorization refuses nobody.
        return review is None or bool(review.get("status", {}).get("allowed"))

    async def get_run(self, namespace: str, name: str) -> Object | None:
        """Read a TriageRun; None: there is none."""
        return await self._get(paths.ours(namespace, "triageruns", name))

    async def get_agent(self, namespace: str, name: str) -> Object | None:
        """Read a TriageAgent; None: there is none."""
        return await self._get(paths.ours(namespace, "triageagents", name))

    async def get_pod(self, namespace: str, name: str) -> Object | None:
        """Read a pod; None: there is none."""
        return await self._get(paths.core(namespace, "pods", name))

    def list_runs(self, namespace: str | None) -> AsyncIterator[Object]:
        """List the TriageRuns of a namespace, or of all (None), page by page."""
        return self._list(paths.ours(namespace, "triageruns"))

    def list_agents(self, namespace: str | None) -> AsyncIterator[Object]:
        """List the TriageAgents of a namespace, or of all (None), page by page."""
        return self._list(paths.ours(namespace, "triageagents"))

    async def find_node(self, name: str) -> Object | None:
        """Find a node by its name, with the right to list them; None: there is none."""
        nodes = self._list(paths.core(None, "nodes"), fieldSelector=f"metadata.name={name}")
        return await anext(nodes, None)

    def list_pods(self, namespace: str | None, *, label_selector: str) -> AsyncIterator[Object]:
        """List pods of a namespace, or of all (None), page by page."""
        return self._list(paths.core(namespace, "pods"), labelSelector=label_selector)

    async def create_pod(self, namespace: str, pod: Object) -> Object:
        """Create a pod, and give it as it is stored."""
        return await self._require("POST", paths.core(namespace, "pods"), body=pod)

    async def resize_pod(self, pod: Object, patch: Object) -> None:
        """Patch the resources of a running pod. One that is gone is refused as one that cannot be resized."""
        metadata = pod["metadata"]
        path = f"{paths.core(metadata['namespace'], 'pods', metadata['name'])}/resize"
        if await self._request("PATCH", path, body=patch, content_type=_STRATEGIC) is None:
            raise KubeRefusedError(f"PATCH {path}: not found")

    async def delete_pod(self, namespace: str, name: str, *, uid: str) -> None:
        """Delete a pod if it still has that UID. One that is gone already, or was replaced, is fine."""
        await self._delete(paths.core(namespace, "pods", name), uid)

    async def delete_run(self, namespace: str, name: str, *, uid: str) -> None:
        """Delete a TriageRun, and what it owns in the background, if it still has that UID."""
        await self._delete(paths.ours(namespace, "triageruns", name), uid)

    async def write_run_status(self, run: Object) -> Object:
        """Replace the status of a TriageRun as it was read; a run changed since is a conflict."""
        return await self._write_status("triageruns", run)

    async def write_agent_status(self, agent: Object) -> Object:
        """Replace the status of a TriageAgent as it was read; an agent changed since is a conflict."""
        return await self._write_status("triageagents", agent)

    async def create_event(self, namespace: str, event: Object) -> None:
        """Record an Event."""
        await self._require("POST", paths.core(namespace, "events"), body=event)

    async def get_lease(self, namespace: str, name: str) -> Object | None:
        """Read a Lease; None: there is none."""
        return await self._get(paths.lease(namespace, name))

    async def create_lease(self, namespace: str, lease: Object) -> Object:
        """Create a Lease."""
        return await self._require("POST", paths.lease(namespace), body=lease)

    async def replace_lease(self, namespace: str, name: str, lease: Object) -> Object:
        """Replace a Lease as it was read; one changed since is a conflict."""
        return await self._require("PUT", paths.lease(namespace, name), body=lease)

    async def _write_status(self, plural: str, thing: Object) -> Object:
        path = paths.ours(thing["metadata"]["namespace"], plural, thing["metadata"]["name"])
        return await self._require("PUT", f"{path}/status", body=thing)

    async def _get(self, path: str) -> Object | None:
        return await self._request("GET", path)

    async def _require(self, method: str, path: str, *, body: Object) -> Object:
        answer = await self._request(method, path, body=body)
        if answer is None:
            raise KubeConflictError(f"{method} {path}: gone")
        return answer

    async def _delete(self, path: str, uid: str) -> None:
        body = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self._request("DELETE", path, body=body)
        except KubeConflictError:
            # Another object has the name by now: the one that was meant is gone.
            _logger.debug("the object to delete was replaced", extra={"action": "delete", "path": path})

    async def _list(self, path: str, **query: str) -> AsyncIterator[Object]:
        following = ""
        while True:
            page = await self._request("GET", path, query={**query, "limit": PAGE, "continue": following})
            for item in (page or {}).get("items", ()):
                yield item
            following = (page or {}).get("metadata", {}).get("continue") or ""
            if not following:
                return

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object | None:
        """Ask until there is an answer. None: 404."""
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(KubeUnavailableError),
            wait=_delay,
            stop=stop_before_delay(self._settings.patience_seconds),
            reraise=True,
        ):
            with attempt:
                return await self._ask(method, path, query=query or {}, body=body, content_type=content_type)
        raise AssertionError  # the loop above returns or raises

    async def _ask(
        self, method: str, path: str, *, query: Mapping[str, str], body: Object | None, content_type: str
    ) -> Object | None:
        await self._throttle.take()
        given = urlencode({key: value for key, value in query.items() if value})
        headers: dict[str, str] = {"Accept": "application/json", "Content-Type": content_type}
        headers.update(self._client.default_headers)
        asked_at, status = time.perf_counter(), "none"
        try:
            await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            response = await self._client.call_api(
                method,
                f"{self.server}{path}{'?' if given else ''}{given}",
                headers,
                body,
                _request_timeout=aiohttp.ClientTimeout(total=self._settings.request_timeout_seconds),
            )
            text: bytes = await response.read()  # type: ignore[no-untyped-call]
            status = str(response.status)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeUnavailableError(f"{method} {path}: {error or type(error).__name__}") from error
        finally:
            self.answered(method, paths.resource_of(path), status, time.perf_counter() - asked_at)
        return _answer(f"{method} {path}", response.status, response.headers, text)


def _answer(what: str, status: int, headers: Mapping[str, str], text: bytes) -> Object | None:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {}
    if 200 <= status < 300:
        return dict(answer)
    if status == 404:
        return None
    message = f"{what}: {answer.get('message') or f'HTTP {status}'}"
    if status in _LATER:
        raise KubeUnavailableError(message, retry_after_seconds=_retry_after(headers, answer))
    if status == 409:
        raise KubeConflictError(message)
    if status == 410:
        raise KubeExpiredError(message)
    raise KubeRefusedError(message)


def _retry_after(headers: Mapping[str, str], answer: Object) -> float | None:
    asked = headers.get("Retry-After") or (answer.get("details") or {}).get("retryAfterSeconds")
    try:
        return None if asked is None else float(asked)
    except ValueError:
        # The header may hold a date as well; API servers send seconds.
        return None


def _delay(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after_seconds if isinstance(error, KubeUnavailableError) else None
    return asked if asked is not None else _BACKOFF(state)


async def _load(settings: KubeSettings) -> Configuration:
    _check_file(settings)
    configuration = Configuration()
    in_cluster = settings.config is None and "KUBERNETES_SERVICE_HOST" in os.environ
    try:
        if in_cluster:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=settings.config, context=settings.context, client_configuration=configuration
            )
    except (ConfigException, OSError, ValueError) as error:
        raise KubeConfigError(f"no way to the API server: {error}") from error
    return configuration


def _check_file(settings: KubeSettings) -> None:
    """See that a named kubeconfig is there: the client takes a missing file for an empty one."""
    named = os.environ.get("KUBECONFIG", "") if settings.config is None else settings.config
    if named and not any(Path(path).is_file() for path in named.split(os.pathsep)):
        raise KubeConfigError(f"no kubeconfig at {named}")


def _proxy_for(url: str) -> str | None:
    """Give the proxy that the environment names for a URL; None: none."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


def _split(proxy: str) -> tuple[str, dict[str, str]]:
    """Turn user and password in a proxy's URL into a header: errors and logs show the URL."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return proxy, {}
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return bare, {"Proxy-Authorization": f"Basic {b64encode(credentials.encode()).decode()}"}


def own_namespace() -> str | None:
    """Give the namespace of the pod that this process runs in; None: it runs in no pod."""
    try:
        return _SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        return None
