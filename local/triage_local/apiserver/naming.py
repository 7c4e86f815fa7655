"""Rules for names, labels and annotations of all objects (k8s.io/apimachinery/pkg/api/validation)."""

import re
from typing import Final

from triage_local.apiserver.field_errors import FieldError, invalid_value, required
from triage_local.apiserver.objects import Json, metadata

SUBDOMAIN_LENGTH: Final = 253
LABEL_LENGTH: Final = 63
ANNOTATIONS_BYTES: Final = 256 * 1024
"""Most that the keys and values of an object's annotations may take together."""

_LABEL_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL_NAME.pattern}(\.{_LABEL_NAME.pattern})*")
_QUALIFIED_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_RULE: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def metadata_errors(obj: Json, *, label_name: bool = False) -> list[FieldError]:
    """What is wrong with name, labels, annotations and owner references.

    ``label_name``: the name is a DNS label, such as a namespace's, where it otherwise is a DNS subdomain.
    """
    meta = metadata(obj)
    found = _name_errors(str(meta.get("name") or ""), label_name)
    for key, value in (meta.get("labels") or {}).items():
        found.extend(_key_errors("metadata.labels", key))
        found.extend(_value_errors(str(value)))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        found.extend(_key_errors("metadata.annotations", key.lower()))
    if sum(len(f"{key}{value}".encode()) for key, value in annotations.items()) > ANNOTATIONS_BYTES:
        found.append(
            FieldError(
                path="metadata.annotations",
                reason="FieldValueTooLong",
                message=f"Too long: may not be more than {ANNOTATIONS_BYTES} bytes",
            )
        )
    return found + _owner_errors(meta.get("ownerReferences") or [])


def _name_errors(name: str, label_name: bool) -> list[FieldError]:
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    if label_name:
        return label_errors("metadata.name", name)
    found = []
    if len(name) > SUBDOMAIN_LENGTH:
        detail = f"must be no more than {SUBDOMAIN_LENGTH} characters"
        found.append(invalid_value("metadata.name", name, detail))
    if not _SUBDOMAIN.fullmatch(name):
        found.append(invalid_value("metadata.name", name, _SUBDOMAIN_RULE))
    return found


def label_errors(path: str, text: str) -> list[FieldError]:
    """What keeps the text from being a DNS label, such as the name of a container."""
    found = []
    if len(text) > LABEL_LENGTH:
        found.append(invalid_value(path, text, f"must be no more than {LABEL_LENGTH} characters"))
    if not _LABEL_NAME.fullmatch(text):
        found.append(invalid_value(path, text, _LABEL_RULE))
    return found


def _key_errors(path: str, key: str) -> list[FieldError]:
    prefix, slash, name = key.rpartition("/")
    found = []
    if slash and (len(prefix) > SUBDOMAIN_LENGTH or not _SUBDOMAIN.fullmatch(prefix)):
        found.append(invalid_value(path, key, f"prefix part {_SUBDOMAIN_RULE}"))
    if len(name) > LABEL_LENGTH:
        found.append(invalid_value(path, key, f"name part must be no more than {LABEL_LENGTH} characters"))
    if not _QUALIFIED_PART.fullmatch(name):
        found.append(invalid_value(path, key, _KEY_RULE))
    return found


def _value_errors(value: str) -> list[FieldError]:
    path = "metadata.labels"
    found = []
    if len(value) > LABEL_LENGTH:
        found.append(invalid_value(path, value, f"must be no more than {LABEL_LENGTH} characters"))
    if value and not _QUALIFIED_PART.fullmatch(value):
        found.append(invalid_value(path, value, _VALUE_RULE))
    return found


def _owner_errors(owners: list[Json]) -> list[FieldError]:
    path = "metadata.ownerReferences"
    wording = {"apiVersion": "version must not be empty"}
    found = [
        invalid_value(f"{path}.{field}", "", wording.get(field, "must not be empty"))
        for owner in owners
        for field in ("apiVersion", "kind", "name", "uid")
        if not owner.get(field)
    ]
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0].get('kind')}/{controllers[0].get('name')} and "
            f"{controllers[1].get('kind')}/{controllers[1].get('name')}"
        )
        found.append(invalid_value(path, owners, detail))
    return found
