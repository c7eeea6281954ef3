"""What the kernel says of a process: its memory and its processor time."""

import os
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """What the process holds in memory now."""
    return _status(pid, "VmRSS:")


def peak_bytes(pid: int) -> int:
    """The most that it held since `forget_peak`."""
    return _status(pid, "VmHWM:")


def forget_peak(pid: int) -> None:
    """Let the peak begin at what the process holds now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """The processor time of all threads of a process: a loaded machine does not add to it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def _status(pid: int, key: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {key} in /proc")
