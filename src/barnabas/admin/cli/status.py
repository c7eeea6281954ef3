"""`barnabas status`: brokers, controller, and partitions that are not as they should be."""

from collections.abc import Sequence

import click

from barnabas.admin.cli.program import run, with_cluster
from barnabas.admin.cli.session import Session
from barnabas.client.metadata import PartitionMetadata
from barnabas.model.ids import TopicPartition


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(status, "status", arguments)


@click.command(help="Show brokers, the controller, and partitions that need attention.")
@with_cluster
def status(session: Session) -> None:
    told = session.run(session.cluster.describe(None))
    partitions = [
        (TopicPartition(name, each.partition), each)
        for name, topic in sorted(told.topics.items())
        for each in topic.partitions
    ]
    offline = [str(place) for place, each in partitions if each.leader_id < 0]
    short = [str(place) for place, each in partitions if _is_under_replicated(each)]
    elsewhere = [str(place) for place, each in partitions if not _has_preferred_leader(each)]
    if session.is_json:
        values = {
            "cluster_id": told.cluster_id,
            "controller": told.controller_id,
            "brokers": {str(node.id): str(node.address) for node in sorted(told.brokers.values())},
            "topics": len(told.topics),
            "partitions": len(partitions),
            "offline": offline,
            "under_replicated": short,
            "not_led_by_preferred": elsewhere,
        }
        session.tell("", values)
        return
    session.tell(f"cluster {told.cluster_id}, {len(told.topics)} topics\n", {})
    rows = [
        (
            node.id,
            node.address,
            node.rack,
            sum(each.leader_id == node.id for _, each in partitions),
            sum(node.id in each.replicas for _, each in partitions),
            "controller" if node.id == told.controller_id else "",
        )
        for node in sorted(told.brokers.values())
    ]
    session.table(("broker", "address", "rack", "leads", "replicas", "role"), rows)
    session.tell("", {})
    for label, places in (
        ("offline", offline),
        ("under-replicated", short),
        ("not led by the preferred replica", elsewhere),
    ):
        shown = ", ".join(places[:SHOWN]) + (" ..." if len(places) > SHOWN else "")
        session.tell(f"{label}: {len(places)}" + (f"  {shown}" if places else ""), {})


SHOWN = 10
"""How many partitions of a kind are named."""


def _is_under_replicated(partition: PartitionMetadata) -> bool:
    return len(partition.isr) < len(partition.replicas)


def _has_preferred_leader(partition: PartitionMetadata) -> bool:
    return partition.leader_id < 0 or partition.leader_id == partition.replicas[0]
