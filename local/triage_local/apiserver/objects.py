"""Kubernetes objects as parsed JSON, and the few things that every layer reads off them."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]
"""One JSON object. What the store hands out is shared and is never changed in place."""

SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated name suffixes (k8s.io/apimachinery/pkg/util/rand): no vowels, so no words."""
SUFFIX_LENGTH: Final = 5
GENERATED_BASE_LENGTH: Final = 63 - SUFFIX_LENGTH
"""A generateName is cut to this, so that the name made from it stays a label value."""


def timestamp(moment: datetime | None = None) -> str:
    """A ``metav1.Time``: UTC with whole seconds, of the given moment or of now."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shifted(text: str, seconds: float) -> str:
    """The ``metav1.Time`` that lies ``seconds`` after the given one."""
    return timestamp(parsed_time(text) + timedelta(seconds=seconds))


def parsed_time(text: str) -> datetime:
    """The moment of a ``metav1.Time`` or ``MicroTime``; ValueError if it is neither."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def generated_name(base: str) -> str:
    """A name that begins with ``base``, as the API server makes one from a generateName."""
    suffix = "".join(secrets.choice(SUFFIX_ALPHABET) for _ in range(SUFFIX_LENGTH))
    return base[:GENERATED_BASE_LENGTH] + suffix


def metadata(obj: Json) -> Json:
    """The object's metadata, empty if it has none."""
    found: Json = obj.get("metadata") or {}
    return found


def name_of(obj: Json) -> str:
    """``metadata.name``, empty if it has none."""
    return str(metadata(obj).get("name") or "")


def namespace_of(obj: Json) -> str:
    """``metadata.namespace``, empty for a cluster-scoped object."""
    return str(metadata(obj).get("namespace") or "")


def uid_of(obj: Json) -> str:
    """``metadata.uid``, empty before the object is stored."""
    return str(metadata(obj).get("uid") or "")


def with_metadata(obj: Json, **changes: Any) -> Json:
    """A copy of the object with metadata fields set; a field set to None is left out."""
    merged = {**metadata(obj), **changes}
    return {**obj, "metadata": {key: value for key, value in merged.items() if value is not None}}


def without_empty_metadata(obj: Json) -> Json:
    """The object without metadata fields that hold nothing, such as ``labels: {}``."""
    return with_metadata(obj, **{key: None for key, value in metadata(obj).items() if value in ({}, [], "")})


def without_nulls(value: Any) -> Any:
    """A copy in which no mapping has a null value: to Go's decoder an absent field and null are one."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
