"""`barnabas topics`: list, describe, create, grow and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.admin.cli.names import topic_names
from barnabas.admin.cli.program import (
    parse_assignment,
    parse_settings,
    run,
    with_cluster,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.admin.cli.session import Session


@click.group(help="Topics: list, describe, create, alter, delete.")
def topics() -> None:
    """Holds the verbs."""


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(topics, "topics", arguments)


@topics.command("list", help="List topics.")
@with_cluster
@click.option("--exclude-internal", is_flag=True, help="Leave out topics such as offsets.")
def list_topics(session: Session, exclude_internal: bool) -> None:
    told = session.run(session.cluster.describe(None))
    rows = [
        (name, len(topic.partitions), topic.replication_factor, topic.is_internal)
        for name, topic in sorted(told.topics.items())
        if not (exclude_internal and topic.is_internal)
    ]
    session.table(("topic", "partitions", "replication_factor", "internal"), rows)


@topics.command(help="Show partitions, leaders, replicas and in-sync replicas of topics.")
@with_cluster
@click.argument("names", metavar="TOPIC...", nargs=-1, shell_complete=topic_names)
def describe(session: Session, names: tuple[str, ...]) -> None:
    from barnabas.admin.failures import unknown_topic
    from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
    from barnabas.formats.znodes.uuids import uuid_text
    from barnabas.model.ids import TopicPartition

    told = session.run(session.cluster.describe(None))
    for name in names:
        if name not in told.topics:
            raise unknown_topic(name, told.topics)
    chosen = sorted(names or told.topics)
    places = [
        TopicPartition(name, each.partition)
        for name in chosen
        for each in told.topics[name].partitions
        if each.leader_id >= 0
    ]
    starts = session.run(list_offsets(session.cluster, dict.fromkeys(places, EARLIEST)))
    ends = session.run(list_offsets(session.cluster, dict.fromkeys(places, LATEST)))
    rows: list[tuple[object, ...]] = []
    for name in chosen:
        topic = told.topics[name]
        for each in topic.partitions:
            place = TopicPartition(name, each.partition)
            leader = each.leader_id if each.leader_id >= 0 else None
            span = (
                (starts[place].offset, ends[place].offset) if leader is not None else (None, None)
            )
            rows.append(
                (name, each.partition, leader, each.leader_epoch, each.replicas, each.isr, *span)
            )
    columns = ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "start", "end")
    session.table(columns, rows)
    if len(names) == 1 and not session.is_json:
        _describe_settings(session, names[0], uuid_text(told.topics[names[0]].topic_id))


def _describe_settings(session: Session, name: str, topic_id: str) -> None:
    from barnabas.client.configs import ConfigSource, Resource, ResourceType, describe_configs
    from barnabas.node.output import say

    entries = session.run(describe_configs(session.cluster, Resource(ResourceType.TOPIC, name)))
    own = [entry for entry in entries if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG]
    say(f"\nid {topic_id}")
    say("settings " + (", ".join(f"{each.name}={each.value}" for each in own) or "all by default"))


@topics.command(help="Create a topic; what is not given is the broker's default.")
@with_cluster
@click.argument("name", metavar="TOPIC")
@click.option("--partitions", type=click.IntRange(min=1), help="How many.")
@click.option("--replication-factor", type=click.IntRange(1, 32767), help="Replicas of each.")
@click.option("--replica-assignment", metavar="1:2,2:3", help="Replicas of each, by hand.")
@click.option("--config", "configs", metavar="KEY=VALUE", multiple=True, help="A setting.")
@click.option("--if-not-exists", is_flag=True, help="Succeed when it is there already.")
@click.option("--dry-run", is_flag=True, help="Have it judged, create nothing.")
def create(
    session: Session,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    from barnabas.admin.failures import refusal
    from barnabas.client.topics import BROKER_DEFAULT, NewTopic, create_topics
    from barnabas.model.error_codes import ErrorCode
    from barnabas.model.ids import BrokerId

    assignment = parse_assignment(replica_assignment) if replica_assignment else []
    if assignment and (partitions or replication_factor):
        raise click.UsageError("an assignment says itself how many partitions and replicas")
    new = NewTopic(
        name,
        partitions or BROKER_DEFAULT,
        replication_factor or BROKER_DEFAULT,
        [[BrokerId(each) for each in replicas] for replicas in assignment],
        parse_settings(configs),
    )
    verdict = session.run(create_topics(session.cluster, [new], validate_only=dry_run))[name]
    if verdict.code is ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
        session.tell(f"topic {name} is there already", {"topic": name, "created": False})
        return
    if not verdict.is_ok:
        raise refusal(f"topic {name}", verdict.code, verdict.message)
    if dry_run:
        session.tell(f"topic {name} could be created", {"topic": name, "created": False})
        return
    topic = session.run(session.cluster.describe([name])).topics[name]
    session.tell(
        f"created topic {name}: {len(topic.partitions)} partitions, "
        f"{topic.replication_factor} replicas",
        {
            "topic": name,
            "created": True,
            "partitions": len(topic.partitions),
            "replication_factor": topic.replication_factor,
        },
    )


@topics.command(help="Give a topic more partitions.")
@with_cluster
@click.argument("name", metavar="TOPIC", shell_complete=topic_names)
@click.option("--partitions", type=click.IntRange(min=1), required=True, help="How many in all.")
@click.option("--replica-assignment", metavar="1:2,2:3", help="Replicas of the new ones.")
@click.option("--dry-run", is_flag=True, help="Have it judged, change nothing.")
def alter(
    session: Session, name: str, partitions: int, replica_assignment: str | None, dry_run: bool
) -> None:
    from barnabas.admin.failures import refusal
    from barnabas.client.topics import create_partitions
    from barnabas.model.ids import BrokerId

    had = len(session.find_topic(name).partitions)
    assignment = None
    if replica_assignment:
        parsed = parse_assignment(replica_assignment)
        assignment = [[BrokerId(each) for each in replicas] for replicas in parsed]
    operation = create_partitions(
        session.cluster, {name: partitions}, assignment, validate_only=dry_run
    )
    verdict = session.run(operation)[name]
    if not verdict.is_ok:
        raise refusal(f"topic {name}", verdict.code, verdict.message)
    done = "could have" if dry_run else "has"
    session.tell(
        f"topic {name} {done} {partitions} partitions; it had {had}",
        {"topic": name, "partitions": partitions, "before": had, "done": not dry_run},
    )


@topics.command(help="Delete topics with all their records.")
@with_cluster
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True, shell_complete=topic_names)
@click.option("--if-exists", is_flag=True, help="Succeed when one is not there.")
@click.option("--internal", is_flag=True, help="Also a topic that the cluster itself lives on.")
def delete(session: Session, names: tuple[str, ...], if_exists: bool, internal: bool) -> None:
    from barnabas.admin.failures import guarded, refusal, unknown_topic
    from barnabas.client.topics import delete_topics

    told = session.run(session.cluster.describe(None))
    for name in names:
        topic = told.topics.get(name)
        if topic is None and not if_exists:
            raise unknown_topic(name, told.topics)
        if topic is not None and topic.is_internal and not internal:
            raise guarded(
                f"topic {name} was not deleted",
                "it is internal: the cluster keeps offsets or transactions in it",
                f"barnabas topics delete {name} --internal",
            )
    wanted = [name for name in names if name in told.topics]
    verdicts = session.run(delete_topics(session.cluster, wanted)) if wanted else {}
    for name in wanted:
        verdict = verdicts[name]
        if not verdict.is_ok:
            raise refusal(f"topic {name}", verdict.code, verdict.message)
        session.tell(f"deleted topic {name}", {"topic": name, "deleted": True})
