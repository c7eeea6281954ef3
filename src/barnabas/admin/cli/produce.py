"""`barnabas produce`: lines of the standard input become records of a topic."""

import os
import sys
import time
from collections.abc import Iterator, Sequence

import click

from barnabas.admin.cli.names import topic_names
from barnabas.admin.cli.program import parse_settings, run, with_cluster
from barnabas.admin.cli.session import Session
from barnabas.admin.failures import refusal, unknown_topic
from barnabas.client.metadata import TopicMetadata
from barnabas.client.producer import ALL_REPLICAS, Acknowledged, NewRecord, Producer
from barnabas.client.topics import NewTopic, create_topics
from barnabas.formats.batches.compression import CompressionCodec
from barnabas.model.error_codes import ErrorCode
from barnabas.node.clock import RealWallClock

READ_BYTES = 1024 * 1024
LINE_BYTES_MAX = 256 * 1024 * 1024
CODECS = {codec.name.lower(): codec for codec in CompressionCodec}
ACKS = {"all": ALL_REPLICAS, "1": 1, "0": 0}


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(produce, "produce", arguments)


@click.command(help="Send each line of the standard input as a record.")
@with_cluster
@click.argument("topic", shell_complete=topic_names)
@click.option("--key", help="The key of all records.")
@click.option("--key-separator", metavar="TEXT", help="What is before it in a line is the key.")
@click.option("--partition", type=click.IntRange(min=0), help="Not what the keys say.")
@click.option("--header", "headers", metavar="KEY=VALUE", multiple=True, help="On all records.")
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True)
@click.option("--compression", type=click.Choice(list(CODECS)), default="none", show_default=True)
@click.option("--no-create", is_flag=True, help="Do not create a topic that is not there.")
def produce(
    session: Session,
    topic: str,
    key: str | None,
    key_separator: str | None,
    partition: int | None,
    headers: tuple[str, ...],
    acks: str,
    compression: str,
    no_create: bool,
) -> None:
    if key is not None and key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other")
    described = _find_or_create(session, topic, may_create=not no_create)
    producer = Producer(session.cluster, acks=ACKS[acks], codec=CODECS[compression])
    pairs = [(name, value.encode()) for name, value in parse_settings(headers).items()]
    clock = RealWallClock()
    for lines in _lines_of_input():
        now_ms = clock.epoch_ms()
        records: list[NewRecord] = []
        for line in lines:
            record_key = None if key is None else key.encode()
            if key_separator is not None:
                before, found, after = line.partition(key_separator.encode())
                record_key, line = (before, after) if found else (None, line)
            records.append(NewRecord(now_ms, line, record_key, pairs, partition))
        began = time.monotonic()
        done = session.run(producer.send(topic, records))
        elapsed_ms = (time.monotonic() - began) * 1000
        _tell(session, described, done, elapsed_ms, ACKS[acks])


def _find_or_create(session: Session, name: str, *, may_create: bool) -> TopicMetadata:
    told = session.run(session.cluster.describe([name])).topics[name]
    if told.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        if not may_create:
            raise unknown_topic(name, session.run(session.cluster.describe(None)).topics)
        verdict = session.run(create_topics(session.cluster, [NewTopic(name)]))[name]
        if verdict.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise refusal(f"topic {name}", verdict.code, verdict.message)
        told = session.run(session.cluster.describe([name])).topics[name]
        session.tell(
            f"created topic {name}: {len(told.partitions)} partitions, "
            f"{told.replication_factor} replicas",
            {"topic": name, "created": True},
        )
    elif told.code is not ErrorCode.NONE and told.code is not ErrorCode.LEADER_NOT_AVAILABLE:
        raise refusal(f"topic {name}", told.code, told.code.name)
    return told


def _lines_of_input() -> Iterator[list[bytes]]:
    """The lines that are there already, again and again until the input ends."""
    rest = b""
    while True:
        data = os.read(sys.stdin.fileno(), READ_BYTES)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise click.UsageError("a line is longer than any record may be")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


def _tell(
    session: Session,
    topic: TopicMetadata,
    done: Sequence[Acknowledged],
    elapsed_ms: float,
    acks: int,
) -> None:
    by_place: dict[int, list[int]] = {}
    for each in done:
        by_place.setdefault(each.place.partition, []).append(each.offset)
    for partition, offsets in sorted(by_place.items()):
        first, last = min(offsets), max(offsets)
        span = f"{first}" if first == last else f"{first}-{last}"
        who = {0: "nobody", 1: "the leader"}.get(acks)
        if who is None and partition < len(topic.partitions):
            who = ",".join(str(each) for each in topic.partitions[partition].isr)
        plural = "record" if len(offsets) == 1 else "records"
        where = f"{topic.name}-{partition}" + (f" @ {span}" if first >= 0 else "")
        session.tell(
            f"{len(offsets)} {plural}  {where}   acked by {who}   {elapsed_ms:.1f} ms",
            {
                "topic": topic.name,
                "partition": partition,
                "records": len(offsets),
                "first_offset": first,
                "last_offset": last,
                "milliseconds": round(elapsed_ms, 3),
            },
        )
