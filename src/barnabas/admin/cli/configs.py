"""`barnabas configs`: the settings of topics and brokers, with where each comes from."""

from collections.abc import Sequence

import click

from barnabas.admin.cli.program import parse_settings, run, with_cluster
from barnabas.admin.cli.session import Session
from barnabas.admin.failures import refusal
from barnabas.client.configs import (
    Alteration,
    ConfigOperation,
    ConfigSource,
    Resource,
    ResourceType,
    alter_configs,
    describe_configs,
)

KINDS = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER, "group": ResourceType.GROUP}
OWN = frozenset(
    {
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        ConfigSource.DYNAMIC_BROKER_CONFIG,
        ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
        ConfigSource.STATIC_BROKER_CONFIG,
        ConfigSource.DYNAMIC_GROUP_CONFIG,
    }
)
"""Sources other than the default."""


@click.group(help="Settings of topics, brokers and groups: describe, alter.")
def configs() -> None:
    """Holds the verbs."""


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(configs, "configs", arguments)


def _names(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    from barnabas.admin.cli.names import group_names, topic_names

    kind = context.params.get("kind")
    if kind == "topic":
        return topic_names(context, parameter, begun)
    return group_names(context, parameter, begun) if kind == "group" else []


kind_argument = click.argument("kind", type=click.Choice(list(KINDS)))
name_argument = click.argument("name", shell_complete=_names)


@configs.command(help="Show what is set, and with --all every key with its default.")
@with_cluster
@kind_argument
@name_argument
@click.option("--all", "is_all", is_flag=True, help="Also what is at its default.")
@click.option("--key", "keys", metavar="KEY", multiple=True, help="This key alone.")
def describe(session: Session, kind: str, name: str, is_all: bool, keys: tuple[str, ...]) -> None:
    resource = _resource(session, kind, name)
    entries = session.run(describe_configs(session.cluster, resource, keys=keys or None))
    rows = [
        (
            entry.name,
            "(hidden)" if entry.is_sensitive else entry.value,
            entry.source.name.lower().removesuffix("_config").replace("_", " "),
        )
        for entry in entries
        if is_all or keys or entry.source in OWN
    ]
    session.table(("key", "value", "source"), rows)


@configs.command(help="Set keys, or take their values away, and leave the others as they are.")
@with_cluster
@kind_argument
@name_argument
@click.option("--set", "given", metavar="KEY=VALUE", multiple=True, help="Give a key a value.")
@click.option("--unset", metavar="KEY", multiple=True, help="Back to what is the default.")
@click.option("--append", metavar="KEY=VALUE", multiple=True, help="Add to a list.")
@click.option("--subtract", metavar="KEY=VALUE", multiple=True, help="Take out of a list.")
@click.option("--dry-run", is_flag=True, help="Have it judged, change nothing.")
def alter(
    session: Session,
    kind: str,
    name: str,
    given: tuple[str, ...],
    unset: tuple[str, ...],
    append: tuple[str, ...],
    subtract: tuple[str, ...],
    dry_run: bool,
) -> None:
    alterations = [
        Alteration(key, operation, value)
        for operation, pairs in (
            (ConfigOperation.SET, given),
            (ConfigOperation.APPEND, append),
            (ConfigOperation.SUBTRACT, subtract),
        )
        for key, value in parse_settings(pairs).items()
    ]
    alterations += [Alteration(key, ConfigOperation.DELETE) for key in unset]
    if not alterations:
        raise click.UsageError("nothing to alter: give --set, --unset, --append or --subtract")
    resource = _resource(session, kind, name)
    operation = alter_configs(session.cluster, resource, alterations, validate_only=dry_run)
    verdict = session.run(operation)
    if not verdict.is_ok:
        raise refusal(f"{kind} {name}", verdict.code, verdict.message)
    done = "would be altered" if dry_run else "altered"
    session.tell(
        f"{kind} {name} {done}: {', '.join(each.name for each in alterations)}",
        {"kind": kind, "name": name, "keys": [each.name for each in alterations]},
    )


def _resource(session: Session, kind: str, name: str) -> Resource:
    if kind == "topic":
        session.find_topic(name)
    elif kind == "broker" and not name.isdigit():
        raise click.UsageError(f"a broker is named by its number, not {name!r}")
    return Resource(KINDS[kind], name)
