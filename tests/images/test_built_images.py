"""The images of operator and agent: who they run as, what is in them, and how they end."""

import json
from typing import Any

import pytest
import yaml

from support.docker import RESTRICTED, base_image, docker

# The first build on a machine downloads everything.
pytestmark = pytest.mark.timeout(1200)

_UNCOMPILED = """
import importlib.util, pathlib, sys, sysconfig
for root in ("/opt/triage/lib", sysconfig.get_path("stdlib")):
    for source in pathlib.Path(root).rglob("*.py"):
        skipped = {"test", "idlelib", "dist-packages", "site-packages"} & set(source.relative_to(root).parts[:-1])
        compiled = pathlib.Path(importlib.util.cache_from_source(str(source)))
        if not compiled.exists() and (root.startswith("/opt") or not skipped):
            print(source)
"""


def _inspected(image: str) -> dict[str, Any]:
    (inspected,) = json.loads(docker("image", "inspect", image).said)
    return dict(inspected)


@pytest.mark.parametrize(("name", "entrypoint"), [("operator", "triage-operator"), ("agent", "triage")])
def test_an_image_says_what_it_is_and_that_it_is_not_root(images: str, name: str, entrypoint: str) -> None:
    config = _inspected(f"triage-{name}:{images}")["Config"]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == [entrypoint]
    labels = {key.removeprefix("org.opencontainers.image.") for key in config["Labels"]}
    assert labels >= {"title", "description", "version", "revision", "created", "licenses", "base.name"}
    assert config["Labels"]["org.opencontainers.image.base.name"] == base_image()


@pytest.mark.parametrize(("name", "megabytes"), [("operator", 150), ("agent", 300)])
def test_an_image_is_small_on_top_of_its_base(images: str, name: str, megabytes: int) -> None:
    added = _inspected(f"triage-{name}:{images}")["Size"] - _inspected(base_image())["Size"]
    assert 0 < added < megabytes * 10**6


@pytest.mark.parametrize("name", ["operator", "agent"])
def test_everything_in_an_image_is_compiled(images: str, name: str) -> None:
    program = ("--entrypoint=python", f"triage-{name}:{images}", "-c", _UNCOMPILED)
    ended = docker("run", "--rm", *RESTRICTED, *program)
    assert (ended.code, ended.said) == (0, "")


def test_an_operator_runs_without_rights_and_without_a_file_system_to_write_to(images: str) -> None:
    ended = docker("run", "--rm", *RESTRICTED, f"triage-operator:{images}", "crds")
    kinds = [crd["spec"]["names"]["kind"] for crd in yaml.safe_load_all(ended.said)]
    assert kinds == ["TriageRun", "TriageAgent"]


def test_an_agent_says_what_is_missing_with_the_exit_code_of_a_bad_configuration(images: str) -> None:
    ended = docker("run", "--rm", *RESTRICTED, f"triage-agent:{images}")
    assert ended.code == 86
    assert "TRIAGE_RUN_ID is not set" in ended.said


def test_an_image_has_what_its_process_imports_later(images: str) -> None:
    """Each image lacks the other's libraries, and the operator's the classes of its client that it never uses."""
    for name, module in (
        ("operator", "triage_operator.running"),
        ("agent", "triage_agent.docs_triage.agent"),
    ):
        program = ("--entrypoint=python", f"triage-{name}:{images}", "-c", f"import {module}")
        assert docker("run", "--rm", *RESTRICTED, *program).code == 0


def test_an_operator_that_is_the_first_process_ends_at_sigterm(images: str) -> None:
    kubeconfig = json.dumps(
        {
            "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "somebody", "user": {}}],
            "contexts": [{"name": "away", "context": {"cluster": "away", "user": "somebody"}}],
            "current-context": "away",
        }
    )
    container = docker(
        "create",
        *RESTRICTED,
        "--entrypoint=sh",
        f"triage-operator:{images}",
        "-c",
        f"echo '{kubeconfig}' > /tmp/kubeconfig; exec triage-operator run"
        " --kube-config=/tmp/kubeconfig --database-url=postgresql://127.0.0.1:1/none",
    ).said.strip()
    try:
        docker("start", container)
        # However far it has come: SIGKILL, after a minute, would be 137.
        assert docker("stop", "--time=60", container).code == 0
        assert docker("inspect", "--format={{.State.ExitCode}}", container).said.strip() in ("0", "143")
    finally:
        docker("rm", "--force", container)
