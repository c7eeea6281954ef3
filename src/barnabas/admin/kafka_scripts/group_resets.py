"""Where `kafka-consumer-groups.sh --reset-offsets` would put a group, and how it says so."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from barnabas.admin.kafka_scripts.java_order import in_map_order, partition_hash
from barnabas.admin.kafka_scripts.options import BadOption, Options
from barnabas.client.errors import RequestRefused
from barnabas.client.groups import fetch_offsets
from barnabas.client.offsets import EARLIEST, LATEST, NO_OFFSET, list_offsets
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.node.blocking_client import BlockingClient
from barnabas.node.clock import RealWallClock
from barnabas.node.output import say

SCENARIOS = (
    *("to-offset", "to-current", "to-datetime", "from-file", "by-duration"),
    *("to-earliest", "to-latest", "shift-by"),
)
DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)

Offsets = dict[TopicPartition, int]


def plan_reset(options: Options, client: BlockingClient, group: str) -> Offsets:
    """The new offset of each partition that is to be reset."""
    committed = {
        place: each.offset
        for place, each in client.run(fetch_offsets(client.cluster, group)).items()
    }
    places = _places(options, client, list(committed))
    if options.has("to-earliest"):
        return _ends(client, places, EARLIEST)
    if options.has("to-latest"):
        return _ends(client, places, LATEST)
    if options.has("to-current"):
        latest = _ends(client, [place for place in places if place not in committed], LATEST)
        return {place: committed.get(place, latest.get(place, 0)) for place in places}
    if options.has("to-offset"):
        number = options.number("to-offset") or 0
        return _in_range(client, dict.fromkeys(places, number))
    if options.has("shift-by"):
        for place in places:
            if place not in committed:
                raise options.end_with_usage(
                    f"Cannot shift offset for partition {place} since there is no current "
                    "committed offset"
                )
        shift = options.number("shift-by") or 0
        return _in_range(client, {place: committed[place] + shift for place in places})
    if options.has("to-datetime") or options.has("by-duration"):
        return _at_time(client, places, _moment_ms(options))
    raise options.end_with_usage(
        "Option '[reset-offsets]' requires one of the following scenarios: "
        f"[{', '.join(f'[{name}]' for name in SCENARIOS)}]"
    )


def print_plan(plans: Mapping[str, Offsets]) -> None:
    """The table of new offsets; every line begins with its break, as the script's does."""
    lines: list[str] = []
    if plans:
        lines.append(f"{'GROUP':<30} {'TOPIC':<30} {'PARTITION':<10} {'NEW-OFFSET':<15}")
    for group, plan in plans.items():
        for place in in_map_order(plan, partition_hash):
            lines.append(f"{group:<30} {place.topic:<30} {place.partition:<10} {plan[place]:<15}")
    say("".join(f"\n{line}" for line in lines))


def _places(
    options: Options, client: BlockingClient, committed: Sequence[TopicPartition]
) -> list[TopicPartition]:
    if options.has("all-topics"):
        return sorted(committed)
    if not options.has("topic"):
        raise options.end_with_usage(
            "One of the reset scopes should be defined: --all-topics, --topic."
        )
    places: list[TopicPartition] = []
    for text in options.values("topic"):
        name, colon, numbers = text.partition(":")
        if colon:
            try:
                places += [TopicPartition(name, int(number)) for number in numbers.split(",")]
            except ValueError:
                raise BadOption(f"Cannot parse argument '{text}' of option topic") from None
            continue
        topic = client.run(client.cluster.describe([name])).topics[name]
        if topic.code is not ErrorCode.NONE:
            raise RequestRefused(f"topic {name}", topic.code)
        places += [TopicPartition(name, each.partition) for each in topic.partitions]
    return sorted(set(places))


def _ends(client: BlockingClient, places: Sequence[TopicPartition], when: int) -> Offsets:
    found = client.run(list_offsets(client.cluster, dict.fromkeys(places, when)))
    return {place: each.offset for place, each in found.items()}


def _in_range(client: BlockingClient, wanted: Offsets) -> Offsets:
    earliest = _ends(client, list(wanted), EARLIEST)
    latest = _ends(client, list(wanted), LATEST)
    return {
        place: min(max(offset, earliest[place]), latest[place]) for place, offset in wanted.items()
    }


def _at_time(client: BlockingClient, places: Sequence[TopicPartition], moment_ms: int) -> Offsets:
    found = _ends(client, places, moment_ms)
    latest = _ends(client, places, LATEST)
    for place in places:
        if found[place] == NO_OFFSET:
            say(
                f"\nWarn: Partition {place.partition} from topic {place.topic} is empty. "
                "Falling back to latest known offset."
            )
    return {at: latest[at] if found[at] == NO_OFFSET else found[at] for at in places}


def _moment_ms(options: Options) -> int:
    text = options.value("to-datetime")
    if text is not None:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise BadOption(f"Cannot parse argument '{text}' of option to-datetime") from None
        # Without a zone the script means UTC.
        is_local = moment.tzinfo is None
        return int(
            (datetime.fromisoformat(f"{text}+00:00") if is_local else moment).timestamp() * 1000
        )
    duration = options.value("by-duration") or ""
    found = DURATION.fullmatch(duration)
    if found is None:
        raise BadOption(f"Cannot parse argument '{duration}' of option by-duration")
    parts = {name: float(part) for name, part in found.groupdict().items() if part}
    return RealWallClock().epoch_ms() - int(timedelta(**parts).total_seconds() * 1000)
