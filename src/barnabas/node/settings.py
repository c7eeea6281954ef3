"""From server.properties, the environment and the command line to a broker's configuration."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.formats.properties import Setting, is_text, merge, read_environment, read_properties
from barnabas.model.config import BrokerConfig
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.config_marks import (
    Unhonoured,
    check_marks,
    check_protocols,
    check_room,
    is_any_known,
)
from barnabas.model.errors import ConfigRefused, DecodeError, SettingUnsupported
from barnabas.node.output import EXIT_USAGE, ProgramError

_NO_FILE = "barnabas up    (needs no file)"
_EXAMPLE_FILE = "name a text file with lines like num.partitions=3; or " + _NO_FILE


class Settings(NamedTuple):
    """What a broker is to be, and what was said that it will not be."""

    config: BrokerConfig
    warnings: list[str]


def load_settings(
    path: str,
    environment: Mapping[str, str],
    overrides: Sequence[str] = (),
    accepted: Sequence[str] = (),
) -> Settings:
    """Read the file; a KAFKA_ variable beats it, `--override` beats both.

    Raises `ProgramError` with the place of a setting that cannot be honoured.
    """
    return resolve_settings(
        [
            _read_file(path),
            read_environment(environment, BROKER_KEYS),
            _read_overrides(overrides),
        ],
        accepted,
    )


def resolve_settings(layers: Iterable[Iterable[Setting]], accepted: Sequence[str]) -> Settings:
    """The configuration that layers of settings make, the last one winning."""
    settings = merge(*layers)
    texts = {setting.name: setting.text for setting in settings.values()}
    for name in accepted:
        if name not in texts:
            raise ProgramError(
                f"--accept-unsupported {name}: no such key is set",
                fix=f"leave out --accept-unsupported {name}",
                see="unsupported-key",
                exit_code=EXIT_USAGE,
            )
    try:
        warnings = check_marks(texts, accepted)
        check_protocols(texts)
        config = BrokerConfig.resolve(texts)
    except ConfigRefused as refused:
        raise _refusal(refused, settings.get(refused.key)) from None
    said = [_said(warning, settings.get(warning.name)) for warning in warnings + check_room(config)]
    return Settings(config, said)


def _said(warning: Unhonoured, setting: Setting | None) -> str:
    place = "" if setting is None else f"{setting.origin}: "
    if warning.value is None:
        return f"{place}{warning.name} {warning.reason}"
    return f"{place}{warning.name}={warning.value}: {warning.reason}"


def _read_file(path: str) -> list[Setting]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as problem:
        raise _unreadable(path, problem.strerror or str(problem), _NO_FILE) from None
    if not is_text(data):
        raise _unreadable(path, "it is no text: it holds bytes of zero", _EXAMPLE_FILE)
    try:
        settings = read_properties(data, path)
    except DecodeError as problem:
        raise _unreadable(path, str(problem), "write a backslash as two of them") from None
    names = {setting.name for setting in settings}
    if not is_any_known(names):
        reason = f"it is no file of settings: of {len(names)} keys none is a key of Kafka's"
        raise _unreadable(path, reason, _EXAMPLE_FILE)
    return settings


def _unreadable(path: str, cause: str, fix: str) -> ProgramError:
    return ProgramError(
        f"cannot read {path}",
        cause=cause,
        fix=fix,
        see="unreadable-properties",
        exit_code=EXIT_USAGE,
    )


def _read_overrides(overrides: Sequence[str]) -> list[Setting]:
    settings: list[Setting] = []
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals or not name:
            raise ProgramError(
                f"--override {override}: is not of the form KEY=VALUE",
                fix="--override num.partitions=3",
                see="usage",
                exit_code=EXIT_USAGE,
            )
        settings.append(Setting(name.strip(), text, "--override"))
    return settings


def _refusal(refused: ConfigRefused, setting: Setting | None) -> ProgramError:
    place = "" if setting is None else f"{setting.origin}: "
    if isinstance(refused, SettingUnsupported):
        fix = (
            f"remove {refused.key}, or start with --accept-unsupported {refused.key} to go without"
        )
        see = "unsupported-key"
    else:
        fix = refused.fix or _example(refused)
        see = "bad-value"
    return ProgramError(
        f"{place}{refused.key}={refused.value}",
        cause=refused.reason,
        fix=fix,
        see=see,
        exit_code=EXIT_USAGE,
    )


def _example(refused: ConfigRefused) -> str:
    """The key at its default, as an example of what it takes, unless that was what it got."""
    key = BROKER_KEYS.get(refused.key)
    if key is None or not key.default or key.default == refused.value:
        return f"remove {refused.key}"
    return f"{refused.key}={key.default}    (the default)"
