"""`barnabas consume`: the records of a topic, those that are there and those that come."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import click

from barnabas.admin.cli.names import topic_names
from barnabas.admin.cli.program import run, with_cluster
from barnabas.admin.cli.records import to_text, to_values
from barnabas.admin.cli.session import Session
from barnabas.admin.failures import misused
from barnabas.client.consumer import Consumer
from barnabas.client.offsets import EARLIEST, LATEST, NO_OFFSET, list_offsets
from barnabas.model.ids import TopicPartition

WAIT_MS = 1000
ENDS = {"earliest": EARLIEST, "latest": LATEST}


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    return run(consume, "consume", arguments)


@click.command(help="Print records, by default those that come from now on.")
@with_cluster
@click.argument("topic", shell_complete=topic_names)
@click.option("--from-beginning", is_flag=True, help="The same as --offset earliest.")
@click.option("--offset", metavar="NUMBER|earliest|latest|-N", help="-N: the last N of each.")
@click.option("--time", "since", metavar="TIME", help="ISO 8601, or milliseconds since 1970.")
@click.option("--partition", "partitions", type=click.IntRange(min=0), multiple=True)
@click.option("--max-messages", type=click.IntRange(min=0), help="Stop after so many.")
@click.option("--exit", "-e", "is_ended", is_flag=True, help="Stop at what is now the end.")
@click.option("--key", "with_key", is_flag=True, help="Print keys too.")
def consume(
    session: Session,
    topic: str,
    from_beginning: bool,
    offset: str | None,
    since: str | None,
    partitions: tuple[int, ...],
    max_messages: int | None,
    is_ended: bool,
    with_key: bool,
) -> None:
    if sum((from_beginning, offset is not None, since is not None)) > 1:
        raise click.UsageError("--from-beginning, --offset and --time exclude each other")
    places = _choose(session, topic, partitions)
    start = "earliest" if from_beginning else offset or "latest"
    positions = _find_start(session, places, start, since)
    ends = _offsets(session, places, LATEST) if is_ended else {}
    consumer = Consumer(session.cluster, positions)
    left = max_messages
    while left is None or left > 0:
        if is_ended and all(consumer.positions[place] >= ends[place] for place in places):
            return
        for fetched in session.run(consumer.poll(WAIT_MS)):
            for record in fetched.records:
                if left == 0 or (is_ended and record.offset >= ends[fetched.place]):
                    break
                values = {"topic": topic, "partition": fetched.place.partition}
                line = f"{fetched.place} @ {record.offset}   "
                if with_key:
                    line += f"{to_text(record.key)}   "
                session.tell(line + to_text(record.value), {**values, **to_values(record)})
                left = None if left is None else left - 1


def _choose(session: Session, topic: str, wanted: Sequence[int]) -> list[TopicPartition]:
    count = len(session.find_topic(topic).partitions)
    for partition in wanted:
        if partition >= count:
            raise misused(
                f"topic {topic} has no partition {partition}, only 0 to {count - 1}",
                f"barnabas topics describe {topic}",
            )
    return [TopicPartition(topic, each) for each in (sorted(set(wanted)) or range(count))]


def _find_start(
    session: Session, places: Sequence[TopicPartition], start: str, since: str | None
) -> Mapping[TopicPartition, int]:
    if since is not None:
        found = _offsets(session, places, to_epoch_ms(since))
        ends = _offsets(session, places, LATEST)
        return {at: ends[at] if found[at] == NO_OFFSET else found[at] for at in places}
    if start in ENDS:
        return _offsets(session, places, ENDS[start])
    try:
        number = int(start)
    except ValueError:
        raise click.UsageError(f"{start!r} is no offset, nor earliest or latest") from None
    if number >= 0:
        return dict.fromkeys(places, number)
    starts, ends = _offsets(session, places, EARLIEST), _offsets(session, places, LATEST)
    return {place: max(starts[place], ends[place] + number) for place in places}


def _offsets(
    session: Session, places: Sequence[TopicPartition], when: int
) -> dict[TopicPartition, int]:
    found = session.run(list_offsets(session.cluster, dict.fromkeys(places, when)))
    return {place: each.offset for place, each in found.items()}


def to_epoch_ms(text: str) -> int:
    """A moment as people write it; without a zone it is that of this machine."""
    if text.isdigit():
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise click.UsageError(f"{text!r} is neither ISO 8601 nor milliseconds") from None
