"""Write the files that are made from code, or check that they are current.

``python hack/generate.py`` writes them; with ``--check`` it writes nothing, prints what would change, and
exits 1 if anything would.
"""

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml
from api_reference import render_api_reference
from chart_reference import (
    render_chart_crd,
    render_chart_readme,
    render_chart_rules,
    render_values_schema,
)
from conditions_reference import render_conditions_reference
from operator_reference import render_metrics_reference, render_settings_reference

from triage_contract.api.crds import AGENT, RUN, build_crd

ROOT: Final = Path(__file__).resolve().parent.parent
# The dashboards are no part of what is installed.
sys.path.append(str(ROOT))
from dashboards.rendering import BUILDERS, render_dashboard  # noqa: E402

_YAML_HEADER: Final = "# Made by hack/generate.py; edit what it is made from.\n"


def render_yaml(build: Callable[[], Mapping[str, Any]]) -> str:
    """Return a manifest as text."""
    return _YAML_HEADER + yaml.safe_dump(build(), sort_keys=False, width=110, allow_unicode=True)


FILES: Final[Mapping[str, Callable[[], str]]] = {
    "crds/triageruns.yaml": partial(render_yaml, partial(build_crd, RUN)),
    "crds/triageagents.yaml": partial(render_yaml, partial(build_crd, AGENT)),
    "charts/triage-operator/templates/crds/triageruns.yaml": partial(render_chart_crd, RUN),
    "charts/triage-operator/templates/crds/triageagents.yaml": partial(render_chart_crd, AGENT),
    "charts/triage-operator/templates/_rules.tpl": render_chart_rules,
    "charts/triage-operator/values.schema.json": render_values_schema,
    "charts/triage-operator/README.md": render_chart_readme,
    "docs/reference/api.md": render_api_reference,
    "docs/conditions.md": render_conditions_reference,
    "docs/reference/settings.md": render_settings_reference,
    "docs/reference/metrics.md": render_metrics_reference,
    **{
        f"charts/triage-operator/dashboards/{name}.json": partial(render_dashboard, name) for name in BUILDERS
    },
}
"""Each generated file, below the root, and what returns its text."""


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description="Write the files that are made from code.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; show what would change and exit 1"
    )
    check = parser.parse_args().check
    stale = 0
    for name, render in FILES.items():
        path, new = ROOT / name, render()
        old = path.read_text("utf-8") if path.exists() else ""
        if old == new:
            continue
        stale += 1
        if check:
            sys.stdout.writelines(
                difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, f"{name} (generated)")
            )
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new, "utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
