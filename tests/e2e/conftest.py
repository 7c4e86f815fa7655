"""The chart installed on a kind cluster, which ``make e2e`` names, and a namespace of its own for each case."""

import os
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
import pytest_asyncio

for module in ("support.sight", "support.workplace", "support.kind.programs", "support.kind.site"):
    pytest.register_assert_rewrite(module)

from support.kind.cluster import Kind, a_kind  # noqa: E402
from support.kind.collecting import collect  # noqa: E402
from support.kind.gaps import Gap, describe  # noqa: E402
from support.kind.site import KindSite  # noqa: E402

_KUBECONFIG: Final = os.environ.get("TRIAGE_E2E_KUBECONFIG", "")
_GAPS: Final = pytest.StashKey[list[Gap]]()
_FAILED: Final = pytest.StashKey[bool]()

# These tests take a cluster, and half an hour: `make e2e` runs them, not `make test`.
collect_ignore_glob = [] if _KUBECONFIG else ["test_*"]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_GAPS] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # It looks back on all others.
    items.sort(key=lambda item: item.path.name == "test_rights_used_on_kind.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[_FAILED] = item.stash.get(_FAILED, False) or report.failed
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if gaps := config.stash[_GAPS]:
        terminalreporter.section("from the loss to the next attempt's first durable write")
        for line in describe(gaps):
            terminalreporter.write_line(line)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kind(request: pytest.FixtureRequest) -> AsyncIterator[Kind]:
    keep = "TRIAGE_E2E_KEEP" in os.environ
    async with a_kind(Path(_KUBECONFIG), request.config.stash[_GAPS], keep=keep) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def site(kind: Kind, request: pytest.FixtureRequest) -> AsyncIterator[KindSite]:
    async with KindSite(kind, f"case-{uuid4().hex[:8]}") as made:
        yield made
        await kind.forget_faults()
        if request.node.stash.get(_FAILED, False):
            await collect(kind.programs, made.namespace, request.node.name)
