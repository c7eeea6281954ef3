"""`kafka-consumer-groups.sh`: groups with the flags, output and messages of Kafka 3.9."""

from collections.abc import Mapping, Sequence

from barnabas.admin.kafka_scripts.group_resets import SCENARIOS, plan_reset, print_plan
from barnabas.admin.kafka_scripts.group_rows import OffsetRow, say_error, say_rows, state_allows
from barnabas.admin.kafka_scripts.java_order import in_map_order, partition_hash
from barnabas.admin.kafka_scripts.options import BadOption, Options, ScriptEnded, Takes
from barnabas.admin.kafka_scripts.script import (
    KAFKA_VERSION,
    connect,
    exception_name,
    message_of,
    run_script,
    sentence,
)
from barnabas.client.errors import ClientError, RequestRefused, describe
from barnabas.client.groups import (
    CommittedOffset,
    GroupDescription,
    GroupMember,
    commit_offsets,
    delete_group,
    delete_offsets,
    describe_group,
    fetch_offsets,
    list_groups,
)
from barnabas.client.offsets import LATEST, list_offsets
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node.blocking_client import BlockingClient
from barnabas.node.output import say, say_beside

PURPOSE = (
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer "
    "group info, or reset consumer group offsets."
)
ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
KNOWN = {
    **dict.fromkeys(ACTIONS, Takes.NOTHING),
    **dict.fromkeys(("all-groups", "all-topics", "dry-run", "execute"), Takes.NOTHING),
    **dict.fromkeys(("members", "verbose", "offsets"), Takes.NOTHING),
    **dict.fromkeys(("to-earliest", "to-latest", "to-current"), Takes.NOTHING),
    **dict.fromkeys(("bootstrap-server", "command-config", "group", "topic"), Takes.TEXT),
    **dict.fromkeys(("to-datetime", "by-duration"), Takes.TEXT),
    **dict.fromkeys(("timeout", "to-offset", "shift-by"), Takes.NUMBER),
    **dict.fromkeys(("state", "type"), Takes.MAYBE),
}
WITHOUT_EXECUTE = (
    "WARN: No action will be performed as the --execute option is missing.In a future major "
    "release, the default behavior of this command will be to prompt the user before executing "
    "the reset rather than doing a dry run. You should add the --dry-run option explicitly if "
    "you are scripting this command and want to keep the current default behavior without "
    "prompting."
)
SCOPES = {
    "describe": "[reset-offsets], [describe], [delete], [list]",
    "delete": "[all-groups], [group]",
    "reset-offsets": "[all-groups], [group]",
}
"""What the script itself names, not always what it means."""
MISSING = "-"


def main(arguments: Sequence[str]) -> int:
    """Run the script; its exit code."""
    return run_script(_run, arguments)


def _run(arguments: Sequence[str]) -> None:
    try:
        options = Options(KNOWN, arguments)
        options.end_for_help(KAFKA_VERSION, PURPOSE)
        _check(options)
    except BadOption as problem:
        say_beside(str(problem))
        raise ScriptEnded from problem
    try:
        with connect(options) as client:
            if options.has("list"):
                _list(options, client)
            elif options.has("describe"):
                _describe(options, client)
            elif options.has("delete"):
                _delete(options, client)
            elif options.has("delete-offsets"):
                _delete_offsets(options, client)
            else:
                _reset(options, client)
    except ClientError as problem:
        text = str(problem)
        if isinstance(problem, RequestRefused):
            text = f"{exception_name(problem.code)}: {message_of(problem.code, problem.message)}"
        # The script that this one stands in for ends with 0 here.
        say_error(f"Executing consumer group command failed due to {text}")


