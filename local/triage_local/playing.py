"""A local cluster to play with, until its owner has enough."""

import asyncio
from pathlib import Path

from rich.console import Console

from triage_local.apiserver import ApiServer
from triage_local.cluster import Gemini, LocalCluster
from triage_local.lone import LoneApiServer
from triage_local.objects import NAMESPACE

_TRY = f"""\
  export KUBECONFIG={{kubeconfig}}

  kubectl get triageruns                       # in namespace {NAMESPACE}; short names: tr, ta
  kubectl create -f - <<'END'
  apiVersion: triage-operator.dev/v1alpha1
  kind: TriageRun
  metadata: {{{{generateName: tokens-}}}}
  spec: {{{{report: The tokens page says that deploy tokens never expire. Mine stopped working after 90 days.}}}}
  END
  kubectl apply -f examples/own-docs.yaml      # pages of your own, from a ConfigMap
  kubectl get pods --output wide
  pgrep -fl 'triage attempt'                   # each pod is such a process: kill -9 one, and see what happens
  kubectl delete pod POD                       # or lose one politely
  kubectl drain node-1 --delete-emptydir-data  # or a whole node; kubectl uncordon node-1 brings it back
  kubectl describe triagerun RUN               # what was lost, why, and what was made of it

Metrics of the operator    {{operator}}/metrics
Log of the operator        {{log}}
URL of the database        kubectl get secret triage-database --output jsonpath='{{{{.data.url}}}}' | base64 -d
{{model}}

Ctrl-C ends and removes all of it."""

_SCRIPTED = """\
Scripted model             {url}/requests lists what it was asked
  with time for losses     curl {url}/faults --data '{{"delay_seconds": 5, "times": 999}}'"""


async def play(*, kubeconfig: Path | None, gemini: Gemini | None, server: ApiServer | LoneApiServer) -> int:
    """Keep a cluster running until cancelled; give an exit status if the operator ends before."""
    console = Console(highlight=False, soft_wrap=True)
    console.print("Starting a cluster with two nodes ...")
    async with LocalCluster(kubeconfig=kubeconfig, gemini=gemini, server=server) as cluster:
        model = (
            f"Model                      {gemini.name}" if gemini else _SCRIPTED.format(url=cluster.model.url)
        )
        console.print(
            _TRY.format(
                kubeconfig=cluster.kubeconfig,
                operator=cluster.operator.url,
                log=cluster.operator.log,
                model=model,
            ),
            markup=False,
        )
        try:
            code = await cluster.operator.wait()
        except asyncio.CancelledError:
            console.print("Ending the cluster ...")
            raise
        console.print(f"The operator ended with {code}: {cluster.operator.tail()}", markup=False)
        return 1
