"""Names of pods."""

import re

from hypothesis import given
from hypothesis import strategies as st

from triage_operator.naming import label_value, next_name, pod_name

UID = "4f1a2b3c-0000-4000-8000-000000000001"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RUN_NAMES = st.from_regex(_LABEL.pattern + r"(\." + _LABEL.pattern + r"){0,3}", fullmatch=True)


def test_name_says_run_and_attempt() -> None:
    assert pod_name("tokens-7f2kq", UID, 3) == "tokens-7f2kq-4f1a2-a3"


def test_long_name_is_cut_and_keeps_uid_and_attempt() -> None:
    name = pod_name(f"{'long.' * 50}end", UID, 12)

    assert name.endswith("-4f1a2-a12")
    assert name.startswith("long-long-")
    assert len(name) == 58


def test_next_names_count_on() -> None:
    first = pod_name("tokens", UID, 3)

    assert next_name(first) == "tokens-4f1a2-a3-2"
    assert next_name(next_name(first)) == "tokens-4f1a2-a3-3"


def test_attempts_of_a_run_never_share_a_name() -> None:
    name = "a-" * 126 + "a"

    assert len({pod_name(name, UID, epoch) for epoch in range(1, 1200)}) == 1199


@given(_RUN_NAMES, st.integers(min_value=1, max_value=10**9))
def test_every_name_is_a_label(run_name: str, epoch: int) -> None:
    name = pod_name(run_name, UID, epoch)

    assert _LABEL.fullmatch(name)
    assert _LABEL.fullmatch(next_name(name))


def test_label_values_stay_apart_and_legal() -> None:
    long = "agent-" * 40

    assert label_value("default") == "default"
    assert label_value(f"{long}a") != label_value(f"{long}b")
    assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", label_value(long))
