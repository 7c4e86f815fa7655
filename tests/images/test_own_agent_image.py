"""The image of examples/own-agent, built as its README says, on the package of this very tree."""

import pytest

from support.docker import RESTRICTED, docker, obstacle
from support.own_agent_image import EXAMPLE, build_own_agent

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="session")
def own_agent(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the example's image, and give its name."""
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    return build_own_agent(tmp_path_factory.mktemp("own-agent"))


def test_it_is_a_process_of_an_attempt_with_the_users_app_in_reach(own_agent: str) -> None:
    ended = docker("run", "--rm", *RESTRICTED, own_agent, "triage", "attempt")
    assert ended.code == 86
    assert "TRIAGE_RUN_ID is not set" in ended.said
    load = "from triage_agent.apps import load_app; print(load_app('parcels.agent:app').name)"
    ended = docker("run", "--rm", *RESTRICTED, own_agent, "python", "-c", load)
    assert ended.said.splitlines()[-1] == "parcels"


def test_its_own_code_knows_nothing_of_us() -> None:
    for source in (EXAMPLE / "parcels").glob("*.py"):
        assert "triage" not in source.read_text()
