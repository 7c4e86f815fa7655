"""One wrong field of an object, worded as k8s.io/apimachinery/pkg/util/validation/field words it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from triage_local.apiserver.objects import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """A field and what is wrong with it. ``path`` is such as ``spec.containers[0].name``."""

    path: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def cause(self) -> Json:
        """The error as a ``StatusCause``."""
        return {"reason": self.reason, "message": self.message, "field": self.path}


_ESCAPES: Final = {
    7: r"\a",
    8: r"\b",
    9: r"\t",
    10: r"\n",
    11: r"\v",
    12: r"\f",
    13: r"\r",
    34: r"\"",
    92: r"\\",
}


def quoted(text: str) -> str:
    """Text as Go quotes it (``strconv.Quote``)."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    if code in _ESCAPES:
        return _ESCAPES[code]
    if character.isprintable():
        return character
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def required(path: str, detail: str = "") -> FieldError:
    """The field is absent or empty."""
    message = f"Required value: {detail}" if detail else "Required value"
    return FieldError(path=path, reason="FieldValueRequired", message=message)


def invalid_value(path: str, value: Any, detail: str) -> FieldError:
    """The field's value breaks a rule."""
    message = f"Invalid value: {_shown(value)}: {detail}"
    return FieldError(path=path, reason="FieldValueInvalid", message=message)


def wrong_type(path: str, found: str, detail: str) -> FieldError:
    """The field's value is of another type; ``found`` names the one that it has."""
    message = f'Invalid value: "{found}": {detail}'
    return FieldError(path=path, reason="FieldValueTypeInvalid", message=message)


def unsupported(path: str, value: Any, supported: Iterable[Any]) -> FieldError:
    """The field's value is none of those that it can have."""
    names = ", ".join(_shown(item) for item in supported)
    message = f"Unsupported value: {_shown(value)}: supported values: {names}"
    return FieldError(path=path, reason="FieldValueNotSupported", message=message)


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set or changed like this."""
    return FieldError(path=path, reason="FieldValueForbidden", message=f"Forbidden: {detail}")


def too_long(path: str, limit: int) -> FieldError:
    """The text is longer than ``limit``."""
    message = f"Too long: may not be more than {limit} bytes"
    return FieldError(path=path, reason="FieldValueTooLong", message=message)


def too_many(path: str, count: int, limit: int) -> FieldError:
    """The list or mapping has more than ``limit`` entries."""
    message = f"Too many: {count}: must have at most {limit} item{'' if limit == 1 else 's'}"
    return FieldError(path=path, reason="FieldValueTooMany", message=message)


def duplicate(path: str, value: Any) -> FieldError:
    """Another entry has this value, and each may be there once."""
    return FieldError(path=path, reason="FieldValueDuplicate", message=f"Duplicate value: {_shown(value)}")
