"""Custom resources: pruned, defaulted and validated by the schema of their definition."""

from typing import Final

from triage_local.apiserver import cel_rules, schemas
from triage_local.apiserver.field_errors import FieldError
from triage_local.apiserver.objects import Json
from triage_local.apiserver.strategies.base import Strategy

_NOT_CHECKED: Final = FieldError(
    path="<nil>",
    reason="FieldValueInvalid",
    message="Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
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
        """The object pruned, with defaults."""
        value, unknown = schemas.pruned(self._schema, obj)
        return schemas.defaulted(self._schema, value), unknown

    def created(self, obj: Json) -> Json:
        """Without a status, where that is written through its subresource only."""
        return {key: value for key, value in obj.items() if not (self.has_status and key == "status")}

    def errors(self, new: Json, old: Json | None) -> list[FieldError]:
        """What breaks the schema, else which rules are broken."""
        found = [*schemas.errors_of(self._checker, new), *schemas.duplicates_of(self._schema, new)]
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
