"""Wrong frames by the hundred thousand: no crash, no hang, flat memory, and good requests answered.

Most go to a broker in memory, in virtual time; a share goes over a real socket to a process. The
frames of a thousand come from its seed alone, which a failure prints:

    BARNABAS_FUZZ_SEED=1 BARNABAS_FUZZ_FROM=17 BARNABAS_FUZZ_FRAMES=1000   that thousand again
    ./run test --long fuzz                                                 more, with other seeds
"""

import gc
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from barnabas.broker.router import SERVED
from tests.e2e import raw_answers, raw_batches, raw_requests
from tests.e2e.broker_process import BrokerProcess
from tests.e2e.fuzz_world import (
    CORPUS,
    DOOMED,
    GOOD,
    WRONG_CLIENTS,
    FuzzWorld,
    counted_handlers,
)
from tests.e2e.fuzzer import Mutant, Mutator, make_corpus
from tests.e2e.process_figures import resident_bytes
from tests.e2e.raw_requests import Control, Place
from tests.e2e.raw_wire import Connection, Frame

SEED = os.environ.get("BARNABAS_FUZZ_SEED", "1")
FROM = int(os.environ.get("BARNABAS_FUZZ_FROM", "0"))
FRAMES = int(os.environ.get("BARNABAS_FUZZ_FRAMES", "180000"))
SOCKET_FRAMES = int(os.environ.get("BARNABAS_FUZZ_SOCKET_FRAMES", "20000"))
SHARDS = int(os.environ.get("BARNABAS_FUZZ_SHARDS", "2"))

THOUSAND = 1000
KNOWN_SECONDS = 120.0
THOUSANDS_PER_PROCESS = 5
RESTART_EVERY = 10
"""Thousands between two kills of the broker in memory."""
FRAME_CPU_SECONDS_MAX = 3.0
"""What one frame may cost: the dearest good one makes some hundred logs."""
CONNECTIONS_LEFT_MAX = WRONG_CLIENTS + 3
"""Those for wrong frames, the broker's own to itself; the closed ones are forgotten."""
REACHED_MIN = 0.5
MIB = 1024 * 1024
GOOD_CORRELATION = b"good"
"""By which the answer to the good request behind each wrong one is known."""
PARKED_SECONDS = 0.25
"""A request that is not answered by then waits for something: a fetch for records."""


class Tally:
    """Frames by API, and how many of them got as far as a handler."""

    def __init__(self) -> None:
        self.sent: Counter[int] = Counter()
        self.reached: Counter[int] = Counter()

    def add(self, sent: Counter[int], reached: Counter[int]) -> None:
        self.sent.update(sent)
        self.reached.update(reached)

    def check(self) -> None:
        """At least half of all frames, and of each API, were handled."""
        rows = [
            f"{SERVED_NAMES[key]:22} {self.reached[key]:7} of {count:7}"
            for key, count in sorted(self.sent.items())
        ]
        print("\n".join(["frames that reached a handler", *rows]))
        assert self.reached.total() >= REACHED_MIN * self.sent.total(), rows
        poor = [key for key, count in self.sent.items() if self.reached[key] < REACHED_MIN * count]
        assert not poor, rows


SERVED_NAMES = {int(key): key.name for key in SERVED}


def test_the_corpus_has_every_version_that_is_served() -> None:
    served = {
        (int(key), version)
        for key, served in SERVED.items()
        for version in range(served.min_version, served.max_version + 1)
    }
    corpus = make_corpus(Place(), Control(), 9092)
    assert {(frame.api_key, frame.api_version) for frame in corpus} == served


