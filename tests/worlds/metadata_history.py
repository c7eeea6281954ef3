"""Random transactions with the whole state after each of them."""

import random

from barnabas.model.znode import Create, CreateMode, Delete, Operation, SetData
from barnabas.zookeeper.journal import Image, Transaction
from barnabas.zookeeper.machine import ZooKeeperMachine

PATHS = ["/a", "/a/b", "/a/c", "/d", "/d/e", "/f"]


class History:
    """A machine that remembers every image of itself, by zxid."""

    def __init__(self, image: Image, draw: random.Random) -> None:
        self.machine = ZooKeeperMachine(image)
        self.images = {image.last_zxid: image}
        self.session_id = 0
        self.was_applied = False
        """Whether the newest request was done."""
        self._draw = draw
        self._wall_ms = 0

    @property
    def image(self) -> Image:
        return self.images[self.machine.last_zxid]

    def begin(self) -> list[Transaction]:
        """End the sessions there are and begin one, as an embedded store does."""
        transactions: list[Transaction] = []
        for session_id in self.machine.sessions.open_ids():
            transactions += self.machine.close_session(session_id, 0).transactions
            self._remember()
        opened = self.machine.open_session(18_000, 0)
        assert opened is not None
        self.session_id = opened.session_id
        self._remember()
        return [*transactions, opened.transaction]

    def create(
        self, path: str, data: bytes | None, is_ephemeral: bool = False
    ) -> list[Transaction]:
        mode = CreateMode.EPHEMERAL if is_ephemeral else CreateMode.PERSISTENT
        return self.apply([Create(path, data, mode)])

    def step(self) -> list[Transaction]:
        """One request that changes something."""
        while True:
            transactions = self.apply(random_operations(self._draw))
            if transactions:
                return transactions

    def apply(self, operations: list[Operation]) -> list[Transaction]:
        """One multi; wall time counts the requests."""
        self._wall_ms += 1
        applied = self.machine.apply(
            self.session_id, operations, is_multi=True, now_ms=0, wall_ms=self._wall_ms
        )
        self._remember()
        self.was_applied = all(outcome.is_ok for outcome in applied.outcomes)
        return applied.transactions

    def _remember(self) -> None:
        if self.machine.last_zxid not in self.images:
            self.images[self.machine.last_zxid] = self.machine.image()


def random_operations(draw: random.Random) -> list[Operation]:
    """One to three writes, more of them creations than others."""
    operations: list[Operation] = []
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        path = draw.choice(PATHS)
        data = draw.choice([None, b"", draw.randbytes(draw.choice([5, 500, 9000]))])
        match draw.randrange(5):
            case 0:
                operations.append(SetData(path, data))
            case 1:
                operations.append(Delete(path))
            case 2:
                operations.append(Create("/s-", data, CreateMode.EPHEMERAL_SEQUENTIAL))
            case _:
                operations.append(Create(path, data))
    return operations
