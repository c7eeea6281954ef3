"""A process that writes metadata until it is killed, and says each answer it got."""

import queue
import random
import sys
from pathlib import Path

from barnabas.model.znode import StoreAnswer, StoreEvent
from barnabas.node.embedded_store import EmbeddedStore
from tests.worlds.metadata_history import random_operations

IN_FLIGHT = 20


def main(directory: str, seed: str) -> None:
    posted: queue.Queue[tuple[object, ...]] = queue.Queue()
    draw = random.Random(int(seed))
    requests = 0
    in_flight = 0

    def take(event: StoreEvent) -> None:
        nonlocal in_flight
        if isinstance(event, StoreAnswer):
            in_flight -= 1
            sys.stdout.write(f"{event.ticket} {int(event.is_ok)}\n")
            sys.stdout.flush()

    store = EmbeddedStore.open(
        Path(directory),
        post=lambda *call: posted.put(call),
        on_event=take,
        on_failed=lambda error: sys.exit(str(error)),
        epoch_ms=lambda: requests,
    )
    while True:
        while in_flight < IN_FLIGHT:
            requests += 1
            in_flight += 1
            store.submit(random_operations(draw), is_multi=True)
        callback, *arguments = posted.get()
        callback(*arguments)


main(*sys.argv[1:])
