"""Settings from flags and the environment: each field of a settings group is a flag, and its docstring the help."""

import ast
import inspect
import socket
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum, EnumType
from secrets import token_hex
from typing import Any, Final, TypeVar

import click

from triage_operator.kube import own_namespace
from triage_operator.settings import (
    DatabaseSettings,
    DecidingSettings,
    KubeSettings,
    LeaseSettings,
    ReconcilingSettings,
    ServingSettings,
    Settings,
)

PREFIX: Final = "TRIAGE_OPERATOR_"
"""What the environment variable of every flag begins with."""

GROUPS: Final[Mapping[str, tuple[str, type]]] = {
    "database": ("database-", DatabaseSettings),
    "kube": ("kube-", KubeSettings),
    "lease": ("lease-", LeaseSettings),
    "serving": ("serve-", ServingSettings),
    "reconciling": ("", ReconcilingSettings),
    "deciding": ("", DecidingSettings),
}
"""The groups of ``Settings`` by field, each with what the names of its flags begin with."""

_COMPUTED: Final = {
    "lease_namespace": "the pod's own namespace, else `default`",
    "lease_identity": "the host name and a random suffix",
}
"""Defaults that depend on where the process runs."""

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One flag. ``default`` None: none, or one that ``default_text`` describes."""

    group: str
    field: str
    flag: str
    type: Any
    default: Any
    default_text: str | None
    required: bool
    help: str

    @property
    def parameter(self) -> str:
        """The name that click gives the value."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.parameter.upper()


def options_of(*groups: str) -> tuple[Option, ...]:
    """Give the flags of some groups of settings."""
    return tuple(option for group in groups for option in _options(group))


def taking(*groups: str) -> Callable[[Command], Command]:
    """Add the flags of some groups of settings to a command."""

    def decorate(command: Command) -> Command:
        for option in reversed(options_of(*groups)):
            # click takes a default of None for one, and a required flag for given.
            default = {} if option.default is None else {"default": _as_click_has_it(option.default)}
            add = click.option(
                option.flag,
                envvar=option.variable,
                show_envvar=True,
                type=option.type,
                required=option.required,
                show_default=option.default_text or bool(default),
                help=option.help,
                **default,
            )
            command = add(command)
        return command

    return decorate


def build(group: str, values: Mapping[str, Any]) -> Any:
    """Build a group of settings from click's values; what they lack is computed."""
    _, settings = GROUPS[group]
    computed = {
        "lease_namespace": lambda: own_namespace() or "default",
        "lease_identity": lambda: f"{socket.gethostname()}_{token_hex(4)}",
    }
    chosen = {}
    for option in _options(group):
        value = values[option.parameter]
        if value is None and option.parameter in computed:
            value = computed[option.parameter]()
        chosen[option.field] = value
    return settings(**chosen)


def build_all(values: Mapping[str, Any]) -> Settings:
    """Build all settings from click's values."""
    return Settings(
        namespaces=tuple(values["namespace"]),
        cluster_id=values["cluster_id"],
        **{group: build(group, values) for group in GROUPS},
    )


def _options(group: str) -> tuple[Option, ...]:
    prefix, settings = GROUPS[group]
    hints, texts = typing.get_type_hints(settings), _docstrings(settings)
    made = []
    for field in fields(settings):
        flag = f"--{prefix}{field.name.replace('_', '-')}"
        parameter = flag.removeprefix("--").replace("-", "_")
        default = None if field.default is MISSING else field.default
        made.append(
            Option(
                group=group,
                field=field.name,
                flag=flag,
                type=_click_type(hints[field.name]),
                default=default,
                default_text=_COMPUTED.get(parameter),
                required=field.default is MISSING and parameter not in _COMPUTED,
                help=texts[field.name],
            )
        )
    return tuple(made)


def _as_click_has_it(default: Any) -> Any:
    # click names the members of an enum.
    return default.name.lower() if isinstance(default, Enum) else default


def _click_type(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        (hint,) = (part for part in hint.__args__ if part is not types.NoneType)
    if isinstance(hint, EnumType):
        return click.Choice(hint, case_sensitive=False)
    # Nothing that is counted or measured here makes sense below zero.
    if hint is int:
        return click.IntRange(min=0)
    return click.FloatRange(min=0) if hint is float else hint


def _docstrings(settings: type) -> dict[str, str]:
    """Read the docstrings of a class's fields from its source, where Python leaves them."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(settings))).body
    assert isinstance(body, ast.ClassDef)
    texts = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            texts[field.target.id] = _help(str(text.value.value))
    return texts


def _help(docstring: str) -> str:
    return " ".join(docstring.replace("``", "`").replace("None:", "Not set:").split())
