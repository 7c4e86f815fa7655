"""Quantities of memory, against values that Kubernetes gives."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage_contract.exceptions import QuantityError
from triage_contract.quantities import format_memory, parse_memory, parse_quantity


@pytest.mark.parametrize(
    ("text", "expected_bytes"),
    [
        ("0", 0),
        ("128974848", 128974848),
        ("129e6", 129_000_000),
        ("129E6", 129_000_000),
        ("129M", 129_000_000),
        ("123Mi", 128974848),
        ("1Gi", 2**30),
        ("0.5Gi", 2**29),
        (".5Ki", 512),
        ("1.Ki", 1024),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e-3", 1),
        ("500m", 1),
        ("1500m", 2),
        ("0.1Ki", 103),
        ("9223372036854775807", 2**63 - 1),
        ("16Ei", 2**63 - 1),
        ("1e99", 2**63 - 1),
    ],
)
def test_memory_is_read_in_bytes_rounded_up(text: str, expected_bytes: int) -> None:
    assert parse_memory(text) == expected_bytes


@pytest.mark.parametrize(
    ("text", "expected"), [("500m", "0.5"), ("2", "2"), ("100n", "1E-7"), ("1k", "1000")]
)
def test_a_quantity_is_exact(text: str, expected: str) -> None:
    assert parse_quantity(text) == Fraction(expected)


@pytest.mark.parametrize(
    "text", ["", " ", "1 Gi", "1gi", "Gi", "-1", "+1", "1e", "1e999", "1KiB", "١", "0x10", "1\n", "9" * 65]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0"),
        (1000, "1000"),
        (1024, "1Ki"),
        (201326592, "192Mi"),
        (2**30 + 1, "1073741825"),
        (2**62, "4Ei"),
    ],
)
def test_memory_is_written_short(size_bytes: int, text: str) -> None:
    assert format_memory(size_bytes) == text


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_what_is_written_is_read_again(size_bytes: int) -> None:
    assert parse_memory(format_memory(size_bytes)) == size_bytes
