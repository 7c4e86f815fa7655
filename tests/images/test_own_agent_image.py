"""The image of examples/own-agent, built as its README says, on the package of this very tree."""

import shutil
from pathlib import Path

import pytest

from support.docker import (
    RESTRICTED,
    ROOT,
    TAG,
    base_image,
    build,
    build_command,
    certificates,
    docker,
    obstacle,
)

pytestmark = pytest.mark.timeout(1200)

IMAGE = f"own-agent:{TAG}"


@pytest.fixture(scope="session")
def own_agent(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the example's image, and give its name."""
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("own-agent") / "context"
    shutil.copytree(ROOT / "examples" / "own-agent", folder)
    build(str(ROOT / ".tools/bin/uv"), "build", "--quiet", "--wheel", f"--out-dir={folder}")
    (wheel,) = folder.glob("*.whl")
    base = _trusting_base(folder.parent / "base") if certificates() else base_image()
    arguments = (f"--build-arg=BASE_IMAGE={base}", f"--build-arg=AGENT=/wheels/{wheel.name}[agent]")
    build(*build_command(), *arguments, f"--tag={IMAGE}", ".", folder=folder)
    return IMAGE


def test_it_is_a_process_of_an_attempt_with_the_users_app_in_reach(own_agent: str) -> None:
    ended = docker("run", "--rm", *RESTRICTED, own_agent, "triage", "attempt")
    assert ended.code == 86
    assert "TRIAGE_RUN_ID is not set" in ended.said
    load = "from triage_agent.apps import load_app; print(load_app('parcels.agent:app').name)"
    ended = docker("run", "--rm", *RESTRICTED, own_agent, "python", "-c", load)
    assert ended.said.splitlines()[-1] == "parcels"


def test_its_own_code_knows_nothing_of_us() -> None:
    for source in (ROOT / "examples" / "own-agent" / "parcels").glob("*.py"):
        assert "triage" not in source.read_text()


def _trusting_base(folder: Path) -> str:
    """Give a base image that trusts this machine's certificates, as a company's would its own."""
    folder.mkdir()
    shutil.copy(certificates(), folder / "ca.crt")
    (folder / "Dockerfile").write_text(
        f"FROM {base_image()}\nCOPY ca.crt /etc/ssl/ca.crt\nENV PIP_CERT=/etc/ssl/ca.crt\n"
    )
    build(*build_command(), "--tag=own-agent-base:test", ".", folder=folder)
    return "own-agent-base:test"
