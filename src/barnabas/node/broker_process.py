"""One broker in this process: its sockets, disk, store and loop, from first to last turn."""

import contextlib
import gc
import os
import random
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from barnabas.broker.broker import Broker
from barnabas.broker.event_stream import (
    BrokerFailed,
    BrokerStarted,
    BrokerStopped,
    Event,
    ListenersWanted,
)
from barnabas.model.config import BrokerConfig
from barnabas.model.errors import (
    BarnabasError,
    ConfigRefused,
    DiskError,
    LogDirectoryInUse,
    LogDirectoryRefused,
    MetadataFileInUse,
    MetadataFileRefused,
)
from barnabas.model.listeners import Listener
from barnabas.model.znode import StoreEvent
from barnabas.node import listeners
from barnabas.node.clock import RealWallClock, monotonic_ms
from barnabas.node.create_topic_policy import load_create_topic_policy
from barnabas.node.embedded_store import EmbeddedStore
from barnabas.node.event_log import EventLog
from barnabas.node.loop import NodeLoop
from barnabas.node.loop_turns import VARIABLE as LOOP_TURNS_VARIABLE
from barnabas.node.loop_turns import LoopTurns
from barnabas.node.output import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    ProgramError,
    report,
    warn,
)
from barnabas.node.real_disk import RealDisk
from barnabas.node.transport import SocketTransport
from barnabas.storage.disk import DiskJob

KEPT_BYTES = 4 * 1024 * 1024
"""Room for a few large batches; twice that is kept at most."""
OTHER_FILES = 64
"""Libraries, the metadata file, the sockets listened on, links to peers, logs being loaded."""
FILES_ENOUGH = 1 << 20
"""What is taken for a limit where the system has none."""


class BrokerProcess:
    """A broker and the world around it; `run` returns the exit code once it has stopped."""

    def __init__(
        self, config: BrokerConfig, on_started: Callable[[int], None], *, is_verbose: bool
    ) -> None:
        self._on_started = on_started
        self._exit_code = EXIT_OK
        self._is_stopping = False
        self._turns = LoopTurns() if os.environ.get(LOOP_TURNS_VARIABLE) else None
        policy = load_create_topic_policy(config.barnabas_create_topic_policy)
        raise_file_limit()
        limits = listeners.by_address(config.max_connections_per_ip_overrides)
        bound = listeners.listen(config.listeners, config.socket_listen_backlog_size)
        self.config = with_real_addresses(config, [listener for listener, _ in bound])
        self._loop = NodeLoop()
        log_files_max, connections_max = share_files()
        self._disk = RealDisk(self._on_disk_done, log_files_max)
        self._store = self._open_store()
        self._transport = SocketTransport(
            self._loop.poller,
            self._loop.timers,
            self._loop.post,
            frame_bytes_max=config.socket_request_max_bytes,
            connections_max=min(config.max_connections, connections_max),
            connections_per_host_max=config.max_connections_per_ip,
            connections_by_host_max=limits,
            idle_ms_max=config.connections_max_idle_ms,
        )
        self.broker = Broker(
            self.config,
            self._disk,
            self._store,
            self._transport,
            RealWallClock(),
            # Ids and placement are not to be guessed from outside.
            random.Random(random.SystemRandom().getrandbits(256)),
            monotonic_ms(),
            policy,
        )
        self._transport.broker = self._loop.broker = self.broker
        self._loop.transport = self._transport
        self._event_log = EventLog(self._loop.timers, is_verbose=is_verbose)
        self.broker.events.subscribe(self._event_log.read)
        self.broker.events.subscribe(self._read)
        self._bound = bound

    def run(self) -> int:
        """Serve until a signal, or until the broker gives up."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.on_signal(number, self._stop)
        self._loop.post(self._start)
        try:
            self._loop.run(self._turns)
        except Exception as bug:
            self._note_bug(bug)
        finally:
            self._transport.close_all()
            self._event_log.close()
            self._store.close()
            self._disk.stop()
            self._loop.close()
        return self._exit_code

    def _start(self, now_ms: int) -> None:
        try:
            self.broker.start(now_ms)
        except BarnabasError as error:
            self._give_up(to_program_error(error))
            return
        self._loop.start_sweeping()

    def _stop(self, number: int) -> None:
        """The first signal asks for a clean stop, the second does not wait for it."""
        if number == signal.SIGINT:
            self._exit_code = EXIT_INTERRUPTED
        if self._is_stopping:
            self._loop.stop()
            return
        self._is_stopping = True
        if self._turns is not None:
            self._turns.write(Path(os.environ[LOOP_TURNS_VARIABLE]))
        self._transport.stop_listening()
        self.broker.stop(self._transport.now_ms)

    def _read(self, event: Event, now_ms: int) -> None:
        match event:
            case ListenersWanted():
                for listener, sock in self._bound:
                    self._transport.listen(listener.name, sock)
            case BrokerStarted(broker_id):
                # What start-up made lives as long as the process: no collection looks at it again.
                gc.freeze()
                gc.enable()
                keep_freed_memory()
                # Whoever waited for the line may be gone; the broker is there all the same.
                with contextlib.suppress(OSError):
                    self._on_started(broker_id)
            case BrokerStopped():
                self._loop.stop()
            case BrokerFailed(error):
                self._give_up(to_program_error(error))
            case _:
                pass

    def _give_up(self, error: ProgramError) -> None:
        report(error)
        self._exit_code = error.exit_code
        self._loop.stop()

    def _note_bug(self, bug: Exception) -> None:
        """A bug outside of any request: nothing this process would still write can be trusted."""
        traceback.print_exception(bug, file=sys.stderr)
        self._give_up(
            ProgramError(
                "the broker stops: it met a bug of its own",
                cause=str(bug),
                fix="start it again: it recovers as after a power loss; and report the lines above",
                see="bug",
            )
        )

    # -- what other threads and the store hand to the loop -------------------------------------

    def _open_store(self) -> EmbeddedStore:
        directory = Path(self.config.barnabas_metadata_dir)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            return EmbeddedStore.open(
                directory,
                post=self._post,
                on_event=self._on_store,
                on_failed=self._on_store_failed,
                epoch_ms=RealWallClock().epoch_ms,
            )
        except (BarnabasError, OSError) as error:
            raise to_program_error(error) from None

    def _post(self, callback: Callable[..., object], /, *arguments: object) -> None:
        """The store's callbacks take no time."""
        self._loop.post(lambda now_ms: callback(*arguments))

    def _on_store(self, event: StoreEvent) -> None:
        self.broker.on_store(event, self._transport.now_ms)

    def _on_store_failed(self, error: DiskError) -> None:
        self._give_up(to_program_error(error))

    def _on_disk_done(self, job: DiskJob) -> None:
        # The loop may be gone by the time the last jobs are done.
        with contextlib.suppress(OSError):
            self._loop.post(partial(self._hand_over, job))

    def _hand_over(self, job: DiskJob, now_ms: int) -> None:
        self.broker.on_disk_done(job, now_ms)


