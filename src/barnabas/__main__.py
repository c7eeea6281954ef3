"""Picks a program before it imports one: `barnabas broker`, `barnabas up`."""

import gc
import sys
from importlib import import_module

from barnabas import __version__
from barnabas.node.output import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, ProgramError, report, say

PROGRAMS = {
    "up": ("barnabas.node.up", "a broker to try things on, ready in a moment"),
    "broker": ("barnabas.node.main", "one broker from a server.properties"),
}


def main() -> int:
    """Run the program that the first argument names; its exit code."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print_programs()
        return EXIT_OK
    if arguments[0] == "--version":
        say(f"barnabas {__version__}")
        return EXIT_OK
    program = PROGRAMS.get(arguments[0])
    if program is None:
        return _refuse(arguments[0])
    # Nothing that an import makes is garbage; a program that goes on collects again once it serves.
    gc.disable()
    try:
        return int(import_module(program[0]).main(arguments[1:]))
    except KeyboardInterrupt:
        # Before the program took signals into its own hands.
        return EXIT_INTERRUPTED


def print_programs() -> None:
    """What there is, in a few lines."""
    say("barnabas: a replicated log that speaks Kafka's protocol\n")
    for name, (_, purpose) in PROGRAMS.items():
        say(f"  barnabas {name:8} {purpose}")
    say("\n`barnabas PROGRAM --help` tells more of each.")


def _refuse(name: str) -> int:
    from difflib import get_close_matches

    near = get_close_matches(name, PROGRAMS, n=1)
    fix = f"barnabas {near[0]}" if near else "barnabas --help"
    report(ProgramError(f"barnabas {name}: there is no such program", fix=fix, see="usage"))
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
