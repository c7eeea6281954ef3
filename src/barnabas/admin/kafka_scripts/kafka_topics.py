"""`kafka-topics.sh`: topics with the flags, output and messages of Kafka 3.9."""

import re
from collections.abc import Iterable, Sequence

from barnabas.admin.kafka_scripts.java_order import in_map_order, string_hash
from barnabas.admin.kafka_scripts.options import BadOption, Options, ScriptEnded, Takes
from barnabas.admin.kafka_scripts.script import (
    KAFKA_VERSION,
    connect,
    message_of,
    run_script,
    sentence,
)
from barnabas.admin.kafka_scripts.topic_settings import complaint_about
from barnabas.client.configs import (
    ConfigEntry,
    ConfigSource,
    Resource,
    ResourceType,
    describe_configs,
)
from barnabas.client.errors import ClientError, RequestRefused
from barnabas.client.metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from barnabas.client.topics import (
    BROKER_DEFAULT,
    NewTopic,
    Verdict,
    create_partitions,
    create_topics,
    delete_topics,
)
from barnabas.formats.znodes.uuids import uuid_text
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_TOPIC_ID, BrokerId
from barnabas.node.blocking_client import BlockingClient
from barnabas.node.output import say, say_beside

PURPOSE = "This tool helps to create, delete, describe, or change a topic."
ACTIONS = ("alter", "create", "delete", "describe", "list")
REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)
KNOWN = {
    **dict.fromkeys(ACTIONS, Takes.NOTHING),
    **dict.fromkeys(REPORTS, Takes.NOTHING),
    "bootstrap-server": Takes.TEXT,
    "command-config": Takes.TEXT,
    "topic": Takes.TEXT,
    "topic-id": Takes.TEXT,
    "config": Takes.TEXT,
    "delete-config": Takes.TEXT,
    "partitions": Takes.NUMBER,
    "replication-factor": Takes.NUMBER,
    "replica-assignment": Takes.TEXT,
    "topics-with-overrides": Takes.NOTHING,
    "if-exists": Takes.NOTHING,
    "if-not-exists": Takes.NOTHING,
    "exclude-internal": Takes.NOTHING,
    "partition-size-limit-per-response": Takes.NUMBER,
}
COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
    "could collide. To avoid issues it is best to use either, but not both."
)
REPLICATION_FACTOR_MAX = 32767
MIN_ISR = "min.insync.replicas"


class _Failed(Exception):
    """The action failed; the message is the end of the line that is printed."""


def main(arguments: Sequence[str]) -> int:
    """Run the script; its exit code."""
    return run_script(_run, arguments)


def _run(arguments: Sequence[str]) -> None:
    options = Options(KNOWN, arguments)
    _check(options)
    try:
        with connect(options) as client:
            if options.has("create"):
                _create(options, client)
            elif options.has("alter"):
                _alter(options, client)
            elif options.has("list"):
                say("\n".join(_topics(options, _all_topics(client))))
            elif options.has("describe"):
                _describe(options, client)
            else:
                _delete(options, client)
    except (_Failed, BadOption, ClientError) as problem:
        text = str(problem)
        if isinstance(problem, RequestRefused):
            text = message_of(problem.code, problem.message)
        say(f"Error while executing topic command : {text}")
        raise ScriptEnded from problem


# -- which options go together -----------------------------------------------------------------


def _check(options: Options) -> None:
    if not options.arguments:
        raise options.end_with_usage("Create, delete, describe, or change a topic.")
    options.end_for_help(KAFKA_VERSION, PURPOSE)
    if sum(options.has(action) for action in ACTIONS) != 1:
        raise options.end_with_usage(
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete"
        )
    if not options.has("bootstrap-server"):
        say_beside("--bootstrap-server must be specified")
        raise ScriptEnded
    if options.has("describe") and options.has("if-exists"):
        if not options.has("topic") and not options.has("topic-id"):
            raise options.end_with_usage("--topic or --topic-id is required to describe a topic")
        if options.has("topic") and options.has("topic-id"):
            say(
                "Only topic id will be used when both --topic and --topic-id are specified "
                "and topicId is not Uuid.ZERO_UUID"
            )
    if not options.has("list") and not options.has("describe"):
        options.require("topic")
    if options.has("alter"):
        if options.has("config"):
            raise options.end_with_usage(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
                '"[alter]" (the kafka-configs CLI supports altering topic configs with a '
                "--bootstrap-server option)"
            )
        options.require("partitions")
    _check_combinations(options)