def keep_freed_memory() -> None:
    """Let glibc keep freed blocks up to this size for the next ones.

    At first it maps every block above 128 KiB anew and unmaps it when it is freed, which costs a
    page fault for each 4 KiB of each large batch. It stops doing so for blocks as large as one
    that was freed; this one is never touched, so that it takes no memory itself.
    """
    bytes(KEPT_BYTES)


def raise_file_limit() -> None:
    """Let this process open as many files as the machine allows it to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems name a hard limit that they do not grant.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def share_files() -> tuple[int, int]:
    """How many files the logs may open, and how many connections there may be.

    Half of what is left each: neither of them may bring it about that the other has none.
    """
    files_max, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files_max == resource.RLIM_INFINITY:
        files_max = FILES_ENOUGH
    room = max(files_max - OTHER_FILES, files_max // 2)
    return room // 2, room - room // 2


def with_real_addresses(config: BrokerConfig, bound: Sequence[Listener]) -> BrokerConfig:
    """The configuration with the ports that were bound and, for an empty host, this machine's."""
    ports = {listener.name: listener.port for listener in bound}
    advertised = tuple(
        listener._replace(
            host=listener.host or socket.getfqdn(),
            port=listener.port or ports[listener.name],
        )
        for listener in config.advertised_listeners
    )
    real = replace(config, listeners=tuple(bound), advertised_listeners=advertised)
    _warn_if_unreachable(real.inter_broker_listener)
    return real


def _warn_if_unreachable(listener: Listener) -> None:
    """The controller reaches this broker by its advertised name, from here as from elsewhere."""
    try:
        socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)
    except socket.gaierror as problem:
        warn(
            f"advertised.listeners: {listener.host} cannot be resolved from here"
            f" ({problem.strerror}); until it can, no partition gets a leader"
        )


def to_program_error(error: Exception) -> ProgramError:
    """What the world did to the broker, with a way out."""
    match error:
        case ProgramError():
            return error
        case LogDirectoryInUse() | MetadataFileInUse():
            return ProgramError(
                "a directory is in use",
                cause=str(error),
                fix="name other directories in log.dirs and barnabas.metadata.dir, or stop it",
                see="directory-in-use",
            )
        case LogDirectoryRefused() | MetadataFileRefused():
            return ProgramError(
                "a directory is not this broker's",
                cause=str(error),
                fix="name the right directory in log.dirs and barnabas.metadata.dir, or a new one",
                see="foreign-directory",
            )
        case DiskError():
            return ProgramError(
                f"the disk refuses {error.path}",
                cause=error.reason,
                fix="make room, or name another directory in log.dirs or barnabas.metadata.dir",
                see="disk-refuses",
            )
        case OSError():
            return ProgramError(
                f"the disk refuses {error.filename}",
                cause=error.strerror or str(error),
                fix="name another directory in log.dirs or barnabas.metadata.dir",
                see="disk-refuses",
            )
        case ConfigRefused():
            return ProgramError(
                f"{error.key}={error.value}", cause=error.reason, fix="", see="bad-value"
            )
        case _:
            return ProgramError(str(error), see="start-failed", exit_code=EXIT_FAILED)
