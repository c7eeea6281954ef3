"""Our own idempotent producer goes on through kill -9 of a broker: nothing lost, nothing twice."""

import threading
from pathlib import Path

from barnabas.admin.addresses import parse_addresses
from barnabas.client.consumer import Consumer
from barnabas.client.offsets import LATEST, list_offsets
from barnabas.client.producer import NewRecord, Producer
from barnabas.client.topics import NewTopic, create_topics
from barnabas.model.ids import TopicPartition
from barnabas.node.blocking_client import BlockingClient
from tests.e2e.broker_process import BrokerProcess

KILLS = 3
SENDS_PER_KILL = 150
PARTITIONS = 2


def test_what_was_acknowledged_is_there_once_and_in_order(tmp_path: Path):
    turns = [threading.Event() for _ in range(KILLS)]
    with BrokerProcess(tmp_path) as broker:

        def kill_and_start() -> None:
            for turn in turns:
                turn.wait(60)
                broker.kill()
                broker.start()

        killer = threading.Thread(target=kill_and_start, daemon=True)
        with BlockingClient(parse_addresses(broker.bootstrap)) as client:
            client.run(create_topics(client.cluster, [NewTopic("t", PARTITIONS, 1)]))
            producer = Producer(client.cluster)
            killer.start()
            sent: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
            for number in range((KILLS + 1) * SENDS_PER_KILL):
                if number % SENDS_PER_KILL == 10 and number // SENDS_PER_KILL < KILLS:
                    turns[number // SENDS_PER_KILL].set()
                partition, value = number % PARTITIONS, f"{number}".encode()
                client.run(producer.send("t", [NewRecord(1, value, partition=partition)]))
                sent[partition].append(value)
            killer.join(60)
            assert not killer.is_alive()
            assert _read_all(client) == sent


def _read_all(client: BlockingClient) -> dict[int, list[bytes]]:
    places = [TopicPartition("t", number) for number in range(PARTITIONS)]
    ends = client.run(list_offsets(client.cluster, dict.fromkeys(places, LATEST)))
    consumer = Consumer(client.cluster, dict.fromkeys(places, 0))
    found: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    while any(consumer.positions[place] < ends[place].offset for place in places):
        for fetched in client.run(consumer.poll(1000)):
            values = [record.value or b"" for record in fetched.records]
            found[fetched.place.partition] += values
    return found
