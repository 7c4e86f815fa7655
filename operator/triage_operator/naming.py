"""Names of pods and values of labels: short enough, and legal whatever the run is called."""

import hashlib
import re
from typing import Final

MAX_LABEL: Final = 63
"""Characters of an RFC 1123 label, and of a label's value."""

_SUFFIX_ROOM: Final = 5
_ILLEGAL: Final = re.compile(r"[^a-z0-9]+")
_SUFFIXED: Final = re.compile(r"(?P<base>.+-a[0-9]+)-(?P<number>[0-9]+)")


def pod_name(run_name: str, run_uid: str, epoch: int) -> str:
    """Name an attempt's pod: ``<run, cut>-<five of the UID>-a<epoch>``.

    A name of at most 58 characters and a label by RFC 1123, since it is also the pod's host name: a dot,
    which the name of a run may have, becomes a hyphen. That leaves room for ``next_name``.
    """
    tail = f"-{_legal(run_uid)[:5]}-a{epoch}"
    return f"{_legal(run_name)[: MAX_LABEL - _SUFFIX_ROOM - len(tail)].strip('-')}{tail}"


def next_name(name: str) -> str:
    """Give the name to try where another's pod has ``name``: the same with ``-2``, then ``-3``, …"""
    suffixed = _SUFFIXED.fullmatch(name)
    if suffixed is None:
        return f"{name}-2"
    return f"{suffixed['base']}-{int(suffixed['number']) + 1}"


def label_value(text: str) -> str:
    """Give a label value for an object's name: itself, or its start and a digest where it is too long."""
    if len(text) <= MAX_LABEL:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[: MAX_LABEL - len(digest) - 1]}-{digest}"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("-", text.lower()).strip("-") or "run"
