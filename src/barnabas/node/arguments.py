"""Command lines of the programs that must start fast: argparse, with errors in our shape."""

import argparse
from typing import NoReturn

from barnabas.node.output import EXIT_USAGE, ProgramError


class Arguments(argparse.ArgumentParser):
    """A parser that raises a `ProgramError` where argparse would print and exit."""

    def __init__(self, program: str, description: str) -> None:
        super().__init__(prog=program, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise ProgramError(
            f"{self.prog}: {message}", fix=f"{self.prog} --help", see="usage", exit_code=EXIT_USAGE
        )
