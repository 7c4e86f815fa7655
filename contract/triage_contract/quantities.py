"""Kubernetes quantities of memory: ``1Gi``, ``500M``, ``128974848``, ``1e9``, ``0.5Gi``.

The grammar is that of https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
without a sign: no quantity of this project is negative.
"""

import re
from decimal import ROUND_CEILING, Decimal
from typing import Final

from triage_contract.exceptions import QuantityError

QUANTITY_PATTERN: Final = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$"
"""The grammar, in the common subset of the regular expressions of Go, Rust and Python."""

MAX_LENGTH: Final = 64
"""Characters of the longest quantity that is read."""

_BINARY: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parse_quantity(text: str) -> Decimal:
    """Return the exact value of a quantity in its base unit (bytes, cores); raise ``QuantityError`` for
    anything else."""
    match = re.fullmatch(QUANTITY_PATTERN, text, re.ASCII) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise QuantityError(f"not a quantity, such as 512Mi or 1Gi: {text[:MAX_LENGTH]!r}")
    number, suffix = Decimal(match[1]), match[3] or ""
    if suffix in _BINARY:
        return number * Decimal(1024 ** (_BINARY.index(suffix) + 1))
    return number.scaleb(_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))


def parse_memory(text: str) -> int:
    """Return a quantity of memory in bytes, a fraction of a byte rounded up, as Kubernetes does it."""
    return int(parse_quantity(text).to_integral_value(ROUND_CEILING))


def format_memory(size_bytes: int) -> str:
    """Return the shortest exact quantity of whole bytes: ``192Mi`` for 201326592, ``1000`` for 1000."""
    for power in range(len(_BINARY), 0, -1):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power}{_BINARY[power - 1]}"
    return str(size_bytes)
