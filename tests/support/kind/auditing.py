"""What the API server of the cluster wrote down about the operator."""

import json
from datetime import datetime
from typing import Final

from support.charts import NAMESPACE
from support.kind.programs import SYSTEM, Programs
from support.rights import Rights, granted

USER: Final = f"system:serviceaccount:{SYSTEM}:triage-operator"

# As hack/cluster/create sets it; older files lie beside the newest.
_LOG: Final = "/var/log/kubernetes/audit/audit*.log"
_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"


async def audit_log(programs: Programs) -> list[str]:
    """Give the lines about the operator. AssertionError: there are none, as on a cluster that was made without."""
    node = (await programs.kubectl("get", "nodes", f"--selector={_CONTROL_PLANE}", "--output=name")).strip()
    found = await programs.docker("exec", node.removeprefix("node/"), "sh", "-c", f"grep -hF '{USER}' {_LOG}")
    return found.splitlines()


async def installed_at(programs: Programs) -> datetime:
    """Give when the release of these tests came."""
    created = await programs.kubectl(
        "get", "namespace", SYSTEM, "--output=jsonpath={.metadata.creationTimestamp}"
    )
    return datetime.fromisoformat(created)


async def rights(programs: Programs) -> Rights:
    """Give what the operator's roles grant on the cluster."""
    roles = (
        ("clusterrole", f"{NAMESPACE}-triage-operator"),
        ("role", "triage-operator-lease", "--namespace", SYSTEM),
    )
    return granted(*[json.loads(await programs.kubectl("get", *role, "--output=json")) for role in roles])
