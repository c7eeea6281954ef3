"""kcat: librdkafka on the command line; topics come by automatic creation."""

import json
import subprocess
from collections.abc import Sequence

from tests.e2e.clients.client import Read, Sent

SECONDS = 30.0


class Kcat:
    """One kcat process per task; keys and values are text without line breaks."""

    name = "kcat"
    can_create_topics = False
    can_read_by_time = True
    can_set_timestamps = False

    def create_topic(self, bootstrap: str, topic: str) -> None:
        raise AssertionError("kcat cannot create topics by itself")

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str, acks: str
    ) -> None:
        lines = b"".join(record.key + b"\t" + record.value + b"\n" for record in records)
        options = ["-z", codec] if codec != "none" else []
        where = ("-b", bootstrap, "-t", topic, "-p", "0", "-K", "\t")
        how = ("-X", f"acks={acks}", "-X", "linger.ms=5")
        run = subprocess.run(
            ["kcat", "-P", *where, *options, *how],
            input=lines,
            capture_output=True,
            timeout=SECONDS,
        )
        assert (run.returncode, run.stderr) == (0, b"")

    def read_from_start(self, bootstrap: str, topic: str, count: int) -> list[Read]:
        return self._read(bootstrap, topic, "beginning", count)

    def read_from_offset(self, bootstrap: str, topic: str, offset: int, count: int) -> list[Read]:
        return self._read(bootstrap, topic, str(offset), count)

    def read_from_time(
        self, bootstrap: str, topic: str, timestamp_ms: int, count: int
    ) -> list[Read]:
        return self._read(bootstrap, topic, f"s@{timestamp_ms}", count)

    def _read(self, bootstrap: str, topic: str, start: str, count: int) -> list[Read]:
        where = ("-b", bootstrap, "-t", topic, "-p", "0", "-o", start)
        run = subprocess.run(
            ["kcat", "-C", *where, "-c", str(count), "-J", "-q", "-X", "check.crcs=true"],
            capture_output=True,
            timeout=SECONDS,
        )
        assert run.returncode == 0, run.stderr
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        return [Read(row["offset"], row["key"].encode(), row["payload"].encode()) for row in rows]
