"""The operator has no right that it does not need: all tests together made use of each. This one comes last."""

import pytest

from support.kind.auditing import USER, audit_log, installed_at, rights
from support.kind.cluster import Kind
from support.rights import used

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_operator_made_use_of_each_of_its_rights(kind: Kind) -> None:
    since = await installed_at(kind.programs)
    seen = used(await audit_log(kind.programs), USER, since=since)
    assert {permission for permission, _ in await rights(kind.programs)} - seen == set()
