"""What every model of the API is made of: the base model, rules, references and quantities.

The models are the source of the custom resource definitions, so each field's docstring is its description
there, and what only an API server knows (list types) is said in ``json_schema_extra``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from triage_contract.quantities import MAX_LENGTH, QUANTITY_PATTERN, parse_quantity

ATOMIC: Final[dict[str, Any]] = {"x-kubernetes-map-type": "atomic"}
"""Marks an object that is replaced as a whole, never merged field by field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What the schema's own words cannot say of a value; used as an annotation of the value's type.

    An API server checks ``cel`` and answers with ``message``. Reading an object checks ``holds``; None: the
    rule compares with the value before, which a reader does not know.
    """

    cel: str
    message: str
    holds: Callable[[Any], object] | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check the value after its type."""
        return no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add the rule to those of the value."""
        schema = handler(core)
        stated = schema.get("x-kubernetes-validations", [])
        return {**schema, "x-kubernetes-validations": [*stated, {"rule": self.cel, "message": self.message}]}

    def _check(self, value: Any) -> Any:
        if self.holds is not None and not self.holds(value):
            raise ValueError(self.message)
        return value


def immutable(field: str, remedy: str) -> Rule:
    """Return the rule that a field, which is never absent, keeps its first value."""
    return Rule(cel="self == oldSelf", message=f"{field} is immutable: {remedy}")


def matching(pattern: str, message: str) -> Rule:
    """Return the rule that a text has a match of a pattern.

    For people a message says more than the pattern that the schema's own ``pattern`` would show them.
    """
    return Rule(
        cel=f"self.matches(r'{pattern}')", message=message, holds=re.compile(pattern, re.ASCII).search
    )


def one_of(union: type["ApiModel"]) -> Rule:
    """Return the rule that exactly one field of a union is set, as Kubernetes writes unions.

    A field that holds a union has no default: it would be set beside the member that ``kubectl apply`` merges
    in.
    """
    members = {name: to_camel(name) for name in union.model_fields}
    flags = ", ".join(f"has(self.{member})" for member in members.values())
    return Rule(
        cel=f"[{flags}].exists_one(it, it)",
        message=f"set exactly one of {', '.join(members.values())}",
        holds=lambda value: sum(getattr(value, name) is not None for name in members) == 1,
    )


class ApiModel(BaseModel):
    """A part of an object as the API server stores it.

    Unknown fields are dropped, since a newer schema may have more. Types are strict: ``"3"`` is no integer.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="ignore",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
    )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that the API server takes; what is None is left out."""
        return self.model_dump(mode="json", exclude_none=True)


def cut_to(length: int) -> BeforeValidator:
    """Return an annotation that cuts a text to a length, for what the operator reports of others' words."""
    return BeforeValidator(lambda value: value[:length] if isinstance(value, str) else value)


def _quantity_text(value: object) -> object:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str):
        parse_quantity(text)
    return text


Quantity = Annotated[
    str,
    BeforeValidator(_quantity_text),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY_PATTERN,
            "maxLength": MAX_LENGTH,
        }
    ),
]
"""A Kubernetes quantity as text; an integer is taken as well."""

ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
"""Name of a Kubernetes object (RFC 1123 subdomain)."""

AbsolutePath = Annotated[
    str, Field(max_length=4096), matching(r"^/[^\x00]*$", "the path must be absolute and hold no NUL")
]
"""A path inside the agent's container."""


class SecretKeyRef(ApiModel):
    """One key of a Secret in the same namespace."""

    model_config = ConfigDict(json_schema_extra=ATOMIC)

    name: ObjectName
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
    """Key in the Secret's data."""