def _check_combinations(options: Options) -> None:
    allowed = {
        "config": ("alter", "create"),
        "partitions": ("alter", "create"),
        "replication-factor": ("create",),
        "replica-assignment": ("alter", "create"),
    }
    for name, actions in allowed.items():
        options.refuse_together(name, _others(*actions))
    if options.has("create"):
        options.refuse_together("replica-assignment", ("partitions", "replication-factor"))
    for report in REPORTS:
        options.refuse_together(report, ("topics-with-overrides", *_others("describe")))
    options.refuse_together("topics-with-overrides", (*REPORTS, *_others("describe")))
    options.refuse_together("if-exists", _others("alter", "delete", "describe"))
    options.refuse_together("if-not-exists", _others("create"))
    options.refuse_together("exclude-internal", _others("list", "describe"))


def _others(*actions: str) -> tuple[str, ...]:
    return tuple(action for action in ACTIONS if action not in actions)


# -- the actions -------------------------------------------------------------------------------


def _create(options: Options, client: BlockingClient) -> None:
    name = options.value("topic") or ""
    assignment = _assignment(options)
    configs = _configs(options)
    if "." in name or "_" in name:
        say(COLLISION)
    replication_factor = options.number("replication-factor")
    if replication_factor is not None and not 1 <= replication_factor <= REPLICATION_FACTOR_MAX:
        raise _Failed(
            f"The replication factor must be between 1 and {REPLICATION_FACTOR_MAX} inclusive"
        )
    partitions = options.number("partitions")
    if partitions is not None and partitions < 1:
        raise _Failed("The partitions must be greater than 0")
    new = NewTopic(
        name,
        BROKER_DEFAULT if partitions is None else partitions,
        BROKER_DEFAULT if replication_factor is None else replication_factor,
        assignment,
        configs,
    )
    verdict = client.run(create_topics(client.cluster, [new]))[name]
    if verdict.code is ErrorCode.TOPIC_ALREADY_EXISTS and options.has("if-not-exists"):
        return
    _expect([verdict])
    say(f"Created topic {name}.")


def _alter(options: Options, client: BlockingClient) -> None:
    _configs(options)
    assignment = _assignment(options)
    told = _all_topics(client)
    names = _expect_found(options, _topics(options, told))
    count = options.number("partitions") or 0
    for name in names:
        # The first entries are those of the partitions that are there (M2).
        new = assignment[len(told.topics[name].partitions) :] if assignment else None
        verdicts = client.run(create_partitions(client.cluster, {name: count}, new))
        _expect(verdicts.values())


def _delete(options: Options, client: BlockingClient) -> None:
    names = _expect_found(options, _topics(options, _all_topics(client)))
    if names:
        _expect(client.run(delete_topics(client.cluster, names)).values())


def _describe(options: Options, client: BlockingClient) -> None:
    told = _all_topics(client)
    wanted = options.value("topic-id")
    if wanted is not None and wanted != uuid_text(NO_TOPIC_ID):
        found = [name for name, each in told.topics.items() if uuid_text(each.topic_id) == wanted]
        if not found and not options.has("if-exists"):
            raise _Failed(f"TopicId '{wanted}' does not exist as expected")
    else:
        found = _expect_found(options, _topics(options, told))
    for name in in_map_order(found, string_hash):
        operation = describe_configs(client.cluster, Resource(ResourceType.TOPIC, name))
        entries = client.run(operation)
        topic = told.topics[name]
        overrides = [each for each in entries if each.source is not ConfigSource.DEFAULT_CONFIG]
        is_report = any(options.has(report) for report in REPORTS)
        if not is_report and (overrides or not options.has("topics-with-overrides")):
            _say_topic(topic, overrides, entries)
        if not options.has("topics-with-overrides"):
            minimum = next(int(each.value or 1) for each in entries if each.name == MIN_ISR)
            for partition in topic.partitions:
                if not is_report or _is_reported(options, partition, told, minimum):
                    _say_partition(name, partition)


