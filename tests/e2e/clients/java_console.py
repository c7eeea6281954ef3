"""Kafka 3.9.2's console producer and consumer; topics come by automatic creation."""

import subprocess
from collections.abc import Sequence

from tests.e2e.clients.client import Read, Sent
from tests.tools import kafka_class_path

SECONDS = 60.0
JAVA = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


class JavaConsole:
    """One JVM per task; keys and values are text without line breaks."""

    name = "java-console"
    can_create_topics = False
    can_read_by_time = False
    can_set_timestamps = False

    def create_topic(self, bootstrap: str, topic: str) -> None:
        raise AssertionError("the console producer cannot create topics by itself")

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, acks: str
    ) -> None:
        lines = b"".join(record.key + b"\t" + record.value + b"\n" for record in records)
        run = self._java(
            "kafka.tools.ConsoleProducer",
            *("--bootstrap-server", bootstrap, "--topic", topic),
            *("--property", "parse.key=true", "--property", "key.separator=\t"),
            *("--compression-codec", codec, "--request-required-acks", acks),
            *("--producer-property", "enable.idempotence=false"),
            given=lines,
        )
        assert b"ERROR" not in run.stderr, run.stderr

    def read_from_start(self, bootstrap: str, topic: str, count: int) -> list[Read]:
        return self._read(bootstrap, topic, "earliest", count)

    def read_from_offset(self, bootstrap: str, topic: str, offset: int, count: int) -> list[Read]:
        return self._read(bootstrap, topic, str(offset), count)

    def read_from_time(
        self, bootstrap: str, topic: str, timestamp_ms: int, count: int
    ) -> list[Read]:
        raise AssertionError("the console consumer cannot look up a time")

    def _read(self, bootstrap: str, topic: str, start: str, count: int) -> list[Read]:
        run = self._java(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", bootstrap, "--topic", topic),
            *("--partition", "0", "--offset", start, "--max-messages", str(count)),
            *("--timeout-ms", "20000", "--property", "print.key=true"),
            *("--property", "print.offset=true", "--property", "key.separator=\t"),
        )
        found: list[Read] = []
        for line in run.stdout.splitlines():
            offset, key, value = line.split(b"\t")
            found.append(Read(int(offset.removeprefix(b"Offset:")), key, value))
        return found

    def _java(
        self, main: str, *arguments: str, given: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        run = subprocess.run(
            [*JAVA, "-cp", kafka_class_path(), main, *arguments],
            input=given,
            capture_output=True,
            timeout=SECONDS,
        )
        assert run.returncode == 0, run.stderr
        return run
