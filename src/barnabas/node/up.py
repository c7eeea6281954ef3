"""`barnabas up`: a broker to try things on, with its data in one directory of the user's."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from barnabas import __version__
from barnabas.formats.properties import Setting
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.node.arguments import Arguments
from barnabas.node.output import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, ProgramError, report, say

HOST = "127.0.0.1"
DEFAULT_PORT = 9092
BROKERS_MAX = 1
LOCK_FILE = ".lock-up"


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit code."""
    try:
        return _run(arguments)
    except ProgramError as error:
        report(error)
        return error.exit_code


def _run(arguments: Sequence[str]) -> int:
    began = time.monotonic()
    options = _parser().parse_args(arguments)
    if not 1 <= options.brokers <= BROKERS_MAX:
        raise ProgramError(
            f"--brokers {options.brokers}",
            cause="this version runs one broker; several come with replication between processes",
            fix="barnabas up --brokers 1",
            see="usage",
            exit_code=EXIT_USAGE,
        )
    if not 0 <= options.port <= 65535:
        raise ProgramError(
            f"--port {options.port}",
            cause="a port is a number up to 65535; 0 takes any that is free",
            fix=f"barnabas up --port {DEFAULT_PORT}",
            see="usage",
            exit_code=EXIT_USAGE,
        )
    directory = Path(options.dir).expanduser() if options.dir else default_directory()
    with _held(directory):
        if options.fresh:
            wipe(directory, options.brokers)
        return _serve(directory, options.port, options.brokers, options.verbose, began)


def _serve(directory: Path, port: int, brokers: int, is_verbose: bool, began: float) -> int:
    from barnabas.node.broker_process import BrokerProcess
    from barnabas.node.settings import resolve_settings

    departures = departures_from_kafka(brokers)
    settings = resolve_settings(
        [_layer(departures), _layer(broker_settings(directory, 1, port))], ()
    )
    count = "1 broker" if brokers == 1 else f"{brokers} brokers"
    say(f"  barnabas {__version__}   {count}, embedded metadata store, data in {_tilde(directory)}")
    different = [
        f"{name}={text} ({BROKER_KEYS[name].default})"
        for name, text in departures.items()
        if BROKER_KEYS[name].default != text
    ]
    say(f"  unlike Kafka's defaults: {', '.join(different)}")

    def say_started(broker_id: int) -> None:
        address = f"{HOST}:{process.config.listeners[0].port}"
        seconds = time.monotonic() - began
        say(f"  broker {broker_id}  {address}   ready  {seconds:.2f} s")
        say(f"  try       kcat -b {address} -L")
        say(f"            echo hello | kcat -b {address} -P -t hello")
        say(f"            kcat -b {address} -C -t hello")
        say("  stop      Ctrl-C (data kept)      wipe: barnabas up --fresh")

    try:
        process = BrokerProcess(settings.config, say_started, is_verbose=is_verbose)
    except ProgramError as error:
        if error.see in ("port-taken", "cannot-listen"):
            # The listeners are this program's own affair; its user has an option.
            error.fix = f"barnabas up --port {_other_port(port)}"
        raise
    code = process.run()
    # Ctrl-C is how this program is meant to end.
    return EXIT_OK if code == EXIT_INTERRUPTED else code


def departures_from_kafka(brokers: int) -> dict[str, str]:
    """The settings that suit a few brokers on one machine better than Kafka's defaults."""
    replicas = str(min(3, brokers))
    in_sync = str(min(2, brokers))
    return {
        "num.partitions": "3",
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "transaction.state.log.min.isr": in_sync,
        "group.initial.rebalance.delay.ms": "0",
    }


def broker_settings(directory: Path, broker_id: int, port: int) -> dict[str, str]:
    """What makes one of the brokers itself."""
    return {
        "broker.id": str(broker_id),
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "log.dirs": str(directory / f"broker-{broker_id}"),
        "barnabas.metadata.dir": str(directory / "metadata"),
    }


def default_directory() -> Path:
    """Where the data of `up` lives unless it is told."""
    data_home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data_home).expanduser() / "barnabas" / "default"


def wipe(directory: Path, brokers: int) -> None:
    """Remove what earlier runs left; refuse a directory that holds anything else."""
    ours = {LOCK_FILE, "metadata"} | {f"broker-{number}" for number in range(1, brokers + 1)}
    foreign = sorted(entry.name for entry in directory.iterdir() if entry.name not in ours)
    if foreign:
        raise ProgramError(
            f"--fresh does not empty {_tilde(directory)}",
            cause=f"it holds what `barnabas up` did not make: {', '.join(foreign[:3])}",
            fix="barnabas up --fresh --dir SOME_EMPTY_DIRECTORY",
            see="foreign-directory",
        )
    for name in sorted(ours - {LOCK_FILE}):
        if (directory / name).exists():
            shutil.rmtree(directory / name)


@contextlib.contextmanager
def _held(directory: Path) -> Generator[None]:
    """Hold the directory as the only `up` that uses it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = open(directory / LOCK_FILE, "w")  # noqa: SIM115
    except OSError as problem:
        raise ProgramError(
            f"cannot use {_tilde(directory)}",
            cause=problem.strerror or str(problem),
            fix="barnabas up --dir SOME_OTHER_DIRECTORY",
            see="disk-refuses",
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ProgramError(
                f"{_tilde(directory)} is in use",
                cause="another `barnabas up` runs on it",
                fix="stop that one with Ctrl-C, or barnabas up --dir OTHER --port 9192",
                see="directory-in-use",
            ) from None
        yield


def _other_port(port: int) -> int:
    return DEFAULT_PORT + 100 if port == DEFAULT_PORT else DEFAULT_PORT


def _layer(settings: dict[str, str]) -> list[Setting]:
    return [Setting(name, text, "barnabas up") for name, text in settings.items()]


def _tilde(path: Path) -> str:
    """The path as people write it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _parser() -> Arguments:
    parser = Arguments("barnabas up", "Run a broker to try things on; Ctrl-C stops it.")
    parser.add_argument("--dir", help=f"for the data; default: {_tilde(default_directory())}")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="default: %(default)s")
    parser.add_argument("--brokers", type=int, default=1, help="how many; 1 for now")
    parser.add_argument("--fresh", action="store_true", help="remove what earlier runs left")
    parser.add_argument("--verbose", action="store_true", help="write every event to stderr")
    return parser
