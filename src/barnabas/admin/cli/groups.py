"""`barnabas groups`: consumer groups, their lag, and where they go on."""

from collections.abc import Mapping, Sequence

import click

from barnabas.admin.cli.names import group_names
from barnabas.admin.cli.program import run, with_cluster
from barnabas.admin.cli.session import Session
from barnabas.admin.failures import guarded, refusal
from barnabas.client.groups import (
    DEAD,
    EMPTY,
    CommittedOffset,
    GroupDescription,
    commit_offsets,
    delete_group,
    describe_group,
    fetch_offsets,
    list_groups,
)
from barnabas.client.metadata import TopicMetadata
from barnabas.client.offsets import EARLIEST, LATEST, NO_OFFSET, list_offsets
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition


@click.group(help="Consumer groups: list, describe, reset-offsets, delete.")
def groups() -> None:
    """Holds the verbs."""


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(groups, "groups", arguments)


@groups.command("list", help="List groups with their state.")
@with_cluster
@click.option("--state", "states", multiple=True, help="Those in this state alone: Stable, Empty.")
def list_all(session: Session, states: tuple[str, ...]) -> None:
    found = session.run(list_groups(session.cluster, states))
    rows = [(group.group_id, group.state, group.protocol_type) for group in found]
    session.table(("group", "state", "protocol"), rows)


@groups.command(help="Show a group's offsets and lag by partition, or its members.")
@with_cluster
@click.argument("group", shell_complete=group_names)
@click.option("--members", is_flag=True, help="Members and their partitions instead.")
def describe(session: Session, group: str, members: bool) -> None:
    told = _find(session, group)
    if not session.is_json:
        session.tell(
            f"group {group}: {told.state}, {len(told.members)} members, coordinator "
            f"{told.coordinator_id} at {told.coordinator_address}\n",
            {},
        )
    if members:
        rows = [
            (each.member_id, each.client_id, each.client_host, [str(at) for at in each.assignment])
            for each in told.members
        ]
        session.table(("member", "client", "host", "partitions"), rows)
        return
    committed = session.run(fetch_offsets(session.cluster, group))
    owners = {at: each.client_id for each in told.members for at in each.assignment}
    places = sorted({*committed, *owners})
    ends = _ends(session, places, LATEST)
    session.table(
        ("topic", "partition", "committed", "end", "lag", "owner"),
        [
            (*place, *_progress(committed.get(place), ends.get(place)), owners.get(place))
            for place in places
        ],
    )


def _progress(
    committed: CommittedOffset | None, end: int | None
) -> tuple[int | None, int | None, int | None]:
    offset = None if committed is None else committed.offset
    return offset, end, None if offset is None or end is None else max(0, end - offset)


def _find(session: Session, group: str) -> GroupDescription:
    told = session.run(describe_group(session.cluster, group))
    if told.state == DEAD:
        raise refusal(
            f"group {group}", ErrorCode.GROUP_ID_NOT_FOUND, "the cluster has no such group"
        )
    return told


def _ends(
    session: Session, places: Sequence[TopicPartition], when: int
) -> dict[TopicPartition, int]:
    """Offsets of the partitions that still exist."""
    told = session.run(session.cluster.describe(sorted({place.topic for place in places})))
    asked = {place: when for place in places if _has(told.topics, place)}
    found = session.run(list_offsets(session.cluster, asked))
    return {place: each.offset for place, each in found.items()}


def _has(topics: Mapping[str, TopicMetadata], place: TopicPartition) -> bool:
    topic = topics.get(place.topic)
    return topic is not None and any(
        each.partition == place.partition and each.leader_id >= 0 for each in topic.partitions
    )


