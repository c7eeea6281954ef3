"""A broker, two clients, kill -9 under load, and the proof that nothing acknowledged was lost.

./run demo [--records N]
"""

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.e2e.broker_process import BrokerProcess  # noqa: E402
from tools.demo_clients import (  # noqa: E402
    WAIT_SECONDS,
    Client,
    ConfluentClient,
    PythonClient,
    create_topic,
)

PARTITIONS = 3
UNANSWERED_MAX = 2000


class Load:
    """Sends numbered records as fast as the answers come; remembers which were acknowledged."""

    def __init__(self, client: Client, progress: threading.Condition) -> None:
        self.client = client
        self.sent = 0
        self.acknowledged: list[bytes] = []
        self.errors: list[str] = []
        self._progress = progress
        self._is_stopping = threading.Event()
        self._room = threading.Semaphore(UNANSWERED_MAX)
        self._thread = threading.Thread(target=self._run, name=client.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no more, and wait for the answers that are out."""
        self._is_stopping.set()
        self._thread.join()
        self.client.flush()

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            if self._room.acquire(timeout=0.01):
                self._send_one()
            else:
                self.client.serve(0.05)

    def _send_one(self) -> None:
        value = f"{self.client.name} {self.sent}".encode()
        self.sent += 1

        def done(error: str | None) -> None:
            self._room.release()
            with self._progress:
                if error is None:
                    self.acknowledged.append(value)
                else:
                    self.errors.append(error)
                self._progress.notify_all()

        self.client.send(value, done)


class Verdict(NamedTuple):
    """What became of one client's records."""

    client: str
    sent: int
    acknowledged: int
    errors: int
    lost: int
    twice: int

    @property
    def is_good(self) -> bool:
        return self.acknowledged > 0 and not (self.errors or self.lost or self.twice)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=20_000, help="acknowledged before the kill")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as directory:
        verdicts = demonstrate(BrokerProcess(Path(directory)), options.records)
    is_good = all(verdict.is_good for verdict in verdicts)
    show(verdicts, is_good=is_good)
    return 0 if is_good else 1


def demonstrate(broker: BrokerProcess, records: int) -> list[Verdict]:
    """The whole story; the broker is gone at the end, whatever happened."""
    try:
        with told("a broker starts"):
            broker.start()
        with told(f"a topic of {PARTITIONS} partitions"):
            create_topic(broker.bootstrap, PARTITIONS)
        progress = threading.Condition()
        clients = (ConfluentClient(broker.bootstrap), PythonClient(broker.bootstrap))
        loads = [Load(client, progress) for client in clients]
        with told(f"two clients send; {records:,} records of each are acknowledged"):
            await_acknowledged(loads, progress, [records] * len(loads))
        with told("kill -9 while they send, and a new start on the same files"):
            broker.kill()
            broker.start()
        with told(f"the same clients go on; {records:,} records more of each"):
            await_acknowledged(
                loads, progress, [len(load.acknowledged) + records for load in loads]
            )
            for load in loads:
                load.stop()
        with told("both read everything back"):
            read = [client.read_all() for client in clients]
        with told("SIGTERM, a clean stop"):
            broker.stop()
    finally:
        if broker.process is not None:
            broker.kill()
    if sorted(read[0]) != sorted(read[1]):
        raise SystemExit("the two libraries did not read the same records")
    return [judge(load, read[0]) for load in loads]


def await_acknowledged(
    loads: Sequence[Load], progress: threading.Condition, wanted: Sequence[int]
) -> None:
    """Wait until every client has so many answers in all."""

    def is_reached() -> bool:
        return all(len(load.acknowledged) >= n for load, n in zip(loads, wanted, strict=True))

    with progress:
        if not progress.wait_for(is_reached, WAIT_SECONDS):
            counts = [f"{load.client.name} {len(load.acknowledged)}" for load in loads]
            raise SystemExit(f"no progress in {WAIT_SECONDS:g} s: {', '.join(counts)}")


def judge(load: Load, read: Sequence[bytes]) -> Verdict:
    """How often each acknowledged record of a client is there."""
    beginning = load.client.name.encode() + b" "
    counts = Counter(value for value in read if value.startswith(beginning))
    return Verdict(
        client=load.client.name,
        sent=load.sent,
        acknowledged=len(load.acknowledged),
        errors=len(load.errors),
        lost=sum(1 for value in load.acknowledged if not counts[value]),
        twice=sum(1 for count in counts.values() if count > 1),
    )


@contextmanager
def told(step: str) -> Generator[None]:
    """Say what happens and how long it took."""
    print(f"  {step} ...", end="", flush=True)
    began = time.monotonic()
    yield
    print(f" {time.monotonic() - began:.2f} s", flush=True)


def show(verdicts: Sequence[Verdict], *, is_good: bool) -> None:
    """The table, and where to go from here."""
    print(f"\n  {'client':16}{'sent':>10}{'acknowledged':>14}{'errors':>8}{'lost':>6}{'twice':>7}")
    for verdict in verdicts:
        print(
            f"  {verdict.client:16}{verdict.sent:>10,}{verdict.acknowledged:>14,}"
            f"{verdict.errors:>8}{verdict.lost:>6}{verdict.twice:>7}"
        )
    if not is_good:
        print("\n  this is not what was promised")
        return
    print("\n  every acknowledged record is there once, after kill -9 under load")
    print("\n  next:  ./run barnabas up                     a broker of your own on port 9092")
    print("         kcat -b 127.0.0.1:9092 -L             what it holds")
    print("         ./run test --fast                     its tests")
    print("         docs/architecture.md                  how it is made")


if __name__ == "__main__":
    sys.exit(main())
