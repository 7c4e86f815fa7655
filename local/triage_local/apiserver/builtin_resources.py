"""The resources that are there without a definition."""

from triage_local.apiserver import columns, events
from triage_local.apiserver.resources import Resource
from triage_local.apiserver.strategies.base import Strategy
from triage_local.apiserver.strategies.definitions import DefinitionStrategy
from triage_local.apiserver.strategies.namespaces import NamespaceStrategy
from triage_local.apiserver.strategies.pods import PodStrategy
from triage_local.apiserver.strategies.reviews import ReviewStrategy
from triage_local.apiserver.strategies.secrets import SecretStrategy


def builtin_resources() -> list[Resource]:
    """All of them, in the order of discovery."""
    return [*_core_resources(), *_grouped_resources()]


def _core_resources() -> list[Resource]:
    return [
        Resource(
            group="",
            version="v1",
            plural="configmaps",
            kind="ConfigMap",
            strategy=Strategy(model="V1ConfigMap"),
            short_names=("cm",),
            columns=columns.CONFIG_MAPS,
        ),
        Resource(
            group="",
            version="v1",
            plural="events",
            kind="Event",
            strategy=Strategy(model="CoreV1Event"),
            short_names=("ev",),
            columns=columns.EVENTS,
            fields=events.FIELDS,
        ),
        Resource(
            group="",
            version="v1",
            plural="namespaces",
            kind="Namespace",
            namespaced=False,
            strategy=NamespaceStrategy(),
            short_names=("ns",),
            subresources=("status", "finalize"),
            columns=columns.NAMESPACES,
            fields={"status.phase": ""},
        ),
        Resource(
            group="",
            version="v1",
            plural="nodes",
            kind="Node",
            namespaced=False,
            strategy=Strategy(model="V1Node", has_status=True),
            short_names=("no",),
            subresources=("status",),
            columns=columns.NODES,
            fields={"spec.unschedulable": "false"},
        ),
        Resource(
            group="",
            version="v1",
            plural="pods",
            kind="Pod",
            strategy=PodStrategy(),
            short_names=("po",),
            categories=("all",),
            subresources=("status", "binding", "eviction", "log", "resize"),
            columns=columns.PODS,
            fields={
                "spec.nodeName": "",
                "spec.restartPolicy": "",
                "spec.schedulerName": "",
                "spec.serviceAccountName": "",
                "spec.hostNetwork": "false",
                "status.phase": "",
                "status.podIP": "",
                "status.nominatedNodeName": "",
            },
        ),
        Resource(
            group="",
            version="v1",
            plural="secrets",
            kind="Secret",
            strategy=SecretStrategy(model="V1Secret"),
            columns=columns.SECRETS,
            fields={"type": ""},
        ),
        Resource(
            group="",
            version="v1",
            plural="serviceaccounts",
            kind="ServiceAccount",
            strategy=Strategy(model="V1ServiceAccount"),
            short_names=("sa",),
        ),
    ]


def _grouped_resources() -> list[Resource]:
    return [
        Resource(
            group="apiextensions.k8s.io",
            version="v1",
            plural="customresourcedefinitions",
            kind="CustomResourceDefinition",
            namespaced=False,
            strategy=DefinitionStrategy(),
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            subresources=("status",),
            columns=columns.DEFINITIONS,
        ),
        Resource(
            group="authorization.k8s.io",
            version="v1",
            plural="selfsubjectaccessreviews",
            kind="SelfSubjectAccessReview",
            namespaced=False,
            strategy=ReviewStrategy(),
            verbs=("create",),
        ),
        Resource(
            group="coordination.k8s.io",
            version="v1",
            plural="leases",
            kind="Lease",
            strategy=Strategy(model="V1Lease"),
            columns=columns.LEASES,
        ),
        Resource(
            group="events.k8s.io",
            version="v1",
            plural="events",
            kind="Event",
            strategy=Strategy(model="EventsV1Event"),
            short_names=("ev",),
            columns=columns.EVENTS,
            storage_group="",
            external=events.new_shape,
            internal=events.core_shape,
        ),
    ]
