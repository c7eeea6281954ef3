"""`kafka-configs.sh`: settings with the flags, output and messages of Kafka 3.9."""

import re
from collections.abc import Sequence
from pathlib import Path

from barnabas.admin.kafka_scripts.options import BadOption, Options, ScriptEnded, Takes
from barnabas.admin.kafka_scripts.script import (
    KAFKA_VERSION,
    connect,
    exception_name,
    message_of,
    run_script,
)
from barnabas.client.configs import (
    Alteration,
    ConfigEntry,
    ConfigOperation,
    ConfigSource,
    Resource,
    ResourceType,
    alter_configs,
    describe_configs,
)
from barnabas.client.errors import ClientError, RequestRefused
from barnabas.formats.properties import read_properties
from barnabas.model.errors import BarnabasError
from barnabas.node.blocking_client import BlockingClient
from barnabas.node.output import say, say_beside

PURPOSE = (
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, "
    "ip or client-metrics"
)
KINDS = {
    "topics": ResourceType.TOPIC,
    "brokers": ResourceType.BROKER,
    "broker-loggers": ResourceType.BROKER_LOGGER,
    "client-metrics": ResourceType.CLIENT_METRICS,
}
QUOTA_KINDS = ("users", "clients", "ips")
ALL_KINDS = (
    *("topics", "clients", "users", "brokers", "ips"),
    *("broker-loggers", "client-metrics"),
)
DYNAMIC = {
    "topics": ConfigSource.DYNAMIC_TOPIC_CONFIG,
    "brokers": ConfigSource.DYNAMIC_BROKER_CONFIG,
    "client-metrics": ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
}
FLAGS = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
}
DEFAULT_FLAGS = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
KNOWN = {
    **dict.fromkeys(("alter", "describe", "all", "entity-default", "force"), Takes.NOTHING),
    **dict.fromkeys(DEFAULT_FLAGS, Takes.NOTHING),
    **dict.fromkeys(FLAGS, Takes.TEXT),
    **dict.fromkeys(("bootstrap-server", "command-config", "entity-type"), Takes.TEXT),
    **dict.fromkeys(("entity-name", "add-config", "add-config-file"), Takes.TEXT),
    **dict.fromkeys(("delete-config", "zookeeper", "bootstrap-controller"), Takes.TEXT),
}
OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"


class _Refused(Exception):
    """The command line, or what it asks for, is refused before anything is changed."""


def main(arguments: Sequence[str]) -> int:
    """Run the script; its exit code."""
    return run_script(_run, arguments)


def _run(arguments: Sequence[str]) -> None:
    try:
        options = Options(KNOWN, arguments)
        options.end_for_help(KAFKA_VERSION, PURPOSE)
        kind, name = _check(options)
        with connect(options) as client:
            if options.has("alter"):
                _alter(options, client, kind, name or "")
            else:
                _describe(options, client, kind, name)
    except (_Refused, BadOption) as problem:
        say_beside(str(problem))
        raise ScriptEnded from problem
    except ClientError as problem:
        say_beside(f"Error while executing config command with args '{' '.join(arguments)}'")
        text = str(problem)
        if isinstance(problem, RequestRefused):
            text = f"{exception_name(problem.code)}: {message_of(problem.code, problem.message)}"
        say_beside(f"java.util.concurrent.ExecutionException: {text}")
        raise ScriptEnded from problem


def _check(options: Options) -> tuple[str, str | None]:
    """Whose settings: a kind of entity, and a name; an empty one is the default of all."""
    if options.has("alter") == options.has("describe"):
        raise options.end_with_usage("Command must include exactly one action: --describe, --alter")
    options.refuse_together("describe", ("add-config", "delete-config"))
    kinds = options.values("entity-type")
    flags = {**FLAGS, **DEFAULT_FLAGS}
    by_flag = [kind for flag, kind in flags.items() if options.has(flag)]
    kinds = [*kinds, *by_flag]
    if not options.has("bootstrap-server"):
        raise _Refused(
            "One of the required --bootstrap-server, --boostrap-controller, or --zookeeper "
            "arguments must be specified"
        )
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise _Refused(
                f"Invalid entity type {kind}, the entity type must be one of "
                f"{', '.join(ALL_KINDS)} with a --bootstrap-server or --bootstrap-controller "
                "argument"
            )
    if not kinds:
        raise _Refused("At least one entity type must be specified")
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise _Refused("Only 'users' and 'clients' entity types may be specified together")
    entity = ("entity-name", "entity-type", "entity-default")
    if by_flag and any(options.has(each) for each in entity):
        raise _Refused(
            "--entity-{type,name,default} should not be used in conjunction with specific "
            "entity flags"
        )
    if kinds[0] in QUOTA_KINDS:
        raise _Refused(f"{kinds[0]}: quotas and credentials are not served here yet")
    name = _name(options)
    _check_name(options, kinds[0], name)
    return kinds[0], name


