"""The brokers that are asked wrong things: ours, and the real one that ours is held to."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.e2e import raw_answers, raw_batches, raw_requests
from tests.e2e.broker_process import BrokerProcess
from tests.e2e.raw_answers import Produced
from tests.e2e.raw_requests import Place
from tests.e2e.raw_wire import Connection
from tests.oracles.kafka import running_kafka
from tests.tools import need

OURS = "barnabas"
KAFKA = "kafka"

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "num.partitions": "1",
    "auto.create.topics.enable": "true",
}


class Subject:
    """A running broker, and what a test needs to know of it."""

    def __init__(self, name: str, port: int, process: BrokerProcess | None) -> None:
        self.name = name
        self.port = port
        self.process = process
        self._topics: dict[str, Place] = {}

    def connect(self) -> Connection:
        return Connection(self.port)

    def said(self) -> bytes:
        """What our broker has written to its log so far; nothing of others."""
        return b"" if self.process is None else self.process.log_path.read_bytes()

    def topic(self, name: str, configs: Mapping[str, str] | None = None) -> Place:
        """Partition 0 of a topic that is made when it is first asked for."""
        if name not in self._topics:
            rows = list((configs or {}).items())
            asked = raw_requests.create_topics(4, [name], configs=rows)
            with self.connect() as connection:
                answer = raw_answers.created_topics(asked, connection.ask(asked))
            assert answer == {name: 0}
            self._topics[name] = self.describe(name)
        return self._topics[name]

    def describe(self, name: str) -> Place:
        """Where partition 0 of an existing topic is now."""
        asked = raw_requests.metadata(12, [name])
        with self.connect() as connection:
            (topic,) = raw_answers.described(asked, connection.ask(asked)).topics
        assert topic.error_code == 0
        return Place(name, topic.topic_id, 0, topic.leaders[0][2])

    def produce(self, place: Place, records: bytes | None, api_version: int = 9) -> Produced:
        asked = raw_requests.produce(api_version, place, records)
        with self.connect() as connection:
            return raw_answers.produced(asked, connection.ask(asked))

    def log_end(self, place: Place) -> int:
        """The offset that the next record will get."""
        asked = raw_requests.list_offsets(5, place)
        with self.connect() as connection:
            answer = raw_answers.listed_offset(asked, connection.ask(asked))
        assert answer.error_code == 0
        return answer.offset

    def check_good_requests(self, connection: Connection | None = None) -> None:
        """What was asked wrongly has hurt nobody: a record is taken and given back.

        On the connection given, else on a new one.
        """
        if connection is None:
            with self.connect() as another:
                self.check_good_requests(another)
            return
        place = self.topic("good")
        asked = raw_requests.produce(9, place, raw_batches.batch())
        answer = raw_answers.produced(asked, connection.ask(asked))
        assert answer.error_code == 0
        reading = raw_requests.fetch(11, [place], offset=answer.base_offset)
        (partition,) = raw_answers.fetched(reading, connection.ask(reading)).partitions
        assert partition.error_code == 0
        stored = raw_batches.stored_batches(partition.records)
        assert stored[0].base_offset == answer.base_offset


def running_subject(name: str, directory: Path, options: Sequence[str] = ()) -> Iterator[Subject]:
    """One of the two until the generator is closed."""
    if name == OURS:
        with BrokerProcess(directory, SETTINGS, options=options) as broker:
            yield Subject(name, broker.port, broker)
    else:
        need("java")
        with running_kafka(directory, SETTINGS) as port:
            yield Subject(name, port, None)
