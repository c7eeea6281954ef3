"""What encoding and decoding cost, compiled and interpreted; of 1,000 partitions where it says so.

    .venv/bin/python bench/codec.py

Three figures have a goal; the rest show where time goes. Each is the best of several runs, in
microseconds of processor time. The interpreted column comes from a process of its own.
"""

import json
import os
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from librt.strings import BytesWriter

from barnabas import compiled
from barnabas.formats.wire.catalog import Decoder, Encoder
from barnabas.formats.wire.generated import fetch, leader_and_isr, metadata, produce

PARTITIONS = range(1000)
RECORDS_SIZE = 1024
REPLICAS = [1, 2, 3]
TARGET_SECONDS = 0.1
REPEATS = 7


class SliceOfFile:
    """Records that stay on disk: their size alone is encoded."""

    size_bytes = RECORDS_SIZE


class Case(NamedTuple):
    """One message; the goals are microseconds of the compiled codec."""

    name: str
    value: Any
    encode: Encoder
    decode: Decoder | None
    encode_goal: float | None = None
    decode_goal: float | None = None


def main() -> int:
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(measure()))
        return 0
    print(report())
    return 1 if compiled.is_compiled() and missed(measured_here()) else 0


def report() -> str:
    """The table, and what was missed."""
    here = measured_here()
    there = _measured_interpreted()
    lines = [f"codec, {compiled.describe()}; us"]
    lines += [f"{'':44} {'compiled':>10} {'goal':>6} {'interpreted':>12}"]
    goals = _goals()
    for name, microseconds in here.items():
        shown = f"{microseconds:.2f}" if compiled.is_compiled() else "-"
        goal = goals.get(name)
        limit = "" if goal is None else f"{goal:.0f}"
        lines += [f"{name:44} {shown:>10} {limit:>6} {there[name]:12.2f}"]
    if compiled.is_compiled():
        lines += [f"missed: {name}" for name in missed(here)]
    return "\n".join(lines)


def missed(figures: dict[str, float]) -> list[str]:
    """The figures above their goal."""
    return [name for name, goal in _goals().items() if figures[name] > goal]


_here: dict[str, float] = {}


def measured_here() -> dict[str, float]:
    """The figures of this process, taken once."""
    if not _here:
        _here.update(measure())
    return _here


def measure() -> dict[str, float]:
    """Microseconds by the name of the figure."""
    figures: dict[str, float] = {}
    for case in _cases():
        figures[f"{case.name}, encode"] = _microseconds(lambda case=case: _encode(case))
        if case.decode is not None:
            data = _encode(case)
            figures[f"{case.name}, decode"] = _microseconds(
                lambda decode=case.decode, data=data: decode(data, 0, len(data))
            )
    return figures


def _measured_interpreted() -> dict[str, float]:
    told = subprocess.run(
        [sys.executable, str(Path(__file__)), "--json"],
        env={**os.environ, "BARNABAS_INTERPRETED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(told.stdout)
    assert isinstance(figures, dict)
    return figures


def _goals() -> dict[str, float]:
    goals: dict[str, float] = {}
    for case in _cases():
        if case.encode_goal is not None:
            goals[f"{case.name}, encode"] = case.encode_goal
        if case.decode_goal is not None:
            goals[f"{case.name}, decode"] = case.decode_goal
    return goals


def _encode(case: Case) -> bytes:
    writer = BytesWriter()
    case.encode(writer, case.value, [])
    return writer.getvalue()


def _microseconds(call: Callable[[], object]) -> float:
    timer = timeit.Timer(call, timer=time.process_time)
    number, seconds = timer.autorange()
    number = max(1, int(number * TARGET_SECONDS / max(seconds, 1e-9)))
    return min(timer.repeat(REPEATS, number)) / number * 1e6


def _cases() -> list[Case]:
    return [
        Case(
            "FetchRequest v12, 1,000 partitions",
            _fetch_request(),
            fetch.encode_request_v12,
            fetch.decode_request_v12,
            encode_goal=20,
            decode_goal=90,
        ),
        Case(
            "FetchResponse v12, 1,000 x 1 KiB",
            _fetch_response(bytes(RECORDS_SIZE)),
            fetch.encode_response_v12,
            fetch.decode_response_v12,
            encode_goal=120,
        ),
        Case(
            "FetchResponse v12, 1,000 slices of files",
            _fetch_response(SliceOfFile()),
            fetch.encode_response_v12,
            None,
        ),
        Case(
            "ProduceRequest v9, one batch of 150 bytes",
            _produce_request(),
            produce.encode_request_v9,
            produce.decode_request_v9,
        ),
        Case(
            "ProduceResponse v9, one partition",
            _produce_response(),
            produce.encode_response_v9,
            produce.decode_response_v9,
        ),
        Case(
            "LeaderAndIsrRequest v7, 1,000 partitions",
            _leader_and_isr_request(),
            leader_and_isr.encode_request_v7,
            leader_and_isr.decode_request_v7,
        ),
        Case(
            "MetadataResponse v12, 1,000 partitions",
            _metadata_response(),
            metadata.encode_response_v12,
            metadata.decode_response_v12,
        ),
    ]


def _fetch_request() -> fetch.FetchRequest:
    partitions = [
        fetch.FetchPartition(
            partition=number,
            current_leader_epoch=5,
            fetch_offset=number * 1000,
            last_fetched_epoch=4,
            log_start_offset=0,
            partition_max_bytes=1 << 20,
        )
        for number in PARTITIONS
    ]
    return fetch.FetchRequest(topics=[fetch.FetchTopic(topic="topic", partitions=partitions)])


def _fetch_response(records: Any) -> fetch.FetchResponse:
    partitions = [
        fetch.PartitionData(
            partition_index=number,
            high_watermark=100_000,
            last_stable_offset=100_000,
            log_start_offset=0,
            records=records,
        )
        for number in PARTITIONS
    ]
    topic = fetch.FetchableTopicResponse(topic="topic", partitions=partitions)
    return fetch.FetchResponse(responses=[topic])


def _produce_request() -> produce.ProduceRequest:
    partition = produce.PartitionProduceData(index=3, records=bytes(150))
    topic = produce.TopicProduceData(name="topic", partition_data=[partition])
    return produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def _produce_response() -> produce.ProduceResponse:
    partition = produce.PartitionProduceResponse(index=3, base_offset=12_345, log_start_offset=0)
    topic = produce.TopicProduceResponse(name="topic", partition_responses=[partition])
    return produce.ProduceResponse(responses=[topic])


def _leader_and_isr_request() -> leader_and_isr.LeaderAndIsrRequest:
    states = [
        leader_and_isr.LeaderAndIsrPartitionState(
            partition_index=number, leader=1, isr=REPLICAS, replicas=REPLICAS
        )
        for number in PARTITIONS
    ]
    topic = leader_and_isr.LeaderAndIsrTopicState(topic_name="topic", partition_states=states)
    return leader_and_isr.LeaderAndIsrRequest(topic_states=[topic])


def _metadata_response() -> metadata.MetadataResponse:
    partitions = [
        metadata.MetadataResponsePartition(
            partition_index=number, leader_id=1, replica_nodes=REPLICAS, isr_nodes=REPLICAS
        )
        for number in PARTITIONS
    ]
    topic = metadata.MetadataResponseTopic(name="topic", partitions=partitions)
    return metadata.MetadataResponse(topics=[topic])


if __name__ == "__main__":
    sys.exit(main())
