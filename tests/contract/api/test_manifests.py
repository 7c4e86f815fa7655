"""Manifests against an API server: the examples are good, and each bad one is refused as it says itself.

The comment at the top of a bad manifest gives the field that must be named and a part of the message, in the
words of a real API server. Where a file holds two objects, the second one replaces the first.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml
from aiohttp import ClientSession

from triage_contract.api import parse_agent, parse_run
from triage_contract.api.crds import KINDS, build_crd
from triage_contract.exceptions import ApiError
from triage_contract.names import API_VERSION, GROUP
from triage_local.apiserver import ApiServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
PARSERS: Final = {"TriageRun": parse_run, "TriageAgent": parse_agent}

Manifest = dict[str, Any]


class Cluster:
    """An API server that has our definitions. Fields that a schema does not know are errors, as for
    kubectl."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def create(self, manifest: Manifest) -> Manifest:
        """Return the object as stored, or the Status that refuses it."""
        async with self._session.post(_collection(manifest), params=_STRICT, json=manifest) as response:
            answer: Manifest = await response.json()
        return answer

    async def replace(self, old: Manifest, new: Manifest) -> Manifest:
        """Return the new object as stored in place of the old one, or the Status that refuses it."""
        metadata = {**new["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}
        path = f"{_collection(new)}/{metadata['name']}"
        async with self._session.put(path, params=_STRICT, json={**new, "metadata": metadata}) as response:
            answer: Manifest = await response.json()
        return answer


_STRICT: Final = {"fieldValidation": "Strict"}


def _collection(manifest: Manifest) -> str:
    place = "" if manifest["kind"] == "CustomResourceDefinition" else "/namespaces/default"
    return f"/apis/{manifest['apiVersion']}{place}/{manifest['kind'].lower()}s"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with ApiServer() as server, ClientSession(server.url) as session:
        cluster = Cluster(session)
        for kind in KINDS:
            assert (await cluster.create(build_crd(kind)))["kind"] == "CustomResourceDefinition"
        yield cluster


def read(path: Path) -> list[Manifest]:
    """Return the objects of ours in a file; those of a bad one under the file's own name."""
    ours = [
        manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest["apiVersion"] == API_VERSION
    ]
    return [{**manifest, "metadata": {"name": path.stem}} for manifest in ours] if path in BAD else ours


def read_expected(path: Path) -> tuple[str, str]:
    """Return the field and the part of the message that a refusal must name."""
    comments = dict(re.findall(r"^# (\w+): (.+)$", path.read_text(), re.MULTILINE))
    return comments["field"], comments["message"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
async def test_an_example_is_stored_and_read(cluster: Cluster, path: Path) -> None:
    manifests = read(path)
    for manifest in manifests:
        PARSERS[manifest["kind"]](await cluster.create(manifest))
    agents = {manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "TriageAgent"}
    runs = [manifest for manifest in manifests if manifest["kind"] == "TriageRun"]
    assert {run["spec"].get("agentRef", {"name": "default"})["name"] for run in runs} == agents


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
async def test_a_bad_manifest_is_refused(cluster: Cluster, path: Path) -> None:
    first, *second = read(path)
    field, message = read_expected(path)
    answer = await cluster.create(first)
    if second:
        assert answer["kind"] == first["kind"]
        answer = await cluster.replace(answer, second[0])
    assert answer["code"] == 422
    assert f'{first["kind"]}.{GROUP} "{path.stem}" is invalid: ' in answer["message"]
    assert f"{field}: " in answer["message"]
    assert message in answer["message"]


@pytest.mark.parametrize("path", [path for path in BAD if len(read(path)) == 1], ids=lambda path: path.stem)
async def test_a_bad_object_is_refused_by_a_reader_too(path: Path) -> None:
    """As may happen where an older definition let it in."""
    (manifest,) = read(path)
    metadata = {"namespace": "default", "uid": "u", "creationTimestamp": "2026-03-01T12:00:00Z"}
    field, _ = read_expected(path)
    with pytest.raises(ApiError, match=re.escape(f" {field}: ")):
        PARSERS[manifest["kind"]]({**manifest, "metadata": {**manifest["metadata"], **metadata}})


@pytest.mark.parametrize(
    "manifest",
    [
        {"kind": "TriageRun", "spec": {"report": "x"}},
        {
            "kind": "TriageAgent",
            "spec": {"image": "x", "database": {"urlSecretRef": {"name": "a", "key": "b"}}},
        },
    ],
    ids=lambda manifest: str(manifest["kind"]),
)
async def test_defaults_of_schema_and_models_are_the_same(cluster: Cluster, manifest: Manifest) -> None:
    named = {"apiVersion": API_VERSION, "metadata": {"name": "minimal"}, **manifest}
    stored = await cluster.create(named)
    assert stored["spec"] != manifest["spec"]
    parse = PARSERS[manifest["kind"]]
    assert parse(stored) == parse({**stored, "spec": manifest["spec"]})
