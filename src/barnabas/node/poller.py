"""Waits for many descriptors at once: epoll, or poll where the system has no epoll.

Hot: compiled by mypyc where a compiler is there, interpreted otherwise. It stands below the loop
instead of asyncio, whose handles, contexts and callbacks cost more than all else that a turn does
for itself, and whose import costs every start 40 ms and 6 MB.
"""

import math
import select
from typing import Final, Protocol

READABLE: Final = 1
"""POLLIN and EPOLLIN, everywhere."""
WRITABLE: Final = 4
"""POLLOUT and EPOLLOUT, everywhere."""
NOT_WATCHED: Final = -1
EVENTS_MAX: Final = 512
"""Taken at once; the others are still there the next time."""


class Pollable(Protocol):
    """Who is told what a descriptor is ready for."""

    def on_ready(self, is_readable: bool, is_writable: bool) -> None:
        """A broken connection is whatever it was watched for, and neither if that was nothing:
        then it must be forgotten, or it is told of again at once."""
        ...


class SystemPoll(Protocol):
    """What `select.epoll` can do."""

    def register(self, fd: int, eventmask: int, /) -> None: ...

    def modify(self, fd: int, eventmask: int, /) -> None: ...

    def unregister(self, fd: int, /) -> None: ...

    def poll(self, timeout: float, maxevents: int, /) -> list[tuple[int, int]]: ...

    def close(self) -> None: ...


class PlainPoll:
    """`select.poll` as if it were epoll: its time is in milliseconds and it has no limit."""

    def __init__(self) -> None:
        self._poll = select.poll()

    def register(self, fd: int, eventmask: int, /) -> None:
        self._poll.register(fd, eventmask)

    def modify(self, fd: int, eventmask: int, /) -> None:
        self._poll.modify(fd, eventmask)

    def unregister(self, fd: int, /) -> None:
        self._poll.unregister(fd)

    def poll(self, timeout: float, maxevents: int, /) -> list[tuple[int, int]]:
        return self._poll.poll(None if timeout < 0 else math.ceil(timeout * 1000))

    def close(self) -> None:
        """There is no descriptor to give back."""


def system_poll() -> SystemPoll:
    """The best that this system has."""
    if hasattr(select, "epoll"):
        return select.epoll()
    return PlainPoll()


class Poller:
    """Descriptors, what each is watched for, and whom to tell."""

    __slots__ = ("_new", "_poll", "_wanted", "_watched")

    def __init__(self, poll: SystemPoll | None = None) -> None:
        self._poll: SystemPoll = system_poll() if poll is None else poll
        self._watched: dict[int, Pollable] = {}
        self._wanted: dict[int, int] = {}
        self._new: dict[int, None] = {}
        """Watched since the last `wait`, which knows nothing of them."""

    def watch(self, fd: int, events: int, pollable: Pollable) -> None:
        """Watch for READABLE, WRITABLE or both from now on; 0 is for a broken connection alone."""
        wanted = self._wanted.get(fd, NOT_WATCHED)
        if events == wanted:
            return
        if wanted == NOT_WATCHED:
            self._poll.register(fd, events)
            self._watched[fd] = pollable
            self._new[fd] = None
        else:
            self._poll.modify(fd, events)
        self._wanted[fd] = events

    def forget(self, fd: int) -> None:
        """Watch it no more, as must be said before it is closed."""
        if self._wanted.pop(fd, NOT_WATCHED) != NOT_WATCHED:
            del self._watched[fd]
            self._poll.unregister(fd)

    def wait(self, timeout_ms: int) -> list[tuple[int, int]]:
        """What has happened, at the latest after so long; a negative time has no end."""
        self._new.clear()
        return self._poll.poll(timeout_ms / 1000 if timeout_ms >= 0 else -1, EVENTS_MAX)

    def tell(self, happened: list[tuple[int, int]]) -> None:
        """Tell everyone who was watched then and still is.

        What one is told may close the descriptor of another, whose number then comes to a third:
        that one has not been waited for.
        """
        watched = self._watched
        new = self._new
        for fd, events in happened:
            pollable = watched.get(fd)
            if pollable is not None and fd not in new:
                wanted = self._wanted[fd]
                is_broken = events & ~(READABLE | WRITABLE) != 0
                is_readable = wanted & READABLE != 0 and (is_broken or events & READABLE != 0)
                is_writable = wanted & WRITABLE != 0 and (is_broken or events & WRITABLE != 0)
                if is_readable or is_writable or (is_broken and wanted == 0):
                    pollable.on_ready(is_readable, is_writable)

    def close(self) -> None:
        """Give back the system's object; what was watched is closed by whoever opened it."""
        self._poll.close()
