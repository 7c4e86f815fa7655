"""The JSON of each dashboard."""

import json
from typing import Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import exactly_once, fleet, operator, recovery

BUILDERS: Final = {
    "fleet": fleet.build,
    "recovery": recovery.build,
    "exactly-once": exactly_once.build,
    "operator": operator.build,
}


def render_dashboard(name: str) -> str:
    """Give the JSON of one of ``BUILDERS``."""
    built = json.loads(JSONEncoder(sort_keys=True).encode(BUILDERS[name]().build()))
    return json.dumps(built, indent=1, sort_keys=True) + "\n"