def _name(options: Options) -> str | None:
    if options.has("entity-default") or any(options.has(flag) for flag in DEFAULT_FLAGS):
        return ""
    for flag in FLAGS:
        if options.has(flag):
            return options.value(flag)
    return options.value("entity-name")


def _check_name(options: Options, kind: str, name: str | None) -> None:
    if name and kind in ("brokers", "broker-loggers") and not name.isdigit():
        raise _Refused(
            f"The entity name for {kind} must be a valid integer broker id, but it is: {name}"
        )
    if not options.has("alter"):
        return
    if kind != "brokers" and name is None:
        raise _Refused(f"an entity name must be specified with --alter of {kind}")
    if kind == "brokers" and name is None:
        raise _Refused("An entity-name or default entity must be specified with --alter of brokers")
    if not any(options.has(each) for each in ("add-config", "add-config-file", "delete-config")):
        raise _Refused(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )
    if options.has("add-config") and options.has("add-config-file"):
        raise _Refused("Only one of --add-config or --add-config-file must be specified")


def _alter(options: Options, client: BlockingClient, kind: str, name: str) -> None:
    added = _added(options)
    deleted = [key.strip() for text in options.values("delete-config") for key in text.split(",")]
    resource = Resource(KINDS[kind], name)
    had = {entry.name for entry in _entries(client, kind, name, is_all=False)}
    missing = [key for key in deleted if key not in had]
    if missing:
        raise _Refused(f"Invalid config(s): {','.join(missing)}")
    alterations = [Alteration(key, ConfigOperation.SET, value) for key, value in added.items()]
    alterations += [Alteration(key, ConfigOperation.DELETE, "") for key in deleted]
    verdict = client.run(alter_configs(client.cluster, resource, alterations))
    if not verdict.is_ok:
        raise RequestRefused(name, verdict.code, verdict.message)
    if name:
        say(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        say(f"Completed updating default config for {kind} in the cluster.")


def _describe(options: Options, client: BlockingClient, kind: str, name: str | None) -> None:
    is_all = options.has("all")
    for entity in [name] if name is not None else _entities(client, kind):
        if entity == "":
            say(f"Default configs for {kind} in the cluster are:")
        else:
            say(f"{'All' if is_all else 'Dynamic'} configs for {kind[:-1]} {entity} are:")
        for entry in _entries(client, kind, entity, is_all=is_all):
            synonyms = ", ".join(
                f"{each.source.name}:{each.name}={_text(each.value)}" for each in entry.synonyms
            )
            is_sensitive = "true" if entry.is_sensitive else "false"
            say(
                f"  {entry.name}={_text(entry.value)} sensitive={is_sensitive} "
                f"synonyms={{{synonyms}}}"
            )


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _entities(client: BlockingClient, kind: str) -> list[str]:
    told = client.run(client.cluster.describe(None))
    if kind == "topics":
        return sorted(told.topics)
    if kind == "brokers":
        return [*(str(broker_id) for broker_id in sorted(told.brokers)), ""]
    raise _Refused(f"An entity name must be specified with --describe of {kind}")


def _entries(client: BlockingClient, kind: str, name: str, *, is_all: bool) -> list[ConfigEntry]:
    entries = client.run(describe_configs(client.cluster, Resource(KINDS[kind], name)))
    wanted = DYNAMIC.get(kind)
    if kind == "brokers" and not name:
        wanted = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    if is_all or wanted is None:
        return entries
    return [entry for entry in entries if entry.source is wanted]


def _added(options: Options) -> dict[str, str]:
    found: dict[str, str] = {}
    path = options.value("add-config-file")
    if path is not None:
        try:
            settings = read_properties(Path(path).read_bytes(), path)
        except (OSError, BarnabasError) as problem:
            raise _Refused(f"{path} cannot be read: {problem}") from problem
        found = {each.name: each.text for each in settings}
    text = options.value("add-config")
    if text is not None:
        for pair in re.split("," + OUTSIDE_BRACKETS, text):
            parts = re.split(r"\s*=\s*" + OUTSIDE_BRACKETS, pair)
            if len(parts) != 2:
                raise _Refused(
                    "requirement failed: Invalid entity config: all configs to be added must be "
                    'in the format "key=val".'
                )
            found[parts[0].strip()] = re.sub(r"[\[\]]", "", parts[1]).strip()
    for key in found:
        if not re.fullmatch(r"[a-zA-Z0-9._-]*", key):
            raise _Refused(f"Invalid character found for config key: {key}")
    return found
