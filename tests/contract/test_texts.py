"""What is left of a text from outside when it is stored and shown."""

import json

import pytest

from triage_contract.texts import masked, storable_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("refused at http://me:pw@db/x", "refused at http://***@db/x"),  # pragma: allowlist secret
        ("see https://x/?key=abc&a=b", "see https://x/?key=***&a=b"),
        ("Authorization: bearer abc.def was refused", "Authorization: bearer *** was refused"),
        ("keys sk-abc***xyz, AIzaSyD-x_1, ghp_a1 and github_pat_a_b", "keys ***, ***, *** and ***"),
        ('{"api_key": "ab\\"cd", "x": 1}', '{"api_key": "***", "x": 1}'),
        ('{"x-access-token":"ab', '{"x-access-token":"***"'),
        ('{"url": "https://me:pw@h/", "to": "a"}', '{"url": "https://***@h/", "to": "a"}'),
        ('{"total_tokens": 12, "about": "a token"}', '{"total_tokens": 12, "about": "a token"}'),
        ("The word token: and https://host/path", "The word token: and https://host/path"),
    ],
)
def test_only_credentials_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_masked_json_stays_json() -> None:
    line = json.dumps({"message": "at https://me:pw@h/", "header": "Bearer abc", "password": 'a"b'})

    assert json.loads(masked(line)) == {
        "message": "at https://***@h/",
        "header": "Bearer ***",
        "password": "***",
    }


def test_what_postgres_refuses_is_replaced() -> None:
    assert storable_text("a\0b\ud83dc\U0001f600") == "a\ufffdb\ufffdc\U0001f600"
