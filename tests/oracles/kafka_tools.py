"""Kafka 3.9.2's command-line tools in one JVM, and ours in this process, run side by side."""

import base64
import contextlib
import io
import subprocess
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from barnabas.__main__ import PROGRAMS
from tests.tools import java_command

SOURCE = Path(__file__).with_name("KafkaTools.java")
CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}


class Said(NamedTuple):
    """What a tool left behind."""

    exit_code: int
    out: str
    err: str


class KafkaTools:
    """A JVM that runs one command line after the other."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            java_command(SOURCE, "tools"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, tool: str, arguments: Sequence[str]) -> Said:
        """Run a tool by the name of its script."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(_encoded, (CLASSES[tool], *arguments))) + "\n")
        self._process.stdin.flush()
        code, out, err = self._process.stdout.readline().split()
        return Said(int(code), _decoded(out), _decoded(err))


def run_ours(tool: str, arguments: Sequence[str]) -> Said:
    """Run our program of that name."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = import_module(PROGRAMS[tool][0]).main(list(arguments))
    return Said(code, out.getvalue(), err.getvalue())


def retriable_codes() -> Iterator[str]:
    """Names of the error codes that Kafka's own clients ask again for."""
    yield from _ask("retriable").split()


def murmur2_of(keys: Sequence[bytes]) -> list[int]:
    """The hashes that Kafka's own producer makes of keys, signed."""
    lines = "".join(f"{base64.b64encode(key).decode() or '-'}\n" for key in keys)
    return [int(line) for line in _ask("murmur2", lines).split()]


def _ask(what: str, given: str = "") -> str:
    command = java_command(SOURCE, what)
    run = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode() or "-"


def _decoded(text: str) -> str:
    return "" if text == "-" else base64.b64decode(text).decode()
