"""The loop of one broker process: turns, ticks, and what signals and other threads hand over.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. A turn is everything that
arrived together. Inputs go to the broker at once; `end_turn` runs once after them, so that a turn
costs one write per partition and one send per connection.
"""

import signal
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

from barnabas.broker.deadlines import Deadlines
from barnabas.broker.ports import BrokerInputs
from barnabas.node.clock import monotonic_ms
from barnabas.node.loop_turns import LoopTurns
from barnabas.node.poller import READABLE, Poller
from barnabas.node.transport import SocketTransport

SWEEP_MS: Final = 5000
WAKE_BYTES: Final = 4096
WAIT_MS_MAX: Final = 3_600_000
"""A deadline may lie further ahead than the system's poll can count."""


class NodeLoop:
    """Drives one broker; `broker` and `transport` are set once both exist.

    `post` may be called from any thread, all else from the loop's own.
    """

    def __init__(self) -> None:
        self.poller = Poller()
        self.timers = Deadlines()
        """What node itself waits for; the broker has deadlines of its own."""
        self.broker: BrokerInputs
        self.transport: SocketTransport
        self._posted: deque[Callable[[int], object]] = deque()
        self._is_woken = False
        self._is_stopped = False
        self._on_signal: dict[int, Callable[[int], None]] = {}
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self.poller.watch(self._wake_reader.fileno(), READABLE, self)

    def run(self, turns: LoopTurns | None = None) -> None:
        """Turn until `stop`; how long the turns take is noted in `turns`, if there is one."""
        while not self._is_stopped:
            happened = self.poller.wait(self._wait_ms())
            if turns is None:
                self._turn(happened)
            else:
                turns.begin()
                self._turn(happened)
                turns.end()

    def stop(self) -> None:
        """End `run` after this turn."""
        self._is_stopped = True

    def close(self) -> None:
        """Give back what the loop itself has open; signals do again what they did before."""
        signal.set_wakeup_fd(-1)
        for number in self._on_signal:
            signal.signal(number, signal.SIG_DFL)
        self._wake_reader.close()
        self._wake_writer.close()
        self.poller.close()

    # -- the turn ----------------------------------------------------------------------------

    def _wait_ms(self) -> int:
        """How long nothing has to be done unless something happens; -1 when nothing waits."""
        if self._posted or self.transport.has_resumed:
            return 0
        deadline_ms = self.broker.next_deadline_ms()
        timer_ms = self.timers.next_ms()
        if deadline_ms is None or (timer_ms is not None and timer_ms < deadline_ms):
            deadline_ms = timer_ms
        if deadline_ms is None:
            return -1
        return min(max(0, deadline_ms - monotonic_ms()), WAIT_MS_MAX)

    def _turn(self, happened: list[tuple[int, int]]) -> None:
        self.transport.now_ms = now_ms = monotonic_ms()
        if self.transport.has_resumed:
            self.transport.take_up_resumed()
        self.poller.tell(happened)
        # What is posted by what was posted waits for the next turn.
        for _ in range(len(self._posted)):
            self._posted.popleft()(now_ms)
        timer_ms = self.timers.next_ms()
        if timer_ms is not None and timer_ms <= now_ms:
            self.timers.run_due(now_ms)
        deadline_ms = self.broker.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= now_ms:
            self.broker.tick(now_ms)
        self.broker.end_turn(now_ms)
        self.transport.flush()

    # -- what comes from elsewhere -----------------------------------------------------------

    def post(self, call: Callable[[int], object]) -> None:
        """From any thread: run `call(now_ms)` on the loop, in the order of posting."""
        self._posted.append(call)
        if not self._is_woken:
            self._is_woken = True
            self._wake_writer.send(b"\0")

    def on_signal(self, number: int, call: Callable[[int], None]) -> None:
        """Run `call(number)` on the loop when the signal comes."""
        self._on_signal[number] = call
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)
        # Python writes the number to the wake-up socket; its own handler has nothing to do.
        signal.signal(number, _ignore)

    def on_ready(self, is_readable: bool, is_writable: bool) -> None:
        """Somebody posted, or a signal came: a byte of zero, or the signal's number."""
        try:
            woken_by = self._wake_reader.recv(WAKE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        self._is_woken = False
        for number in woken_by:
            if number in self._on_signal:
                self._on_signal[number](number)

    def start_sweeping(self) -> None:
        """Look after idle and stuck connections from now on."""
        self.timers.at(monotonic_ms() + SWEEP_MS, self._sweep)

    def _sweep(self, now_ms: int) -> None:
        self.transport.sweep(now_ms)
        self.start_sweeping()


def _ignore(number: int, frame: object) -> None:
    """The handler of a signal that is told through the wake-up socket."""
