"""Options of Kafka's scripts: long ones with values behind a space or an equals sign."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from barnabas.node.output import EXIT_FAILED, say, say_beside


class Takes(Enum):
    """What stands behind an option."""

    NOTHING = "nothing"
    TEXT = "text"
    NUMBER = "number"
    MAYBE = "a text, or nothing"


class ScriptEnded(Exception):
    """A script is done early; what it had to say has been said."""

    def __init__(self, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


class BadOption(Exception):
    """The command line has what is no option, or an option without its value."""


class Options:
    """A command line taken apart; the messages are those that users of the scripts know."""

    def __init__(self, known: Mapping[str, Takes], arguments: Sequence[str]) -> None:
        self._known = {**known, "help": Takes.NOTHING, "version": Takes.NOTHING}
        self._found: dict[str, list[str]] = {}
        self.order: list[str] = []
        """Names in the order given, each time they were given."""
        self.arguments = list(arguments)
        self._parse(arguments)

    def _parse(self, arguments: Sequence[str]) -> None:
        position = 0
        while position < len(arguments):
            argument = arguments[position]
            position += 1
            if not argument.startswith("--"):
                continue
            given, equals, value = argument[2:].partition("=")
            name = self._name_of(given)
            takes = self._known[name]
            values = self._found.setdefault(name, [])
            self.order.append(name)
            has_next = position < len(arguments) and not arguments[position].startswith("--")
            if takes is Takes.NOTHING:
                continue
            if equals:
                values.append(value)
            elif has_next:
                values.append(arguments[position])
                position += 1
            elif takes is not Takes.MAYBE:
                raise BadOption(f"Option {name} requires an argument")

    def _name_of(self, given: str) -> str:
        if given in self._known:
            return given
        meant = [name for name in self._known if name.startswith(given)]
        if len(meant) != 1:
            raise BadOption(f"{given} is not a recognized option")
        return meant[0]

    def has(self, name: str) -> bool:
        return name in self._found

    def values(self, name: str) -> list[str]:
        return self._found.get(name, [])

    def value(self, name: str) -> str | None:
        values = self.values(name)
        if len(values) > 1:
            raise BadOption(
                f"Found multiple arguments for option {name}, but you asked for only one"
            )
        return values[0] if values else None

    def number(self, name: str) -> int | None:
        text = self.value(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise BadOption(f"Cannot parse argument '{text}' of option {name}") from None

    # -- what the scripts check ----------------------------------------------------------------

    def end_with_usage(self, message: str) -> ScriptEnded:
        """Say what is wrong and which options there are."""
        say_beside(message)
        say_beside("Option")
        for name, takes in sorted(self._known.items()):
            say_beside(f"--{name}" + ("" if takes is Takes.NOTHING else f" <{takes.value}>"))
        return ScriptEnded()

    def end_for_help(self, version: str, purpose: str) -> None:
        """Raise when help or the version was asked for."""
        if not self.arguments or self.has("help"):
            raise self.end_with_usage(purpose)
        if self.has("version"):
            say(version)
            raise ScriptEnded(0)

    def require(self, *names: str) -> None:
        for name in names:
            if not self.has(name):
                raise self.end_with_usage(f'Missing required argument "[{name}]"')

    def refuse_together(self, used: str, invalid: Iterable[str]) -> None:
        for name in invalid if self.has(used) else ():
            if self.has(name):
                raise self.end_with_usage(
                    f'Option "[{used}]" can\'t be used with option "[{name}]"'
                )
