"""Lists of objects: selected, cut into pages, in the state of one version."""

from triage_local.apiserver.exceptions import ExpiredError, ExpiredPageError, TimedOutError
from triage_local.apiserver.objects import Json, name_of, namespace_of
from triage_local.apiserver.options import ListOptions, Page
from triage_local.apiserver.resources import Resource
from triage_local.apiserver.store import Store


def listed(
    store: Store, resource: Resource, namespace: str | None, options: ListOptions
) -> tuple[list[Json], Json]:
    """The stored objects of a list, and the list's metadata.

    All pages of a list show the version of its first. Raises ExpiredError when that is forgotten,
    TimedOutError when the client asks for a version that is still to come.
    """
    version = store.version
    if options.version is not None and options.version > version:
        raise TimedOutError(
            f"Timeout: Too large resource version: {options.version}, current: {version}",
            retry_after_seconds=1,
            details={
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            },
        )
    at: int | None = None
    if options.page is not None:
        if options.page.version is not None:
            at = version = options.page.version
    elif options.exact and options.version:
        at = version = options.version
    try:
        objects = store.objects(resource.table, namespace=namespace, at=at)
    except ExpiredError as error:
        if options.page is None:
            raise
        raise ExpiredPageError(Page(version=None, last=options.page.last).token()) from error
    rest = [obj for obj in objects if options.selected(obj)]
    if options.page is not None:
        rest = [obj for obj in rest if (namespace_of(obj), name_of(obj)) > options.page.last]
    metadata: Json = {"resourceVersion": str(version)}
    shown = rest[: options.limit] if options.limit else rest
    if len(shown) < len(rest):
        last = (namespace_of(shown[-1]), name_of(shown[-1]))
        metadata["continue"] = Page(version=version, last=last).token()
        if not options.selective:
            metadata["remainingItemCount"] = len(rest) - len(shown)
    return shown, metadata