def _check(options: Options) -> None:
    options.require("bootstrap-server")
    if sum(options.has(action) for action in ACTIONS) != 1:
        raise options.end_with_usage(
            "Command must include exactly one action: "
            "--list, --describe, --delete, --reset-offsets, --delete-offsets"
        )
    for action, scopes in SCOPES.items():
        if options.has(action) and not (options.has("group") or options.has("all-groups")):
            raise options.end_with_usage(f"Option [{action}] takes one of these options: {scopes}")
    if options.has("describe") and sum(map(options.has, ("members", "offsets", "state"))) > 1:
        raise options.end_with_usage(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if options.has("delete") and options.has("topic"):
        raise options.end_with_usage(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        raise options.end_with_usage(
            "Option [delete-offsets] takes the following options: [all-groups], [group]"
        )
    if options.has("reset-offsets"):
        if options.has("dry-run") and options.has("execute"):
            raise options.end_with_usage(
                "Option [reset-offsets] only accepts one of [execute] and [dry-run]"
            )
        if not options.has("dry-run") and not options.has("execute"):
            say_beside(WITHOUT_EXECUTE)
        for scenario in SCENARIOS:
            options.refuse_together(scenario, (each for each in SCENARIOS if each != scenario))
    options.refuse_together("group", ("all-groups",))


def _groups(options: Options, client: BlockingClient) -> list[str]:
    if options.has("all-groups"):
        return [each.group_id for each in client.run(list_groups(client.cluster))]
    return list(dict.fromkeys(options.values("group")))


def _list(options: Options, client: BlockingClient) -> None:
    wanted = (options.value("state") or "").split(",") if options.value("state") else []
    groups = client.run(list_groups(client.cluster, [each.strip() for each in wanted]))
    with_type, with_state = options.has("type"), options.has("state")
    if not with_type and not with_state:
        for group in groups:
            say(group.group_id)
        return
    width = max((max(15, len(group.group_id)) for group in groups), default=15) + 10
    header = ["GROUP", *(["TYPE"] * with_type), *(["STATE"] * with_state)]
    rows = [
        [
            group.group_id,
            *([(group.type or "Classic").capitalize()] * with_type),
            *([group.state or "Unknown"] * with_state),
        ]
        for group in groups
    ]
    for row in (header, *rows):
        say(row[0].ljust(width) + "".join(f" {cell:<20}" for cell in row[1:]))


def _describe(options: Options, client: BlockingClient) -> None:
    for group in sorted(_groups(options, client)):
        told = client.run(describe_group(client.cluster, group))
        if options.has("members"):
            _describe_members(told, is_verbose=options.has("verbose"))
        elif options.has("state"):
            _describe_state(told)
        else:
            rows = _offset_rows(client, told)
            if state_allows(group, told.state, len(rows)):
                say_rows(rows)


def _offset_rows(client: BlockingClient, told: GroupDescription) -> list[OffsetRow]:
    committed = client.run(fetch_offsets(client.cluster, told.group_id))
    rows: list[OffsetRow] = []
    with_partitions = [member for member in told.members if member.assignment]
    for member in sorted(with_partitions, key=lambda member: -len(member.assignment)):
        rows += _rows_of(client, told.group_id, member.assignment, committed, member)
    assigned = {place for member in told.members for place in member.assignment}
    rest = [place for place in committed if place not in assigned]
    return rows + _rows_of(client, told.group_id, rest, committed, None)


def _rows_of(
    client: BlockingClient,
    group: str,
    places: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, CommittedOffset],
    member: GroupMember | None,
) -> list[OffsetRow]:
    ends = client.run(list_offsets(client.cluster, dict.fromkeys(places, LATEST)))
    who = (MISSING,) * 3
    if member is not None:
        who = (member.member_id, member.client_host, member.client_id)
    ordered = sorted(places, key=lambda place: place.partition)
    return [
        OffsetRow(
            group,
            place.topic,
            place.partition,
            committed[place].offset if place in committed else None,
            ends[place].offset,
            *who,
        )
        for place in in_map_order(ordered, partition_hash)
    ]


def _describe_members(told: GroupDescription, *, is_verbose: bool) -> None:
    state_allows(told.group_id, told.state, len(told.members))
    with_instances = any(member.instance_id for member in told.members)
    header = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows = [
        [
            told.group_id,
            member.member_id,
            member.instance_id or "",
            member.client_host,
            member.client_id,
            str(len(member.assignment)),
        ]
        for member in told.members
    ]
    least = (15, 15, 17, 15, 15, 15)
    widths = [max([least[at], *(len(row[at]) for row in rows)]) for at in range(5)] + [15]
    columns = [at for at in range(6) if at != 2 or with_instances]
    say("")
    for index, row in enumerate((header, *rows)):
        line = "".join(f"{row[at]:<{widths[at]}} " for at in columns)
        if is_verbose:
            line += "ASSIGNMENT" if index == 0 else _assignment(told.members[index - 1])
        say(line)


def _assignment(member: GroupMember) -> str:
    by_topic: dict[str, list[str]] = {}
    for place in member.assignment:
        by_topic.setdefault(place.topic, []).append(str(place.partition))
    return ", ".join(sorted(f"({','.join(sorted(each))})" for each in by_topic.values())) or MISSING


def _describe_state(told: GroupDescription) -> None:
    if not state_allows(told.group_id, told.state, 1):
        return
    coordinator = f"{told.coordinator_address}  ({told.coordinator_id})"
    width = max(25, len(coordinator))
    rows = (
        ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"),
        (told.group_id, coordinator, told.protocol, told.state, str(len(told.members))),
    )
    say("")
    for group, where, strategy, state, members in rows:
        say(f"{group:<{width}} {where:<25} {strategy:<20} {state:<15} {members}")


def _delete(options: Options, client: BlockingClient) -> None:
    deleted: list[str] = []
    failed: list[str] = []
    for group in _groups(options, client):
        verdict = client.run(delete_group(client.cluster, group))
        if verdict.is_ok:
            deleted.append(group)
        else:
            failed.append(
                f"* Group '{group}' could not be deleted due to: "
                "java.util.concurrent.ExecutionException: "
                f"{exception_name(verdict.code)}: {sentence(verdict)}"
            )
    if not failed:
        names = ", ".join(deleted)
        say(f"Deletion of requested consumer groups ('{names}') was successful.")
        return
    say_error("Deletion of some consumer groups failed:")
    for line in failed:
        say(line)
    if deleted:
        names = "'".join(deleted)
        say(f"\nThese consumer groups were deleted successfully: '{names}', '")


def _delete_offsets(options: Options, client: BlockingClient) -> None:
    group = options.value("group") or ""
    topics = options.values("topic")
    told = client.run(client.cluster.describe([text.partition(":")[0] for text in topics]))
    places: list[TopicPartition] = []
    statuses: dict[tuple[str, int], str] = {}
    for text in topics:
        name, colon, numbers = text.partition(":")
        if colon:
            places += [TopicPartition(name, int(number)) for number in numbers.split(",")]
        elif told.topics[name].code is ErrorCode.NONE:
            places += [TopicPartition(name, at.partition) for at in told.topics[name].partitions]
        else:
            statuses[(name, -1)] = _error(told.topics[name].code, None)
    code = ErrorCode.NONE
    try:
        for place, verdict in client.run(delete_offsets(client.cluster, group, places)).items():
            statuses[place] = "Successful" if verdict.is_ok else _error(*verdict)
            code = code if verdict.is_ok else verdict.code
    except RequestRefused as problem:
        code = problem.code
        statuses.update(dict.fromkeys(places, _error(code, problem.message)))
    _say_deletion(group, topics, code)
    say(f"\n{'TOPIC':<30} {'PARTITION':<15} {'STATUS':<15}")
    for (topic, partition), status in sorted(statuses.items(), key=lambda each: f"{each[0]}"):
        number = "Not Provided" if partition < 0 else str(partition)
        say(f"{topic:<30} {number:<15} {status:<15}")


def _error(code: ErrorCode, message: str | None) -> str:
    text = message_of(code, describe(code) if message is None else message)
    return f"Error: :{exception_name(code)}: {text}"


def _say_deletion(group: str, topics: Sequence[str], code: ErrorCode) -> None:
    refusals = {
        ErrorCode.INVALID_GROUP_ID: f"'{group}' is not valid.",
        ErrorCode.GROUP_ID_NOT_FOUND: f"'{group}' does not exist.",
        ErrorCode.NON_EMPTY_GROUP: f"Deleting offsets of a consumer group '{group}' is forbidden "
        "if the group is not empty.",
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Encounter some partition level error, see the "
        "follow-up details:",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Encounter some partition level error, see the "
        "follow-up details:",
    }
    if code is ErrorCode.NONE:
        names = ", ".join(topics)
        say(f"Request succeed for deleting offsets with topic {names} group {group}")
    else:
        say_error(refusals.get(code, f"Encounter some unknown error: {code.name}"))


def _reset(options: Options, client: BlockingClient) -> None:
    plans: dict[str, dict[TopicPartition, int]] = {}
    for group in _groups(options, client):
        told = client.run(describe_group(client.cluster, group))
        if told.state not in ("Empty", "Dead"):
            say_error(
                f"Assignments can only be reset if the group '{group}' is inactive, but the "
                f"current state is {told.state}."
            )
            plans[group] = {}
            continue
        plan = plan_reset(options, client, group)
        if options.has("execute") and plan:
            verdicts = client.run(commit_offsets(client.cluster, group, plan))
            for place, verdict in verdicts.items():
                if not verdict.is_ok:
                    raise RequestRefused(str(place), verdict.code, verdict.message)
        plans[group] = plan
    print_plan(plans)
