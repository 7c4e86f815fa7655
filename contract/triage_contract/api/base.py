"""What every model of the API is made of: the base model, unions, references and quantities.

The models are the source of the custom resource definitions, so each field's docstring is its description
there, and what only an API server knows (list types, CEL rules) is said in ``json_schema_extra``.
"""

from typing import Annotated, Any, Final, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from triage_contract.quantities import MAX_LENGTH, QUANTITY_PATTERN, parse_quantity

ATOMIC: Final[dict[str, Any]] = {"x-kubernetes-map-type": "atomic"}
"""Marks an object that is replaced as a whole, never merged field by field."""


def rules(*pairs: tuple[str, str]) -> dict[str, Any]:
    """Return the schema extension for CEL rules, each a pair of the rule and the message of its violation."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]}


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


class OneOf(ApiModel):
    """A union as Kubernetes writes it: exactly one of the fields is set.

    A field that holds a union has no default in the schema: a default beside another member, which ``kubectl
    apply`` merges into the stored object, would set two.
    """

    @classmethod
    def message(cls) -> str:
        """Return what a violation is told."""
        return f"set exactly one of {', '.join(to_camel(name) for name in cls.model_fields)}"

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(getattr(self, name) is not None for name in type(self).model_fields) != 1:
            raise ValueError(self.message())
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add the rule for API servers."""
        schema = handler(core)
        members = ", ".join(f"has(self.{to_camel(name)})" for name in cls.model_fields)
        handler.resolve_ref_schema(schema).update(rules((f"[{members}].exists_one(it, it)", cls.message())))
        return schema


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

AbsolutePath = Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^/[^\x00]*$")]
"""A path inside the agent's container."""


class SecretKeyRef(ApiModel):
    """One key of a Secret in the same namespace."""

    model_config = ConfigDict(json_schema_extra=ATOMIC)

    name: ObjectName
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
    """Key in the Secret's data."""
