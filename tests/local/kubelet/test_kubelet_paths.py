"""Text of a pod's specification made real: mount paths, and references to variables."""

from pathlib import Path

import pytest

from triage_local.kubelet.environment import expand
from triage_local.kubelet.volumes import Paths

PATHS = Paths({"/docs": Path("/real/docs"), "/docs/old": Path("/real/old"), "/a.b": Path("/real/dot")})


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("/docs", "/real/docs"),
        ("/docs/tokens.md", "/real/docs/tokens.md"),
        ("/docs/old/x", "/real/old/x"),
        ("/docs/older", "/real/docs/older"),
        ("/docs2", "/docs2"),
        ("/my/docs", "/my/docs"),
        ("docs", "docs"),
        ("--path=/docs", "--path=/real/docs"),
        ("file:/docs/issues.json", "file:/real/docs/issues.json"),
        ("sqlite:////docs/x.db", "sqlite:////docs/x.db"),
        ("http://host/docs", "http://host/docs"),
        ("/docs:/docs/old", "/real/docs:/real/old"),
        ("echo 'x' >/docs/x", "echo 'x' >/real/docs/x"),
        ("open('/docs/x')", "open('/real/docs/x')"),
        ("/aXb", "/aXb"),
        ("/a.b", "/real/dot"),
    ],
)
def test_a_mount_path_is_replaced_where_a_path_begins(text: str, replaced: str) -> None:
    assert PATHS.replaced(text) == replaced


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "one"),
        ("$(A)$(A)", "oneone"),
        ("$(B)", "$(B)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "one"}) == expanded
