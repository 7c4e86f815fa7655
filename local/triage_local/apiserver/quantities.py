"""Resource quantities such as ``128Mi`` and ``500m`` as numbers."""

import re
from decimal import Decimal
from typing import Final

_FACTORS: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
    "Pi": Decimal(2) ** 50,
    "Ei": Decimal(2) ** 60,
}
_QUANTITY: Final = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|)"
)


def is_quantity(text: str) -> bool:
    """Whether the text is one."""
    return _QUANTITY.fullmatch(text) is not None


def amount(quantity: str | int | float) -> Decimal:
    """The number that a quantity stands for; ValueError if it is no quantity."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"not a quantity: {quantity!r}")
    return Decimal(match[1]) * _FACTORS[match[2]]
