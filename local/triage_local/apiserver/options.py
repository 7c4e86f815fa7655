"""What a request asks for: its path, its query and its body, read into values."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from triage_local.apiserver.deleting import DeleteOptions
from triage_local.apiserver.exceptions import BadRequestError, NotFoundError
from triage_local.apiserver.objects import Json
from triage_local.apiserver.resources import Catalogue, Resource
from triage_local.apiserver.selectors import Predicate, all_of, field_selector, label_selector
from triage_local.apiserver.store import Key
from triage_local.apiserver.writing import WriteOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a path names. ``namespace`` None: all, or a cluster-scoped resource. Empty ``name``: the list."""

    resource: Resource
    namespace: str | None
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        """Where the object is stored."""
        return (self.namespace or "", self.name)


def target(path: str, catalogue: Catalogue) -> Target:
    """The target of ``/api/v1/…`` or ``/apis/<group>/<version>/…``; NotFoundError if it is none."""
    steps = path.strip("/").split("/")
    group, version, rest = ("", steps[1], steps[2:]) if steps[0] == "api" else (steps[1], steps[2], steps[3:])
    namespace = None
    # `namespaces/<name>/<word>` names a resource in a namespace, except for the namespace's own subresources.
    if (
        rest[0] == "namespaces"
        and len(rest) > 2
        and not (len(rest) == 3 and rest[2] in ("status", "finalize"))
    ):
        namespace, rest = rest[1], rest[2:]
    resource = catalogue.get(group, version, rest[0])
    name, subresource = [*rest[1:], "", ""][:2]
    scoped_wrongly = resource is not None and (
        (namespace is not None and not resource.namespaced)
        or (namespace is None and name and resource.namespaced)
    )
    known = resource is not None and (not subresource or subresource in resource.subresources)
    if resource is None or scoped_wrongly or not known or len(rest) > 3:
        raise NotFoundError("the server could not find the requested resource")
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where a list goes on: after ``last``, in the state of ``version``; None: as it then is."""

    version: int | None
    last: Key

    def token(self) -> str:
        """The page as the opaque text that clients hand back."""
        return base64.urlsafe_b64encode(json.dumps([self.version, *self.last]).encode()).decode()

    @classmethod
    def of_token(cls, token: str) -> Self:
        """The page of a token; BadRequestError if it is none."""
        try:
            version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        except ValueError as error:
            raise BadRequestError("continue key is not valid") from error
        return cls(version=version, last=(namespace, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Query of a list or a watch. ``limit`` 0: all of it; ``version`` None: the client named none."""

    selected: Predicate
    selective: bool
    limit: int
    page: Page | None
    version: int | None
    exact: bool
    watch: bool
    timeout_seconds: float | None
    bookmarks: bool
    initial_events: bool


def list_options(query: Mapping[str, str], resource: Resource, name: str = "") -> ListOptions:
    """The options of a query; BadRequestError for what is none. ``name``: only this object."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    predicates = [label_selector(labels), field_selector(fields, fields=resource.fields)]
    if name:
        predicates.append(field_selector(f"metadata.name={name}", fields={}))
    token = query.get("continue")
    timeout = _number(query, "timeoutSeconds")
    return ListOptions(
        selected=all_of(*predicates),
        selective=bool(labels or fields),
        limit=_number(query, "limit") or 0,
        page=Page.of_token(token) if token else None,
        version=_number(query, "resourceVersion"),
        exact=query.get("resourceVersionMatch") == "Exact",
        watch=_truth(query, "watch"),
        timeout_seconds=float(timeout) if timeout else None,
        bookmarks=_truth(query, "allowWatchBookmarks"),
        initial_events=_truth(query, "sendInitialEvents"),
    )


def write_options(query: Mapping[str, str]) -> WriteOptions:
    """The options of a create, an update or a patch."""
    return WriteOptions(
        dry_run="dryRun" in query,
        field_validation=query.get("fieldValidation") or "Warn",
        manager=query.get("fieldManager", ""),
    )


def delete_options(query: Mapping[str, str], body: Json) -> DeleteOptions:
    """The options of a deletion: the body's, else the query's."""
    asked: dict[str, Any] = {**query, **{key: value for key, value in body.items() if value is not None}}
    preconditions = asked.get("preconditions") or {}
    grace = asked.get("gracePeriodSeconds")
    try:
        grace_seconds = None if grace is None else int(grace)
    except ValueError as error:
        raise BadRequestError(f"gracePeriodSeconds is no number: {grace!r}") from error
    return DeleteOptions(
        grace_seconds=grace_seconds,
        propagation=asked.get("propagationPolicy"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=bool(asked.get("dryRun")),
    )


def _number(query: Mapping[str, str], field: str) -> int | None:
    text = query.get(field, "")
    if not text:
        return None
    if not text.isdecimal():
        raise BadRequestError(f"{field} is no number: {text!r}")
    return int(text)


def _truth(query: Mapping[str, str], field: str) -> bool:
    return query.get(field, "").lower() in ("true", "1")
