"""A real broker as a child process: started, killed, started again on the same directories."""

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECONDS = 30.0
STOP_SECONDS = 30.0


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class BrokerProcess:
    """One broker with its embedded metadata store under `directory`."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        open_files_max: int | None = None,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self._open_files_max = open_files_max
        """What the system allows the process; None: what it allows this one."""
        self.options = options
        self._environment = environment or {}
        self.port = free_port()
        self.log_path = directory / "broker.out"
        self.log_dir = directory / "logs"
        properties = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.log_dir),
            "barnabas.metadata.dir": str(directory / "metadata"),
            "num.partitions": "3",
            **(settings or {}),
        }
        self.properties_path = directory / "server.properties"
        directory.mkdir(parents=True, exist_ok=True)
        self.properties_path.write_text(
            "".join(f"{key}={value}\n" for key, value in properties.items())
        )
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> Self:
        """Start and wait for the line that says it is ready."""
        assert self.process is None
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA_")}
        program = [sys.executable, "-m", "barnabas", "broker", str(self.properties_path)]
        command = [*program, *self.options]
        if self._open_files_max is not None:
            limited = f'ulimit -n {self._open_files_max} && exec "$@"'
            command = ["sh", "-c", limited, "sh", *command]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self.log_path.open("ab"),
            env={**environment, **self._environment},
        )
        self._await_ready()
        return self

    def _await_ready(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        deadline = time.monotonic() + START_SECONDS
        seen = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"] started" not in seen:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError(f"no start line within {START_SECONDS} s: {self.story()}")
                chunk = os.read(self.process.stdout.fileno(), 65536)
                if not chunk:
                    code = self.process.wait()
                    raise RuntimeError(f"the broker ended with {code}: {seen!r} {self.story()}")
                seen += chunk

    def story(self) -> str:
        """What the broker said on stderr, its end."""
        return self.log_path.read_text(errors="replace")[-4000:]

    def kill(self) -> None:
        """kill -9: nothing is flushed, nothing is said."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, and wait for the clean end; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        assert self.process is not None
        process, self.process = self.process, None
        process.send_signal(how)
        try:
            code = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process is not None:
            self.kill()
