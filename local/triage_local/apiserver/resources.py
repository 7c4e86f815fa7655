"""One resource of the API, and the set of those that are served."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from triage_local.apiserver.columns import NAME_AND_AGE, Column
from triage_local.apiserver.objects import Json
from triage_local.apiserver.store import Table
from triage_local.apiserver.strategies.base import Strategy

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""What can be done with an ordinary resource."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One version of one resource. ``fields`` are selectable; each has the text that stands for absence."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    strategy: Strategy = field(default_factory=Strategy)
    columns: tuple[Column, ...] = NAME_AND_AGE
    verbs: tuple[str, ...] = VERBS
    subresources: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    singular: str = ""
    storage_group: str | None = None
    """The group under which its objects are stored, where another group shares them; None: its own."""
    schema: Json | None = None
    """OpenAPI schema of a custom resource; None: the resource is built in."""
    external: Callable[[Json], Json] | None = None
    """Turns a stored object into this version's shape; None: the stored shape is this version's."""
    internal: Callable[[Json], Json] | None = None
    """Turns an object of this version's shape into the stored one; None: as above."""

    @property
    def table(self) -> Table:
        """Where its objects are stored."""
        return (self.group if self.storage_group is None else self.storage_group, self.plural)

    @property
    def api_version(self) -> str:
        """``group/version``, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """Kind of a list of its objects."""
        return f"{self.kind}List"

    @property
    def custom(self) -> bool:
        """Whether a definition made it."""
        return self.schema is not None

    def shown(self, obj: Json) -> Json:
        """A stored object as this version shows it."""
        shaped = self.external(obj) if self.external else obj
        return {"apiVersion": self.api_version, "kind": self.kind, **shaped}

    def taken(self, obj: Json) -> Json:
        """An object of this version as it is stored: without kind and version, which the reader chooses."""
        bare = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
        return self.internal(bare) if self.internal else bare


class Catalogue:
    """The resources that are served, by group, version and plural."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._resources = {(r.group, r.version, r.plural): r for r in resources}

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._resources.values()))

    def get(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource, or None."""
        return self._resources.get((group, version, plural))

    def of_table(self, table: Table) -> list[Resource]:
        """The served versions of a resource."""
        return [r for r in self._resources.values() if r.table == table]

    def first(self, table: Table) -> Resource | None:
        """One served version of a resource, or None."""
        found = self.of_table(table)
        return found[0] if found else None

    def replace(self, group: str, plural: str, resources: Iterable[Resource]) -> None:
        """Serve these versions of a resource instead of those before; none: serve it no more."""
        for old in self.of_table((group, plural)):
            del self._resources[old.group, old.version, old.plural]
        self._resources |= {(r.group, r.version, r.plural): r for r in resources}
