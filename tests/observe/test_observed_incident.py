"""An incident on a local cluster, before a real Prometheus: dashboards and alerts tell what it was."""

from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from observe.comparing import Finding
from observe.observing import observing
from observe.programs import find_prometheus
from rich.console import Console

from triage_local.demo.story import Story
from triage_local.exceptions import ProgramError


@pytest.mark.timeout(300)
async def test_every_query_comes_to_what_the_tables_say(tmp_path: Path) -> None:
    try:
        await find_prometheus()
    except ProgramError as error:
        pytest.skip(str(error))
    told = StringIO()
    async with observing(Story(Console(file=told, width=200)), log=tmp_path / "operator.log") as observed:
        off = [
            f"{one.place}: {one.finding}: {one.note}" for one in observed.checked if not one.finding.is_good
        ]
        assert off == [], told.getvalue()
        found = Counter(one.finding for one in observed.checked)
        assert found[Finding.EQUAL] > found[Finding.ANSWERED]
