"""The few protobuf bodies that kubectl sends: its typed clients write built-in objects in that form only.

Field numbers are those of the ``generated.proto`` files of k8s.io/api and k8s.io/apimachinery.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from triage_local.apiserver.exceptions import BadRequestError, UnsupportedMediaTypeError
from triage_local.apiserver.objects import Json

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
"""First bytes of a body; behind them is a ``runtime.Unknown``."""

_Value: TypeAlias = int | bytes
_Reader: TypeAlias = Callable[[_Value], Any]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: _Reader
    repeated: bool = False
    mapped: bool = False


_Message: TypeAlias = Mapping[int, _Field]


def _text(value: _Value) -> str:
    return _raw(value).decode()


def _raw(value: _Value) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ValueError("a number where bytes belong")


def _number(value: _Value) -> int:
    if isinstance(value, int):
        return value
    raise ValueError("bytes where a number belongs")


def _truth(value: _Value) -> bool:
    return bool(_number(value))


def _base64(value: _Value) -> str:
    return base64.b64encode(_raw(value)).decode()


def _message(fields: _Message) -> _Reader:
    return lambda value: _decoded(_raw(value), fields)


_METADATA: Final[_Message] = {
    1: _Field("name", _text),
    2: _Field("generateName", _text),
    3: _Field("namespace", _text),
    11: _Field("labels", _text, mapped=True),
    12: _Field("annotations", _text, mapped=True),
}
_DELETE_OPTIONS: Final[_Message] = {
    1: _Field("gracePeriodSeconds", _number),
    2: _Field("preconditions", _message({1: _Field("uid", _text), 2: _Field("resourceVersion", _text)})),
    4: _Field("propagationPolicy", _text),
    5: _Field("dryRun", _text, repeated=True),
}
_REVIEWED: Final[_Message] = {
    1: _Field("namespace", _text),
    2: _Field("verb", _text),
    3: _Field("group", _text),
    4: _Field("version", _text),
    5: _Field("resource", _text),
    6: _Field("subresource", _text),
    7: _Field("name", _text),
}
_REVIEW: Final[_Message] = {
    1: _Field("resourceAttributes", _message(_REVIEWED)),
    2: _Field("nonResourceAttributes", _message({1: _Field("path", _text), 2: _Field("verb", _text)})),
}
_META: Final = _Field("metadata", _message(_METADATA))
_KINDS: Final[dict[str, _Message]] = {
    "ConfigMap": {
        1: _META,
        2: _Field("data", _text, mapped=True),
        3: _Field("binaryData", _base64, mapped=True),
        4: _Field("immutable", _truth),
    },
    "DeleteOptions": _DELETE_OPTIONS,
    "Eviction": {1: _META, 2: _Field("deleteOptions", _message(_DELETE_OPTIONS))},
    "Namespace": {1: _META},
    "Secret": {
        1: _META,
        2: _Field("data", _base64, mapped=True),
        3: _Field("type", _text),
        4: _Field("stringData", _text, mapped=True),
        5: _Field("immutable", _truth),
    },
    "SelfSubjectAccessReview": {1: _META, 2: _Field("spec", _message(_REVIEW))},
    "ServiceAccount": {1: _META},
}
_TYPE_META: Final[_Message] = {1: _Field("apiVersion", _text), 2: _Field("kind", _text)}
_UNKNOWN: Final[_Message] = {1: _Field("typeMeta", _message(_TYPE_META)), 2: _Field("raw", _raw)}


def decoded(body: bytes) -> Json:
    """The object in a body, with its kind and version.

    Raises UnsupportedMediaTypeError for a kind that is not known here, BadRequestError for what is no such body.
    """
    try:
        if not body.startswith(_MAGIC):
            raise ValueError("does not begin as a Kubernetes object does")
        envelope = _decoded(body[len(_MAGIC) :], _UNKNOWN)
        type_meta: Json = envelope.get("typeMeta") or {}
        fields = _KINDS.get(type_meta.get("kind", ""))
        if fields is None:
            raise UnsupportedMediaTypeError(f"protobuf is not read for the kind {type_meta.get('kind')!r}")
        return {**type_meta, **_decoded(envelope.get("raw") or b"", fields)}
    except (ValueError, IndexError) as error:
        raise BadRequestError(f"the body is not valid protobuf: {error}") from error


def _decoded(body: bytes, fields: _Message) -> Json:
    obj: Json = {}
    for number, value in _values(body):
        field = fields.get(number)
        if field is None:
            continue
        if field.mapped:
            entry = _decoded(_raw(value), {1: _Field("key", _text), 2: _Field("value", field.read)})
            obj.setdefault(field.name, {})[entry.get("key", "")] = entry.get("value", "")
        elif field.repeated:
            obj.setdefault(field.name, []).append(field.read(value))
        else:
            obj[field.name] = field.read(value)
    # Text that was not given is sent as empty text; nothing here means something else by that.
    return {name: value for name, value in obj.items() if value != ""}


def _values(body: bytes) -> Iterator[tuple[int, _Value]]:
    place = 0
    while place < len(body):
        tag, place = _varint(body, place)
        match tag & 7:
            case 0:
                value, place = _varint(body, place)
                yield tag >> 3, value
            case 2:
                length, place = _varint(body, place)
                if place + length > len(body):
                    raise ValueError("it ends too early")
                yield tag >> 3, body[place : place + length]
                place += length
            case wire_type:
                raise ValueError(f"wire type {wire_type}")


def _varint(body: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
