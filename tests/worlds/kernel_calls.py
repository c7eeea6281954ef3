"""What reaches the kernel and must be in order there: syncs with what they found, and renames."""

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

OPEN = "open"
SYNC = "sync"
SYNC_DIRECTORY = "sync directory"
RENAME = "rename"


class KernelCall(NamedTuple):
    """One call; paths are told from the root on."""

    kind: str
    path: str
    found: object = None
    """The bytes or names that the sync made durable, or what the file was renamed to."""


class KernelCalls:
    """Stands between `os` and a test, lets everything through, and remembers."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = f"{root}/"
        self._lock = threading.Lock()
        self._paths: dict[int, str] = {}
        self.calls: list[KernelCall] = []
        self._open = os.open
        monkeypatch.setattr(os, "open", self._noting_open)
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._noting_sync(getattr(os, name)))
        for name in ("rename", "replace"):
            monkeypatch.setattr(os, name, self._noting_rename(getattr(os, name)))

    def without_opens(self) -> list[KernelCall]:
        """The calls that decide what a power loss leaves."""
        return [call for call in self.calls if call.kind != OPEN]

    def _note(self, kind: str, path: str, found: object = None) -> None:
        if path.startswith(self._root):
            with self._lock:
                self.calls.append(KernelCall(kind, path.removeprefix(self._root), found))

    def _noting_open(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        descriptor = self._open(path, flags, *more, **named)
        self._paths[descriptor] = str(path)
        self._note(OPEN, str(path))
        return descriptor

    def _noting_sync(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def noting(descriptor: int) -> None:
            sync(descriptor)
            path = self._paths[descriptor]
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                self._note(SYNC_DIRECTORY, path, sorted(os.listdir(descriptor)))
                return
            # The descriptor may be one that only writes.
            self._note(SYNC, path, Path(path).read_bytes())

        return noting

    def _noting_rename(self, rename: Callable[[str, str], None]) -> Callable[[str, str], None]:
        def noting(source: str, target: str) -> None:
            rename(source, target)
            self._note(RENAME, source, target.removeprefix(self._root))

        return noting
