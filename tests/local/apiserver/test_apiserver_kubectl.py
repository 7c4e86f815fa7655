"""The real kubectl, without flags that would switch its checks off."""

import asyncio
import json

import yaml

from support.gadgets import Gadgets, gadget_definition
from support.kube import Json, Rest, a_config_map, a_pod
from support.kubectl import Kubectl


def manifest(*objects: Json) -> str:
    return yaml.safe_dump_all(objects)


async def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl, gadgets: Gadgets) -> None:
    gadget = gadgets.one("one", {"report": "r", "mode": "A"})
    applied = await kubectl("apply", "-f", "-", stdin=manifest(gadget))
    assert (applied.code, applied.out) == (0, f"gadget.{gadgets.group}/one created\n")
    again = await kubectl("apply", "-f", "-", stdin=manifest(gadget))
    assert again.out == f"gadget.{gadgets.group}/one unchanged\n"
    changed = gadgets.one("one", {"report": "r", "size": 7})
    assert (
        await kubectl("apply", "-f", "-", stdin=manifest(changed))
    ).out == f"gadget.{gadgets.group}/one configured\n"
    shown = await kubectl("get", "gadget", "one", "-o", "json")
    assert json.loads(shown.out)["spec"] == {"report": "r", "size": 7}


async def test_apply_refuses_an_unknown_field(kubectl: Kubectl, gadgets: Gadgets) -> None:
    refused = await kubectl(
        "apply", "-f", "-", stdin=manifest(gadgets.one("one", {"report": "r", "repport": "x"}))
    )
    assert refused.code == 1
    assert 'strict decoding error: unknown field "spec.repport"' in refused.err


async def test_apply_names_what_is_invalid(kubectl: Kubectl, gadgets: Gadgets) -> None:
    refused = await kubectl("apply", "-f", "-", stdin=manifest(gadgets.one("one", {"report": ""})))
    assert refused.code == 1
    assert refused.err == (
        'The Gadget "one" is invalid: spec.report: Invalid value: "": spec.report in body should be at least 1 chars '
        "long\n"
    )


async def test_apply_on_the_server_takes_back_what_it_applied(kubectl: Kubectl, gadgets: Gadgets) -> None:
    gadget = gadgets.one("one", {"report": "r", "mode": "A"}, labels={"a": "1", "b": "2"})
    first = await kubectl("apply", "--server-side", "-f", "-", stdin=manifest(gadget))
    assert (first.code, first.out) == (0, f"gadget.{gadgets.group}/one serverside-applied\n")
    await kubectl("annotate", "gadget", "one", "kept=yes")
    gadget = gadgets.one("one", {"report": "r"}, labels={"b": "3"})
    assert (await kubectl("apply", "--server-side", "-f", "-", stdin=manifest(gadget))).code == 0
    shown = json.loads((await kubectl("get", "gadget", "one", "-o", "json")).out)
    assert shown["spec"] == {"report": "r", "size": 3}
    assert shown["metadata"]["labels"] == {"b": "3"}
    assert shown["metadata"]["annotations"] == {"kept": "yes"}