def test_the_same_seed_gives_the_same_frames() -> None:
    corpus = [frame for frame in make_corpus(Place(), Control(), 9092) if frame.api_key != 0]
    first, second = Mutator(corpus, "seed"), Mutator(corpus, "seed")
    assert [first.next() for _ in range(2000)] == [second.next() for _ in range(2000)]
    other = Mutator(corpus, "other")
    assert [first.next() for _ in range(20)] != [other.next() for _ in range(20)]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_broker_in_memory(shard: int) -> None:
    print(f"seed {SEED}, from thousand {FROM}")
    tally = Tally()
    resident: list[int] = []
    objects: list[int] = []
    thousands = range(FROM + shard, FROM + max(1, FRAMES // THOUSAND), SHARDS)
    for place, number in enumerate(thousands):
        with counted_handlers() as entered:
            sent = feed_a_thousand(number, is_restarted=place % RESTART_EVERY == 0)
        tally.add(sent, entered)
        if place % 5 == 4:
            gc.collect()
            objects.append(len(gc.get_objects()))
            resident.append(resident_bytes(os.getpid()))
    if len(thousands) > 5:
        tally.check()
    if len(objects) > 5:
        # The memory of the dearest thousand is kept by the allocator; objects are not.
        assert max(objects[2:]) - objects[1] < 10_000, objects
        assert max(resident[2:]) - resident[1] < 128 * MIB, resident


def feed_a_thousand(number: int, *, is_restarted: bool) -> Counter[int]:
    """A new broker, a thousand frames, a good request; how many frames there were of each API."""
    world = FuzzWorld()
    mutator = Mutator(make_corpus(world.place, world.control, 9092), f"{SEED}:{number}")
    sent: Counter[int] = Counter()
    place, mutant = -1, None
    try:
        for place in range(THOUSAND):  # noqa: B007, told by what is raised
            mutant = mutator.next()
            sent[mutant.frame.api_key] += 1
            began = time.process_time()
            world.feed(mutant)
            taken = time.process_time() - began
            assert taken < FRAME_CPU_SECONDS_MAX, f"{taken:.1f} s of processor time"
        for failed in world.failed_requests():
            raise failed.bug
        world.check_good()
        world.check_directories()
        assert len(world.host.broker.connections) <= CONNECTIONS_LEFT_MAX
        if is_restarted:
            world.check_restart()
    except Exception as bug:
        raise AssertionError(
            f"BARNABAS_FUZZ_SEED={SEED} BARNABAS_FUZZ_FROM={number} BARNABAS_FUZZ_FRAMES=1000: "
            f"after frame {place} {describe(mutant)}: {str(bug)[:500]}"
        ) from bug
    return sent


def describe(mutant: Mutant | None) -> str:
    return "" if mutant is None else f"({', '.join(mutant.changes)}) {mutant.frame}"


@pytest.mark.timeout(0)
def test_a_process_over_a_socket(tmp_path: Path) -> None:
    print(f"seed {SEED}, from thousand {FROM}")
    tally = Tally()
    thousands = max(1, SOCKET_FRAMES // THOUSAND)
    for first in range(0, thousands, THOUSANDS_PER_PROCESS):
        numbers = range(FROM + first, FROM + min(first + THOUSANDS_PER_PROCESS, thousands))
        feed_a_process(tmp_path / f"from-{first}", numbers, tally)
    if thousands > 3:
        tally.check()


def feed_a_process(directory: Path, thousands: range, tally: Tally) -> None:
    """One broker process, some thousands of frames, its memory after each of them."""
    settings = {
        "num.partitions": "1",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "2",
        "log.segment.delete.delay.ms": "1000",
    }
    with BrokerProcess(directory, settings) as broker:
        place = make_topics(broker.port)
        figures: list[int] = []
        for number in thousands:
            client = FuzzClient(broker, place, number)
            client.feed(THOUSAND)
            tally.add(client.sent, client.reached)
            check_good(broker.port)
            figures.append(resident_bytes(broker.pid))
            complaints = [line for line in said_lines(broker) if "met a bug" in line]
            assert not complaints, f"{client.replay}: {complaints[:3]}"
        assert max(figures) - figures[0] < 64 * MIB, figures
        assert broker.stop() == 0
        broker.start()
        check_good(broker.port)


def said_lines(broker: BrokerProcess) -> list[str]:
    return broker.log_path.read_text(errors="replace").splitlines()


def make_topics(port: int) -> Place:
    asked = raw_requests.create_topics(4, [CORPUS, DOOMED, GOOD], partitions=2)
    asking = raw_requests.metadata(12, [CORPUS])
    with Connection(port) as connection:
        created = raw_answers.created_topics(asked, connection.ask(asked))
        assert set(created.values()) == {0}
        (topic,) = raw_answers.described(asking, connection.ask(asking)).topics
    return Place(CORPUS, topic.topic_id, 0, 0)


def check_good(port: int) -> None:
    """A record is taken and given back on a new connection, once the broker knows the topic.

    Behind a restart that takes a while: a controller of wrong epoch kept the broker from making
    the thousands of logs that frames asked for, and now it makes them.
    """
    describing = raw_requests.metadata(4, [GOOD])
    asked = raw_requests.produce(9, Place(GOOD), raw_batches.batch())
    deadline = time.monotonic() + KNOWN_SECONDS
    with Connection(port) as connection:
        while True:
            (topic,) = raw_answers.described(describing, connection.ask(describing)).topics
            if topic.error_code == 0 or time.monotonic() > deadline:
                break
            assert not connection.is_closed_by_broker(seconds=0.1)
        assert topic.error_code == 0, f"the topic of good requests is gone: {topic}"
        produced = raw_answers.produced(asked, connection.ask(asked))
        assert produced.error_code == 0
        reading = raw_requests.fetch(11, [Place(GOOD)], offset=produced.base_offset)
        (partition,) = raw_answers.fetched(reading, connection.ask(reading)).partitions
    stored = raw_batches.stored_batches(partition.records)
    assert stored[0].base_offset == produced.base_offset


class FuzzClient:
    """Sends each wrong frame with a good one behind it, and sees what comes back."""

    def __init__(self, broker: BrokerProcess, place: Place, number: int) -> None:
        self._broker = broker
        corpus = make_corpus(place, Control(), broker.port)
        self._mutator = Mutator(corpus, f"{SEED}:socket:{number}")
        self.replay = (
            f"BARNABAS_FUZZ_SEED={SEED} BARNABAS_FUZZ_FROM={number} "
            "BARNABAS_FUZZ_SOCKET_FRAMES=1000"
        )
        self.sent: Counter[int] = Counter()
        self.reached: Counter[int] = Counter()
        self._connection: Connection | None = None
        good = raw_requests.api_versions(0)
        self._good = good.replaced(good.data[:4] + GOOD_CORRELATION + good.data[8:])

    def feed(self, count: int) -> None:
        for place in range(count):
            mutant = self._mutator.next()
            try:
                self._send(mutant.frame)
            except (AssertionError, OSError) as problem:
                raise AssertionError(
                    f"{self.replay}: after frame {place} {describe(mutant)}: {problem}"
                    f"\n{self._broker.story()[-2000:]}"
                ) from problem
        self._drop()

    def _send(self, frame: Frame) -> None:
        connection = self._connection or Connection(self._broker.port)
        self._connection = connection
        connection.socket.settimeout(PARKED_SECONDS)
        self.sent[frame.api_key] += 1
        try:
            connection.send(frame)
            connection.send(self._good)
            while True:
                answer = connection.receive()
                if answer is None:
                    self._drop()
                    return
                if answer[:4] == GOOD_CORRELATION:
                    break
        except (BrokenPipeError, ConnectionResetError):
            self._drop()
            return
        except TimeoutError:
            # It waits, and the answer behind it waits with it: it got as far as that.
            self._drop()
        self.reached[frame.api_key] += 1

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
