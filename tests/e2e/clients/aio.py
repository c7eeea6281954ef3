"""aiokafka: a client on asyncio."""

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.e2e.clients.client import Read, Sent

SECONDS = 20.0


class Aiokafka:
    """Producer, consumer and admin of aiokafka."""

    name = "aiokafka"
    can_create_topics = True
    can_read_by_time = True
    can_set_timestamps = True

    def create_topic(self, bootstrap: str, topic: str) -> None:
        asyncio.run(self._create_topic(bootstrap, topic))

    async def _create_topic(self, bootstrap: str, topic: str) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.create_topics([NewTopic(topic, 1, 1)])
        finally:
            await admin.close()

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, acks: str
    ) -> None:
        asyncio.run(self._produce(bootstrap, topic, records, codec, acks))

    async def _produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, acks: str
    ) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks=acks if acks == "all" else int(acks),
            linger_ms=5,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=0,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            await producer.flush()
            await asyncio.wait_for(asyncio.gather(*sent), SECONDS)
        finally:
            await producer.stop()

    def read_from_start(self, bootstrap: str, topic: str, count: int) -> list[Read]:
        return asyncio.run(self._read(bootstrap, topic, 0, count))

    def read_from_offset(self, bootstrap: str, topic: str, offset: int, count: int) -> list[Read]:
        return asyncio.run(self._read(bootstrap, topic, offset, count))

    def read_from_time(
        self, bootstrap: str, topic: str, timestamp_ms: int, count: int
    ) -> list[Read]:
        return asyncio.run(self._read(bootstrap, topic, None, count, timestamp_ms))

    async def _read(
        self, bootstrap: str, topic: str, offset: int | None, count: int, timestamp_ms: int = 0
    ) -> list[Read]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, check_crcs=True
        )
        await consumer.start()
        try:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            if offset is None:
                asked = await consumer.offsets_for_times({partition: timestamp_ms})
                offset = asked[partition].offset
            consumer.seek(partition, offset)
            found: list[Read] = []
            while len(found) < count:
                message = await asyncio.wait_for(consumer.getone(), SECONDS)
                found.append(Read(message.offset, message.key, message.value))
            return found
        finally:
            await consumer.stop()
