"""The loop of one broker process: turns, ticks, and what other threads hand back.

A turn is everything that arrived together. Inputs go to the broker at once; `end_turn` runs once
after them, so that a turn costs one write per partition and one send per connection.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from barnabas.broker.ports import BrokerInputs
from barnabas.node.clock import monotonic_ms
from barnabas.node.transport import SocketTransport

SWEEP_SECONDS = 5.0


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed, else the standard loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class NodeLoop:
    """Drives one broker on one event loop.

    `broker` and `transport` are set once both exist; `post` may be called from any thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.broker: BrokerInputs
        self.transport: SocketTransport
        self._is_touched = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = -1
        self._posted: deque[Callable[[int], None]] = deque()

    def touch(self) -> None:
        """The broker was told something: the turn will be ended."""
        if not self._is_touched:
            self._is_touched = True
            self.loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._is_touched = False
        now_ms = self.transport.now_ms
        self.broker.end_turn(now_ms)
        self.transport.flush()
        self._set_timer()

    def _set_timer(self) -> None:
        """Ask for a tick; a timer that is early is left alone, since a spurious tick is cheap."""
        deadline_ms = self.broker.next_deadline_ms()
        if deadline_ms is None:
            return
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(0, deadline_ms - monotonic_ms())
        self._timer = self.loop.call_later(delay_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.transport.now_ms = now_ms = monotonic_ms()
        self.touch()
        self.broker.tick(now_ms)

    def post(self, call: Callable[[int], None]) -> None:
        """From any thread: run `call(now_ms)` on the loop, in the order of posting."""
        self._posted.append(call)
        self.loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        if not self._posted:
            return
        self.transport.now_ms = now_ms = monotonic_ms()
        self.touch()
        while self._posted:
            self._posted.popleft()(now_ms)

    def start_sweeping(self) -> None:
        """Look after idle and stuck connections from now on."""
        self.loop.call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self.transport.sweep(monotonic_ms())
        self.start_sweeping()