@groups.command("reset-offsets", help="Show what a reset would do; with --execute, do it.")
@with_cluster
@click.argument("group", shell_complete=group_names)
@click.option("--topic", "topics", metavar="TOPIC[:0,1]", multiple=True, help="Default: all.")
@click.option("--to-earliest", is_flag=True)
@click.option("--to-latest", is_flag=True)
@click.option("--to-offset", type=click.IntRange(min=0))
@click.option("--shift-by", type=int)
@click.option("--to-time", metavar="TIME", help="ISO 8601, or milliseconds since 1970.")
@click.option("--execute", is_flag=True, help="Without it nothing is changed.")
def reset_offsets(
    session: Session,
    group: str,
    topics: tuple[str, ...],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_time: str | None,
    execute: bool,
) -> None:
    given = (to_earliest, to_latest, to_offset is not None, shift_by is not None, bool(to_time))
    if sum(given) != 1:
        raise click.UsageError("give one of --to-earliest, -latest, -offset, -time, --shift-by")
    told = session.run(describe_group(session.cluster, group))
    if execute and told.state not in (EMPTY, DEAD):
        raise guarded(
            f"the offsets of group {group} were not reset",
            f"it is live: {told.state} with {len(told.members)} members, which would not notice",
            f"stop its members, then: barnabas groups describe {group} --members",
        )
    committed = session.run(fetch_offsets(session.cluster, group))
    places = _choose(session, topics, committed)
    earliest, latest = _ends(session, places, EARLIEST), _ends(session, places, LATEST)
    if to_time:
        from barnabas.admin.cli.consume import to_epoch_ms

        timed = _ends(session, places, to_epoch_ms(to_time))
        wanted = {at: latest[at] if timed[at] == NO_OFFSET else timed[at] for at in timed}
    elif to_offset is not None:
        wanted = dict.fromkeys(places, to_offset)
    elif shift_by is not None:
        wanted = {at: committed[at].offset + shift_by for at in places if at in committed}
    else:
        wanted = earliest if to_earliest else latest
    new = {
        at: min(max(offset, earliest[at]), latest[at])
        for at, offset in wanted.items()
        if at in latest
    }
    if execute and new:
        for place, verdict in session.run(commit_offsets(session.cluster, group, new)).items():
            if not verdict.is_ok:
                raise refusal(f"offset of {place}", verdict.code, verdict.message)
    session.table(
        ("topic", "partition", "committed", "new", "lag"),
        [
            (*at, committed[at].offset if at in committed else None, new[at], latest[at] - new[at])
            for at in sorted(new)
        ],
    )
    if not session.is_json:
        session.tell("\nreset" if execute else "\nnothing was changed; --execute does it", {})


def _choose(
    session: Session, topics: Sequence[str], committed: Mapping[TopicPartition, CommittedOffset]
) -> list[TopicPartition]:
    if not topics:
        return sorted(committed)
    places: list[TopicPartition] = []
    for text in topics:
        name, colon, numbers = text.partition(":")
        partitions = [each.partition for each in session.find_topic(name).partitions]
        if colon:
            try:
                wanted = [int(number) for number in numbers.split(",")]
            except ValueError:
                raise click.UsageError(f"{text!r} is not TOPIC or TOPIC:0,1") from None
            missing = [each for each in wanted if each not in partitions]
            if missing:
                raise click.UsageError(f"topic {name} has no partition {missing[0]}")
            partitions = wanted
        places += [TopicPartition(name, each) for each in partitions]
    return sorted(set(places))


@groups.command(help="Delete groups without members, with their offsets.")
@with_cluster
@click.argument("names", metavar="GROUP...", nargs=-1, required=True, shell_complete=group_names)
def delete(session: Session, names: tuple[str, ...]) -> None:
    for group in names:
        verdict = session.run(delete_group(session.cluster, group))
        if verdict.code is ErrorCode.NON_EMPTY_GROUP:
            raise guarded(
                f"group {group} was not deleted",
                "it is live: it has members, which would go on without their offsets",
                f"stop its members, then: barnabas groups describe {group} --members",
            )
        if not verdict.is_ok:
            raise refusal(f"group {group}", verdict.code, verdict.message)
        session.tell(f"deleted group {group}", {"group": group, "deleted": True})
