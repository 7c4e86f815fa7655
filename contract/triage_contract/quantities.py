"""Kubernetes quantities of memory: ``1Gi``, ``500M``, ``128974848``, ``1e9``, ``0.5Gi``.

The grammar is that of https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
without a sign: no quantity of this project is negative.
"""

import math
import re
from fractions import Fraction
from typing import Final

from triage_contract.exceptions import QuantityError

QUANTITY_PATTERN: Final = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$"
"""The grammar, in the common subset of the regular expressions of Go, Rust and Python."""

MAX_LENGTH: Final = 64
"""Characters of the longest quantity that is read."""

_BINARY: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MAX_BYTES: Final = 2**63 - 1


def parse_quantity(text: str) -> Fraction:
    """Return a quantity in its base unit (bytes, cores), exactly.

    Raises:
        QuantityError: the text is no quantity.
    """
    match = re.fullmatch(QUANTITY_PATTERN, text, re.ASCII) if len(text) <= MAX_LENGTH else None
    if match is None:
        raise QuantityError(f"not a quantity, such as 512Mi or 1Gi: {text[:MAX_LENGTH]!r}")
    number, suffix = Fraction(match[1]), match[3] or ""
    if suffix in _BINARY:
        return number * (1 << 10 * (_BINARY.index(suffix) + 1))
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return number * Fraction(f"1e{exponent}")


def parse_memory(text: str) -> int:
    """Return a quantity of memory in whole bytes, rounded up and at most 2⁶³ - 1, as Kubernetes reads it.

    Raises:
        QuantityError: the text is no quantity.
    """
    return min(math.ceil(parse_quantity(text)), _MAX_BYTES)


def format_memory(size_bytes: int) -> str:
    """Return the shortest exact quantity of whole bytes: ``192Mi`` for 201326592, ``1000`` for 1000."""
    for power in range(len(_BINARY), 0, -1):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power}{_BINARY[power - 1]}"
    return str(size_bytes)
