"""What a run's UID decides."""

from triage_operator.identity import MAX_APP_NAME, app_name


def test_an_agent_of_usual_names_is_named_in_full() -> None:
    assert app_name("docs", "default") == "docs/default"


def test_names_of_full_length_fit_and_stay_apart() -> None:
    long = "n" * 63
    first, second = (app_name(long, "a" * 252 + end) for end in "xy")
    assert len(first) == len(second) == MAX_APP_NAME
    assert first != second
    assert first.startswith(f"{long}/aaa")
