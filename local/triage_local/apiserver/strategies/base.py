"""The behaviour that resources share; a resource with ways of its own overrides parts of it."""

from triage_local.apiserver.field_errors import FieldError
from triage_local.apiserver.naming import metadata_errors
from triage_local.apiserver.objects import Json, without_empty_metadata, without_nulls
from triage_local.apiserver.schemas import pruned
from triage_local.apiserver.typed_schemas import check_types, schema_of


class Strategy:
    """How objects of a resource are prepared and checked. Every method is pure."""

    unconditional_update = True
    """Whether a PUT may leave out the resource version."""
    transient = False
    """Whether an object is answered when it is created, and never stored."""
    label_name = False
    """Whether names are DNS labels, where others are DNS subdomains."""
    graceful = False
    """Whether an object can stay for a while after its deletion, so that a deletion is answered with the object."""

    def __init__(
        self, *, model: str | None = None, has_status: bool = False, has_generation: bool = False
    ) -> None:
        self._model = model
        """Name of the official client's model of the type; None: fields and their types are not checked by one."""
        self.has_status = has_status
        """Whether the status of an existing object is written through its own subresource alone."""
        self.has_generation = has_generation
        """Whether ``metadata.generation`` counts the changes of everything but metadata and status."""

    def decoded(self, obj: Json) -> tuple[Json, list[str]]:
        """The object as the resource's type can hold it, and the paths of the fields that it cannot hold.

        Raises MisfitError for a field whose value is of another type.
        """
        value: Json = without_nulls(obj)
        if self._model is None:
            return value, []
        schema = schema_of(self._model)
        check_types(schema, value)
        typed, unknown = pruned(schema, value, root=False)
        return without_empty_metadata(typed), unknown

    def created(self, obj: Json) -> Json:
        """The new object with its defaults and its first status."""
        return obj

    def updated(self, new: Json, old: Json) -> Json:
        """The changed object with its defaults; the status is already the right one."""
        return new

    def resized(self, new: Json, old: Json) -> Json:
        """The changed object as the subresource ``resize`` takes it, for those that have one."""
        return old

    def resize_errors(self, new: Json, old: Json) -> list[FieldError]:
        """What is wrong with an object that is being resized."""
        return []

    def errors(self, new: Json, old: Json | None) -> list[FieldError]:
        """What is wrong with the object; ``old`` is None when it is being created."""
        return metadata_errors(new, label_name=self.label_name)

    def status_errors(self, new: Json, old: Json) -> list[FieldError]:
        """What is wrong with an object whose status is being written."""
        return []

    def held(self, obj: Json) -> bool:
        """Whether something beside the object's finalizers keeps it from going."""
        return False

    def terminating(self, obj: Json) -> Json:
        """The object when its deletion has begun."""
        return obj

    def grace_seconds(self, obj: Json, asked: int | None) -> int:
        """How long the object stays after a deletion; ``asked`` is the client's wish, None: no wish."""
        return 0


def taking_status_from(source: Json, target: Json) -> Json:
    """The target with the status of the source, none if the source has none."""
    taken = {key: value for key, value in target.items() if key != "status"}
    return {**taken, "status": source["status"]} if "status" in source else taken