def _say_topic(
    topic: TopicMetadata, overrides: Sequence[ConfigEntry], entries: Sequence[ConfigEntry]
) -> None:
    order = in_map_order([each.name for each in entries], string_hash)
    shown = sorted(overrides, key=lambda each: order.index(each.name))
    configs = ",".join(
        f"{each.name}={'null' if each.value is None else each.value}" for each in shown
    )
    topic_id = ""
    if topic.topic_id != NO_TOPIC_ID:
        topic_id = f"\tTopicId: {uuid_text(topic.topic_id)}"
    say(
        f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(topic.partitions)}"
        f"\tReplicationFactor: {topic.replication_factor}\tConfigs: {configs}"
    )


def _say_partition(name: str, partition: PartitionMetadata) -> None:
    leader = "none" if partition.leader_id < 0 else str(partition.leader_id)
    replicas = ",".join(str(each) for each in partition.replicas)
    isr = ",".join(str(each) for each in partition.isr)
    say(
        f"\tTopic: {name}\tPartition: {partition.partition}\tLeader: {leader}"
        f"\tReplicas: {replicas}\tIsr: {isr}\tElr: N/A\tLastKnownElr: N/A"
    )


def _is_reported(
    options: Options, partition: PartitionMetadata, told: ClusterMetadata, minimum: int
) -> bool:
    has_leader = partition.leader_id >= 0
    reports = {
        "under-replicated-partitions": len(partition.isr) < len(partition.replicas),
        "unavailable-partitions": partition.leader_id not in told.brokers,
        "under-min-isr-partitions": not has_leader or len(partition.isr) < minimum,
        "at-min-isr-partitions": len(partition.isr) == minimum,
    }
    return any(options.has(name) and is_so for name, is_so in reports.items())


# -- topics, settings, assignments ---------------------------------------------------------------


def _all_topics(client: BlockingClient) -> ClusterMetadata:
    return client.run(client.cluster.describe(None))


def _topics(options: Options, told: ClusterMetadata) -> list[str]:
    """Topics that the expression of `--topic` means; all of them without one."""
    names = sorted(told.topics)
    if options.has("exclude-internal"):
        names = [name for name in names if not told.topics[name].is_internal]
    given = options.value("topic")
    if given is None:
        return names
    text = given.strip().replace(",", "|").replace(" ", "")
    text = re.sub(r"^[\"']+|[\"']+$", "", text)
    try:
        expression = re.compile(text)
    except re.error:
        raise _Failed(f"{text} is an invalid regex.") from None
    return [name for name in names if expression.fullmatch(name)]


def _expect_found(options: Options, names: list[str]) -> list[str]:
    given = options.value("topic")
    if given and not names and not options.has("if-exists"):
        raise _Failed(f"Topic 'Optional[{given}]' does not exist as expected")
    return names


def _expect(verdicts: Iterable[Verdict]) -> None:
    for verdict in verdicts:
        if not verdict.is_ok:
            raise _Failed(sentence(verdict))


def _configs(options: Options) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in options.values("config"):
        parts = re.split(r"\s*=\s*", text)
        while parts and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise _Failed(
                "requirement failed: Invalid topic config: all configs to be added must be in "
                'the format "key=val".'
            )
        found[parts[0].strip()] = parts[1].strip()
    complaint = complaint_about(found)
    if complaint is not None:
        raise _Failed(complaint)
    return found


def _assignment(options: Options) -> list[list[BrokerId]]:
    text = options.value("replica-assignment")
    if not text:
        return []
    placed: list[list[BrokerId]] = []
    for index, part in enumerate(text.split(",")):
        replicas: list[BrokerId] = []
        for number in part.split(":"):
            try:
                replicas.append(BrokerId(int(number.strip())))
            except ValueError:
                raise _Failed(f'For input string: "{number.strip()}"') from None
        repeated = [each for each in dict.fromkeys(replicas) if replicas.count(each) > 1]
        if repeated:
            raise _Failed(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(str(each) for each in repeated)
            )
        placed.append(replicas)
        if len(replicas) != len(placed[0]):
            raise _Failed(f"Partition {index} has different replication factor: {replicas}")
    return placed
