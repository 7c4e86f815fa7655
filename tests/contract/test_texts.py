"""What is left of a text from outside when it is stored and shown."""

import json

import pytest

from triage_contract.texts import masked, storable_text

URL = "https://me:pw@host/"  # pragma: allowlist secret


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"refused at {URL}", "refused at https://***@host/"),
        ("see https://x/?key=abc&a=b", "see https://x/?key=***&a=b"),
        ("Authorization: bearer abc.def was refused", "Authorization: bearer *** was refused"),
        ("keys sk-abc***xyz, AIzaSyD-x_1, ghp_a1 and github_pat_a_b", "keys ***, ***, *** and ***"),
        ('{"api_key": "ab\\"cd", "x": 1}', '{"api_key": "***", "x": 1}'),
        ('{"x-access-token":"ab', '{"x-access-token":"***"'),
        (f'{{"url": "{URL}", "to": "a"}}', '{"url": "https://***@host/", "to": "a"}'),
        ('{"total_tokens": 12, "about": "a token"}', '{"total_tokens": 12, "about": "a token"}'),
        ("The word token: and https://host/path", "The word token: and https://host/path"),
    ],
)
def test_only_credentials_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_masked_json_stays_json() -> None:
    line = json.dumps({"message": f"at {URL}", "header": "Bearer abc", "password": 'a"b'})

    assert json.loads(masked(line)) == {
        "message": "at https://***@host/",
        "header": "Bearer ***",
        "password": "***",
    }


def test_what_postgres_refuses_is_replaced() -> None:
    assert storable_text("a\0b\ud83dc\U0001f600") == "a\ufffdb\ufffdc\U0001f600"
