"""Custom resources: pruned, defaulted and validated by the schema of their definition."""

from typing import Final

from triage_local.apiserver import cel_rules, schemas
from triage_local.apiserver.field_errors import FieldError
from triage_local.apiserver.objects import Json, metadata, without_empty_metadata, without_nulls
from triage_local.apiserver.strategies.base import Strategy
from triage_local.apiserver.typed_schemas import check_types, schema_of

_NOT_CHECKED: Final = FieldError(
    path="<nil>",
    reason="FieldValueInvalid",
    message="Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_METADATA_MODEL: Final = "V1ObjectMeta"
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
"""Reasons after which CEL rules are not evaluated."""


class CustomStrategy(Strategy):
    """Objects of one version of a definition."""

    unconditional_update = False

    def __init__(self, schema: Json, *, has_status: bool) -> None:
        super().__init__(has_status=has_status, has_generation=True)
        self._schema = schema
        self._checker = schemas.validator(schema)
        self._rules = cel_rules.compiled(schema)

    def decoded(self, obj: Json) -> tuple[Json, list[str]]:
        """The object pruned, with defaults. Raises MisfitError for metadata of another type."""
        bare = {**obj, "metadata": without_nulls(metadata(obj))}
        check_types(schema_of(_METADATA_MODEL), bare["metadata"], "ObjectMeta")
        value, unknown = schemas.pruned(self._schema, bare)
        meta, unknown_meta = schemas.pruned(
            schema_of(_METADATA_MODEL), bare["metadata"], path="metadata", root=False
        )
        known = without_empty_metadata({**value, "metadata": meta})
        return schemas.defaulted(self._schema, known), unknown + unknown_meta

    def created(self, obj: Json) -> Json:
        """Without a status, where that is written through its subresource only."""
        return {key: value for key, value in obj.items() if not (self.has_status and key == "status")}

    def errors(self, new: Json, old: Json | None) -> list[FieldError]:
        """What breaks the schema, else which rules are broken."""
        found = super().errors(new, old)
        found += [*schemas.errors_of(self._checker, new), *schemas.duplicates_of(self._schema, new)]
        if self._rules.empty:
            return found
        if any(error.reason in _BLOCKING for error in found):
            return [*found, _NOT_CHECKED]
        broken = (
            cel_rules.broken(self._rules, new) if old is None else cel_rules.broken(self._rules, new, old)
        )
        return [*found, *broken]

    def status_errors(self, new: Json, old: Json) -> list[FieldError]:
        """The same rules: a status is part of the object."""
        return self.errors(new, old)
