"""What all noun-verb commands share: options, a session with the cluster, output, exit codes."""

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import click

from barnabas.model.errors import BarnabasError
from barnabas.node.output import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, ProgramError, report, say

Row = Sequence[object]

BOOTSTRAP_VARIABLE = "BARNABAS_BOOTSTRAP_SERVER"
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_TIMEOUT_SECONDS = 30.0


def run(command: click.Command, name: str, arguments: Sequence[str]) -> int:
    """Run one noun with its verb; the exit code."""
    given = list(arguments)
    if not given and isinstance(command, click.Group):
        # click answers this with the help too, but with a code of its own.
        given = ["--help"]
    try:
        command.main(args=given, prog_name=f"barnabas {name}", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        return EXIT_INTERRUPTED
    except click.UsageError as problem:
        path = f"barnabas {name}"
        if isinstance(command, click.Group) and given[0] in command.commands:
            path += f" {given[0]}"
        misused = ProgramError(
            f"{path}: {problem.format_message()}",
            fix=f"{path} --help",
            see="usage",
            exit_code=EXIT_USAGE,
        )
        return _fail(misused, arguments)
    except ProgramError as problem:
        return _fail(problem, arguments)
    except BarnabasError as problem:
        from barnabas.admin.failures import to_program_error

        return _fail(to_program_error(problem), arguments)
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing must be written at the exit either.
        sys.stdout = None
    return EXIT_OK


def _fail(error: ProgramError, arguments: Sequence[str]) -> int:
    if "--debug" in arguments:
        import traceback

        traceback.print_exc()
    report(error)
    return error.exit_code


class Printer:
    """Results as text for people or as JSON lines for programs."""

    def __init__(self, kind: str) -> None:
        self.is_json = kind == "json"

    def table(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Rows under their columns; the columns are the keys of the JSON."""
        if self.is_json:
            for row in rows:
                say(json.dumps(dict(zip(columns, row, strict=True))))
            return
        texts = [[column.upper().replace("_", "-") for column in columns]]
        texts += [[_to_text(cell) for cell in row] for row in rows]
        widths = [max(len(text[index]) for text in texts) for index in range(len(columns))]
        for text in texts:
            cells = (cell.ljust(width) for cell, width in zip(text, widths, strict=True))
            say("  ".join(cells).rstrip())

    def tell(self, line: str, values: Mapping[str, object]) -> None:
        """One result, in a sentence or as an object."""
        say(json.dumps(values) if self.is_json else line)


def _to_text(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if type(cell) in (list, tuple):
        return ",".join(str(each) for each in cast("Sequence[object]", cell)) or "-"
    return str(cell)


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--output` and `--debug`, which every command has."""
    function = click.option(
        "--debug", is_flag=True, expose_value=False, help="Show stack traces of errors."
    )(function)
    return click.option(
        "--output", type=click.Choice(["text", "json"]), default="text", help="JSON lines or text."
    )(function)


def _check_bootstrap(context: click.Context, option: click.Parameter, value: str) -> str:
    from barnabas.admin.addresses import parse_addresses

    try:
        parse_addresses(value)
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from problem
    return value


def with_cluster(function: Callable[..., None]) -> Callable[..., Any]:
    """A command that talks to a cluster: it gets a `Session` before its own arguments."""

    @functools.wraps(function)
    def command(bootstrap_server: str, timeout: float, output: str, **values: object) -> None:
        # Imported late: who asks for help needs no client.
        from barnabas.admin.cli.session import Session

        with Session(bootstrap_server, timeout, output) as session:
            function(session, **values)

    with_timeout = click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0.001),
        default=DEFAULT_TIMEOUT_SECONDS,
        show_default=True,
        help="For each operation, with its retries.",
    )(output_options(command))
    return click.option(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        envvar=BOOTSTRAP_VARIABLE,
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        callback=_check_bootstrap,
        help=f"Where to begin; also {BOOTSTRAP_VARIABLE}.",
    )(with_timeout)


def parse_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Settings given as KEY=VALUE; the value may be empty and may contain an equals sign."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{pair!r} is not KEY=VALUE")
        found[key.strip()] = value
    return found


def parse_assignment(text: str) -> list[list[int]]:
    """Replicas of each partition as Kafka's tools take them: 1:2,2:3."""
    try:
        return [[int(part) for part in replicas.split(":")] for replicas in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{text!r} is no assignment such as 1:2,2:3") from None
