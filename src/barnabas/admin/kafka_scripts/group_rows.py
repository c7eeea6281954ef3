"""Rows and sentences of `kafka-consumer-groups.sh` about groups and their offsets."""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.node.output import say, say_beside

MISSING = "-"
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
HEADER = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    *("CONSUMER-ID", "HOST", "CLIENT-ID"),
)


class OffsetRow(NamedTuple):
    """One partition of a group."""

    group: str
    topic: str
    partition: int
    offset: int | None
    end: int
    member_id: str
    host: str
    client_id: str


def say_error(message: str) -> None:
    """An error as the script prints it: on stdout, after an empty line."""
    say(f"\nError: {message}")


def state_allows(group: str, state: str, rows: int) -> bool:
    """Say what there is to say of a group's state; whether there are rows to print."""
    if state == "Dead":
        say_error(f"Consumer group '{group}' does not exist.")
        return False
    if state == "Empty":
        say_beside(f"\nConsumer group '{group}' has no active members.")
    elif state in REBALANCING:
        say_beside(f"\nWarning: Consumer group '{group}' is rebalancing.")
    return rows > 0


def say_rows(rows: Sequence[OffsetRow]) -> None:
    """The table of offsets; every line begins with its break, as the script's does."""
    cells = [HEADER, *(_cells(row) for row in rows)]
    widths = [15, 15, 10, 15, 15, 15, 15, 15]
    for column in (0, 1, 6, 7):
        widths[column] = max(15, *(len(row[column]) for row in cells[1:]))
    say("")
    for row in cells:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        say(" ".join((*padded, row[-1])))


def _cells(row: OffsetRow) -> tuple[str, ...]:
    offset = MISSING if row.offset is None else str(row.offset)
    lag = MISSING if row.offset is None else str(row.end - row.offset)
    who = (row.member_id, row.host, row.client_id)
    return (row.group, row.topic, str(row.partition), offset, str(row.end), lag, *who)