async def test_get_prints_printer_columns(kubectl: Kubectl, rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    await rest.merge(f"{gadgets.path}/one/status", {"status": {"phase": "Done"}})
    short = (await kubectl("get", "gd")).out.splitlines()
    assert short[0].split() == ["NAME", "PHASE", "READY", "AGE"]
    assert short[1].split()[:2] == ["one", "Done"]
    wide = (await kubectl("get", "gadgets", "-o", "wide")).out.splitlines()
    assert wide[0].split() == ["NAME", "PHASE", "READY", "SIZE", "AGE"]
    assert wide[1].split()[:3] == ["one", "Done", "3"]
    assert (await kubectl("get", "toys", "-o", "name")).out == f"gadget.{gadgets.group}/one\n"


async def test_get_selects_by_label_field_and_namespace(kubectl: Kubectl, rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one", labels={"app": "x"}))
    await rest.post(pods, a_pod("two"))
    assert (await kubectl("get", "pods", "-l", "app=x", "-o", "name")).out == "pod/one\n"
    assert (
        await kubectl("get", "pods", "--field-selector", "metadata.name=two", "-o", "name")
    ).out == "pod/two\n"
    everywhere = await kubectl("get", "pods", "-A", "--no-headers")
    assert {"one", "two"} <= {line.split()[1] for line in everywhere.out.splitlines()}


async def test_get_says_what_is_not_there(kubectl: Kubectl) -> None:
    missing = await kubectl("get", "pod", "none")
    assert (missing.code, missing.err) == (1, 'Error from server (NotFound): pods "none" not found\n')
    empty = await kubectl("get", "pods")
    assert (empty.code, empty.out) == (0, "")
    assert "No resources found" in empty.err
    unknown = await kubectl("get", "nothings")
    assert unknown.err == 'error: the server doesn\'t have a resource type "nothings"\n'


async def test_get_prints_yaml(kubectl: Kubectl, rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one", {"a": "b"}))
    shown = yaml.safe_load((await kubectl("get", "configmap", "one", "-o", "yaml")).out)
    assert (shown["apiVersion"], shown["kind"], shown["data"]) == ("v1", "ConfigMap", {"a": "b"})


async def test_create_and_delete(kubectl: Kubectl, rest: Rest, pods: str) -> None:
    created = await kubectl("create", "-f", "-", stdin=manifest(a_pod("one")))
    assert created.out == "pod/one created\n"
    assert (await kubectl("create", "-f", "-", stdin=manifest(a_pod("one")))).err == (
        'Error from server (AlreadyExists): error when creating "STDIN": pods "one" already exists\n'
    )
    deleted = await kubectl("delete", "pod", "one")
    assert deleted.code == 0
    assert (await rest.get(f"{pods}/one")).code == 404
    assert (await kubectl("delete", "pod", "one")).code == 1
    assert (await kubectl("delete", "pod", "one", "--ignore-not-found")).code == 0


async def test_create_with_its_typed_clients(kubectl: Kubectl, rest: Rest, namespace: str) -> None:
    assert (await kubectl("create", "configmap", "one", "--from-literal=a=b", "--from-literal=c=")).code == 0
    config_map = (await rest.get(f"/api/v1/namespaces/{namespace}/configmaps/one")).body
    assert config_map["data"] == {"a": "b", "c": ""}
    assert (await kubectl("create", "secret", "generic", "one", "--from-literal=key=value")).code == 0
    secret = (await rest.get(f"/api/v1/namespaces/{namespace}/secrets/one")).body
    assert secret["data"] == {"key": "dmFsdWU="}
    created = await kubectl("create", "namespace", f"{namespace}-b")
    assert created.out == f"namespace/{namespace}-b created\n"


async def test_auth_can_i(kubectl: Kubectl) -> None:
    assert (await kubectl("auth", "can-i", "create", "pods")).out == "yes\n"


async def test_delete_waits_until_the_pod_is_gone(kubectl: Kubectl, rest: Rest, pods: str) -> None:
    created = (await rest.post(pods, a_pod("one", node="n1"))).body
    deleting = asyncio.create_task(kubectl("delete", "pod", "one"))
    async with asyncio.timeout(10):
        async with rest.watch(pods, resourceVersion=created["metadata"]["resourceVersion"]) as events:
            assert "deletionTimestamp" in (await anext(events))["object"]["metadata"]
        assert not deleting.done()
        await rest.delete(f"{pods}/one", gracePeriodSeconds=0)
        assert (await deleting).code == 0


async def test_force_removes_a_bound_pod(kubectl: Kubectl, rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one", node="n1"))
    assert (await kubectl("delete", "pod", "one", "--force", "--grace-period=0")).code == 0
    assert (await rest.get(f"{pods}/one")).code == 404


async def test_wait_for_a_condition_a_value_and_a_deletion(
    kubectl: Kubectl, rest: Rest, gadgets: Gadgets
) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    waiting = [
        asyncio.create_task(kubectl("wait", "gadget/one", "--for=condition=Ready", "--timeout=20s")),
        asyncio.create_task(
            kubectl("wait", "gadget/one", "--for=jsonpath={.status.phase}=Done", "--timeout=20s")
        ),
    ]
    status = {"phase": "Done", "conditions": [{"type": "Ready", "status": "True"}]}
    await rest.merge(f"{gadgets.path}/one/status", {"status": status})
    assert [completed.out for completed in await asyncio.gather(*waiting)] == [
        f"gadget.{gadgets.group}/one condition met\n"
    ] * 2
    deletion = asyncio.create_task(kubectl("wait", "gadget/one", "--for=delete", "--timeout=20s"))
    await rest.delete(f"{gadgets.path}/one")
    assert (await deletion).code == 0


async def test_wait_for_a_definition(kubectl: Kubectl, namespace: str) -> None:
    definition = gadget_definition(f"{namespace}.example.dev")
    name = definition["metadata"]["name"]
    assert (await kubectl("apply", "-f", "-", stdin=manifest(definition))).code == 0
    assert (await kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=20s")).code == 0
    assert (await kubectl("delete", "crd", name, "--wait=false")).code == 0


async def test_get_watches(kubectl: Kubectl, rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    process = await kubectl.start("get", "gadgets", "--watch")
    assert process.stdout is not None
    async with asyncio.timeout(20):
        header, first = [await process.stdout.readline() for _ in range(2)]
        await rest.merge(f"{gadgets.path}/one/status", {"status": {"phase": "Done"}})
        changed = await process.stdout.readline()
        process.terminate()
        await process.communicate()
    assert header.split()[0] == b"NAME"
    assert first.split()[0] == b"one"
    assert changed.split()[:2] == [b"one", b"Done"]


async def test_patch_of_each_kind(kubectl: Kubectl, rest: Rest, pods: str, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    await rest.post(pods, a_pod("one"))
    merged = await kubectl("patch", "gadget", "one", "--type=merge", "-p", '{"spec":{"size":5}}')
    assert merged.out == f"gadget.{gadgets.group}/one patched\n"
    status = '{"status":{"phase":"Done"}}'
    assert (
        await kubectl("patch", "gadget", "one", "--subresource=status", "--type=merge", "-p", status)
    ).code == 0
    operations = (
        '[{"op":"test","path":"/spec/size","value":5},{"op":"replace","path":"/spec/size","value":6}]'
    )
    assert (await kubectl("patch", "gadget", "one", "--type=json", "-p", operations)).code == 0
    failed = await kubectl("patch", "gadget", "one", "--type=json", "-p", operations)
    assert failed.code == 1
    gadget = (await rest.get(f"{gadgets.path}/one")).body
    assert (gadget["spec"]["size"], gadget["status"]) == (6, {"phase": "Done"})
    assert (await kubectl("patch", "pod", "one", "-p", '{"metadata":{"labels":{"a":"b"}}}')).code == 0
    assert (await rest.get(f"{pods}/one")).body["metadata"]["labels"] == {"a": "b"}


async def test_label_annotate_and_taint(kubectl: Kubectl, rest: Rest, namespace: str, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    assert (await kubectl("label", "pod", "one", "a=b")).code == 0
    assert (await kubectl("annotate", "pod", "one", "c=d")).code == 0
    meta = (await rest.get(f"{pods}/one")).body["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"a": "b"}, {"c": "d"})
    node = f"node-{namespace}"
    await rest.post("/api/v1/nodes", {"metadata": {"name": node}})
    assert (await kubectl("taint", "node", node, "k=v:NoExecute")).code == 0
    taints = (await rest.get(f"/api/v1/nodes/{node}")).body["spec"]["taints"]
    assert {"key": "k", "value": "v", "effect": "NoExecute"} in taints
    assert (await kubectl("taint", "node", node, "k=v:NoExecute-")).code == 0
    left = (await rest.get(f"/api/v1/nodes/{node}")).body["spec"].get("taints", [])
    assert "k" not in [taint["key"] for taint in left]


async def test_drain_cordons_and_evicts(kubectl: Kubectl, rest: Rest, namespace: str, pods: str) -> None:
    node = f"node-{namespace}"
    await rest.post("/api/v1/nodes", {"metadata": {"name": node}})
    created = (await rest.post(pods, a_pod("one", node=node))).body
    draining = asyncio.create_task(kubectl("drain", node, "--force", "--timeout=20s"))
    async with asyncio.timeout(15):
        async with rest.watch(pods, resourceVersion=created["metadata"]["resourceVersion"]) as events:
            async for event in events:
                if "deletionTimestamp" in event["object"]["metadata"]:
                    break
        reasons = [condition["reason"] for condition in event["object"]["status"]["conditions"]]
        await rest.delete(f"{pods}/one", gracePeriodSeconds=0)
        drained = await draining
    assert (drained.code, reasons) == (0, ["EvictionByEvictionAPI"])
    assert f"node/{node} drained" in drained.out
    assert (await rest.get(f"/api/v1/nodes/{node}")).body["spec"]["unschedulable"] is True


async def test_describe_shows_the_object_and_its_events(
    kubectl: Kubectl, rest: Rest, namespace: str, pods: str
) -> None:
    pod = (await rest.post(pods, a_pod("one"))).body
    about = {"kind": "Pod", "namespace": namespace, "name": "one", "uid": pod["metadata"]["uid"]}
    event = {
        "metadata": {"name": "one.1", "namespace": namespace},
        "involvedObject": about,
        "reason": "Tested",
        "message": "It was tested.",
        "type": "Normal",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "test"},
    }
    assert (await rest.post(f"/api/v1/namespaces/{namespace}/events", event)).code == 201
    described = await kubectl("describe", "pod", "one")
    assert described.code == 0
    assert "It was tested." in described.out
    listed = (await kubectl("get", "events")).out.splitlines()
    assert listed[1].split()[1:4] == ["Normal", "Tested", "pod/one"]
