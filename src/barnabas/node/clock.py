"""The real clocks: monotonic milliseconds for every wait, time of day for timestamps."""

import time


def monotonic_ms() -> int:
    """Milliseconds that never go back."""
    return time.monotonic_ns() // 1_000_000


class RealWallClock:
    """Time of day, as the machine has it."""

    def epoch_ms(self) -> int:
        return time.time_ns() // 1_000_000
