"""What the programs say to people: results, warnings, and errors with a cause and a way out."""

import sys
from typing import NoReturn

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_REFUSED = 4
EXIT_INTERRUPTED = 130

CODES_PAGE = "docs/errors.md"
"""Every `see` is a heading of this page; a test holds the two together."""


class ProgramError(Exception):
    """Why a program gives up: what failed, why, the command that mends it, where more stands."""

    def __init__(
        self, what: str, *, cause: str = "", fix: str = "", see: str, exit_code: int = EXIT_FAILED
    ) -> None:
        super().__init__(what)
        self.what = what
        self.cause = cause
        self.fix = fix
        self.see = see
        self.exit_code = exit_code

    def to_text(self) -> str:
        """The four lines, without those that have nothing to say."""
        lines = [
            ("error:", self.what),
            ("cause:", self.cause),
            ("fix:", self.fix),
            ("see:", f"{CODES_PAGE}#{self.see}"),
        ]
        return "\n".join(f"{label:<6} {text}" for label, text in lines if text)


def say(line: str) -> None:
    """A line of the program's result; whoever reads the output gets it at once."""
    print(line, flush=True)


def say_beside(line: str) -> None:
    """A line that is not the result: on stderr, as it is."""
    print(line, file=sys.stderr, flush=True)


def warn(line: str) -> None:
    """A line for whoever runs the program, beside its result."""
    print(f"warning: {line}", file=sys.stderr, flush=True)


def report(error: ProgramError) -> None:
    """The error as people get it."""
    print(error.to_text(), file=sys.stderr, flush=True)


def give_up(error: ProgramError) -> NoReturn:
    """Say why and end the process with the error's code."""
    report(error)
    raise SystemExit(error.exit_code)
