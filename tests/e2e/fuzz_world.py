"""A whole broker in memory, in virtual time, that is fed wrong frames: fast and open to look at.

Its controller, log, store and links to itself are the real ones on the ports of tests.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from barnabas.broker.event_stream import RequestFailed
from barnabas.broker.router import SERVED
from barnabas.formats.logdir.names import parse_log_directory_name
from tests.e2e import raw_answers, raw_batches, raw_requests
from tests.e2e.fuzzer import Mutant
from tests.e2e.raw_requests import Control, Place
from tests.e2e.raw_wire import Frame, Reader, answer_reader, with_length
from tests.worlds.cluster_world import ClusterWorld
from tests.worlds.virtual_network import Opener, Wire
from tests.worlds.virtual_world import LOG_DIR

ANSWER_MS = 40_000
"""Virtual time within which a good request has to be answered."""
WRONG = "wrong"
"""What the names of clients begin with that send wrong frames."""
WRONG_CLIENTS = 4
FRAMES_PER_PAUSE = 100
PAUSE_MS = 3000
CORPUS, DOOMED, GOOD = "corpus", "doomed", "good"


class BugFound(AssertionError):
    """A frame met a bug; the text says which and how it came to be."""


class RawClient(Opener):
    """One wire to the broker."""

    def __init__(self, world: "FuzzWorld", name: str) -> None:
        self.name = name
        self._world = world
        self._wire: Wire | None = None
        self._is_told_of_end = False
        self.answers: list[bytes] = []
        world.network.open(self, world.host.address)
        world.run_until(lambda: self._wire is not None)

    def on_open(self, wire: Wire) -> None:
        self._wire = wire

    def on_frame(self, frame: bytes) -> None:
        self.answers.append(frame[4:])

    def on_closed(self, reason: str) -> None:
        self._is_told_of_end = True

    @property
    def is_closed(self) -> bool:
        """Whether the broker has closed it, be that known here already or not."""
        return self._is_told_of_end or (self._wire is not None and not self._wire.is_open)

    def send(self, frame: Frame) -> None:
        assert self._wire is not None
        self._wire.to_host(with_length(frame.data))

    def ask(self, frame: Frame) -> Reader:
        """Send a good request; its answer."""
        self.answers.clear()
        self.send(frame)
        self._world.run_until(lambda: bool(self.answers) or self._is_told_of_end, ANSWER_MS)
        if not self.answers:
            raise BugFound(f"a good request was answered with the end of its connection: {frame}")
        return answer_reader(frame.api_key, frame.api_version, self.answers.pop())

    def close(self) -> None:
        assert self._wire is not None
        self._wire.close_from_opener()


class FuzzWorld(ClusterWorld):
    """One broker that is its own controller, with topics that frames may spoil and one that not."""

    def __init__(self) -> None:
        super().__init__()
        self.add_brokers(
            1,
            num_partitions="2",
            log_segment_delete_delay_ms="1000",
            offsets_topic_replication_factor="1",
            offsets_topic_num_partitions="2",
        )
        self.host = self.hosts[1]
        self._opened = 0
        with_topics = raw_requests.create_topics(4, [CORPUS, DOOMED, GOOD], partitions=2)
        client = self.open()
        created = raw_answers.created_topics(with_topics, client.ask(with_topics))
        assert set(created.values()) == {0}
        describing = raw_requests.metadata(12, [CORPUS])
        (topic,) = raw_answers.described(describing, client.ask(describing)).topics
        self.place = Place(CORPUS, topic.topic_id, 0, 0)
        client.close()
        self._fed = 0
        self._wrong = self._open_wrong()
        self.check_good()

    def open(self, kind: str = "good") -> RawClient:
        self._opened += 1
        return RawClient(self, f"{kind}{self._opened}")

    def _open_wrong(self) -> list[RawClient]:
        return [self.open(WRONG) for _ in range(WRONG_CLIENTS)]

    @property
    def control(self) -> Control:
        return Control(1, 1, -1)

    def feed(self, mutant: Mutant) -> None:
        """Let the broker have it, from one of a few connections in turn.

        Two of three times all is done at once that can be; else the next frame comes in between.
        Now and then some time passes, for what waits for it.
        """
        self._fed += 1
        place = self._fed % WRONG_CLIENTS
        if self._wrong[place].is_closed:
            self._wrong[place] = self.open(WRONG)
        self._wrong[place].send(mutant.frame)
        if self._fed % 3:
            self.scheduler.now_ms += 1
            self.settle()
        if self._fed % FRAMES_PER_PAUSE == 0:
            self.run(PAUSE_MS)
        self._wrong[place].answers.clear()
        if self.host.failure is not None:
            raise BugFound(f"the broker gave up: {self.host.failure!r}")

    def check_restart(self) -> None:
        """kill -9 and a start on what is on the disk: nothing that was sent may be in its way."""
        self.crash(1)
        self.restart(1)
        self._wrong = self._open_wrong()
        self.check_directories()
        self.run_until(lambda: self.host.broker.metadata_cache.contains(GOOD, 0))
        self.check_good()

    def check_directories(self) -> None:
        """Whatever names came over the wire, only logs are in the log directory, and no more."""
        outside = [name for name in self.host.disk.list_directory("/") if name != "logs/"]
        assert not outside, f"made beside the log directory: {outside}"
        for name in self.host.disk.list_directory(LOG_DIR):
            if name.endswith("/") and parse_log_directory_name(name[:-1]) is None:
                raise BugFound(f"{name[:80]!r} in the log directory, which is no log's name")

    def failed_requests(self) -> list[RequestFailed]:
        """Bugs that were kept to their connection."""
        return self.host.told.of(RequestFailed)

    def forget_story(self) -> None:
        self.trace.clear()
        self.host.told.events.clear()

    def check_good(self) -> None:
        """A record is taken and given back, on a connection of its own."""
        client = self.open()
        asked = raw_requests.produce(9, Place(GOOD), raw_batches.batch())
        produced = raw_answers.produced(asked, client.ask(asked))
        reading = raw_requests.fetch(11, [Place(GOOD)], offset=produced.base_offset)
        fetched = raw_answers.fetched(reading, client.ask(reading))
        listing = raw_requests.api_versions(4)
        versions = raw_answers.versions(client.ask(listing), 4)
        client.close()
        if produced.error_code or fetched.partitions[0].error_code or versions.error_code:
            raise BugFound(f"a good request went wrong: {produced} {fetched} {versions}")
        stored = raw_batches.stored_batches(fetched.partitions[0].records)
        if not stored or stored[0].base_offset != produced.base_offset:
            raise BugFound(f"a record was not given back: {produced} {stored}")


@contextmanager
def counted_handlers() -> Iterator[Counter[int]]:
    """How often a wrong frame got to a handler, by API; for brokers made inside the context."""
    entered: Counter[int] = Counter()
    originals: list[tuple[Any, Any]] = []
    for api_key, served in SERVED.items():
        module = import_module(f"barnabas.broker.handlers.{served.handler}")
        originals.append((module, module.handle))
        module.handle = _counting(module.handle, int(api_key), entered)
    try:
        yield entered
    finally:
        for module, handle in originals:
            module.handle = handle


def _counting(handle: Any, api_key: int, entered: Counter[int]) -> Any:
    def count(broker: Any, request: Any, body: Any, now_ms: int) -> Any:
        if request.connection.peer_host.startswith(WRONG):
            entered[api_key] += 1
        return handle(broker, request, body, now_ms)

    return count
