"""kio, an independent codec for Kafka's protocol, in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("kio_worker.py")


class Kio:
    """Asks the worker one thing after the other."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def decode_and_encode(self, key: int, version: int, side: str, data: bytes) -> dict[str, Any]:
        """What kio reads from the bytes, and the bytes it makes of that."""
        assert self._process.stdin is not None and self._process.stdout is not None
        ask = {"key": key, "version": version, "side": side, "hex": data.hex()}
        self._process.stdin.write(json.dumps(ask) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert isinstance(answer, dict)
        return answer


@contextmanager
def running_kio(directory: Path | None) -> Iterator[Kio]:
    """kio as installed, or the one in `directory`."""
    environment = dict(os.environ)
    if directory is not None:
        environment["PYTHONPATH"] = str(directory)
    with subprocess.Popen(
        [sys.executable, "-P", str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        yield Kio(process)
        assert process.stdin is not None
        process.stdin.close()
