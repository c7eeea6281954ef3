"""A real broker that may open few files, with many more partitions than that."""

import os
import time
from pathlib import Path

from tests.e2e import raw_answers, raw_batches, raw_requests
from tests.e2e.broker_process import BrokerProcess
from tests.e2e.raw_requests import Place
from tests.e2e.raw_wire import Connection

FILES_MAX = 256
PARTITIONS = 1000
TOPIC = "many"
LEADERS_SECONDS = 60
NOT_YET = (3, 5, 6)
"""Unknown topic or partition, leader not available, not leader or follower."""


def await_leaders(port: int) -> None:
    """Ask until the broker knows of every partition again."""
    asked = raw_requests.produce(8, Place(TOPIC, partition=PARTITIONS - 1), raw_batches.batch([]))
    deadline = time.monotonic() + LEADERS_SECONDS
    with Connection(port) as connection:
        while raw_answers.produced(asked, connection.ask(asked)).error_code in NOT_YET:
            assert time.monotonic() < deadline, "no leaders yet"


def check_all(port: int, offset: int) -> None:
    """Every partition takes a record at this offset and gives it back, all of them at once too."""
    places = [Place(TOPIC, partition=number) for number in range(PARTITIONS)]
    large = raw_batches.batch([raw_batches.Record(value=os.urandom(40_000))])
    await_leaders(port)
    with Connection(port) as connection:
        for place in places:
            asked = raw_requests.produce(8, place, large)
            answer = raw_answers.produced(asked, connection.ask(asked))
            assert (answer.error_code, answer.base_offset) == (0, offset)
        for place in places:
            asked = raw_requests.fetch(11, [place], offset=offset)
            (found,) = raw_answers.fetched(asked, connection.ask(asked)).partitions
            assert found.error_code == 0
            assert len(raw_batches.stored_batches(found.records)) == 1
        # Many files at once, held until all of it is sent.
        asked = raw_requests.fetch(11, places, offset=0, max_bytes=50 << 20)
        everything = raw_answers.fetched(asked, connection.ask(asked)).partitions
        assert [one.error_code for one in everything] == [0] * PARTITIONS
        assert sum(len(one.records or b"") for one in everything) >= PARTITIONS * 40_000


def test_a_thousand_partitions_work_with_256_open_files(tmp_path: Path) -> None:
    settings = {"log.flush.interval.ms": "1000", "log.flush.scheduler.interval.ms": "500"}
    with BrokerProcess(tmp_path, settings, open_files_max=FILES_MAX) as broker:
        asked = raw_requests.create_topics(4, [TOPIC], partitions=PARTITIONS, timeout_ms=60_000)
        with Connection(broker.port) as connection:
            answer = raw_answers.created_topics(asked, connection.ask(asked))
        assert answer == {TOPIC: 0}
        check_all(broker.port, 0)
        check_all(broker.port, 1)
        assert len(os.listdir(f"/proc/{broker.pid}/fd")) <= FILES_MAX
        broker.kill()
        broker.start()
        check_all(broker.port, 2)
        assert broker.stop() == 0
        assert "offline" not in broker.story()
