"""From server.properties, the environment and the command line to a broker's configuration."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.formats.properties import Setting, merge, read_environment, read_properties
from barnabas.model.config import BrokerConfig
from barnabas.model.config_keys import BROKER_KEYS
from barnabas.model.config_marks import check_marks, check_protocols
from barnabas.model.errors import ConfigRefused, DecodeError, SettingUnsupported
from barnabas.node.output import EXIT_USAGE, ProgramError


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
        config = BrokerConfig.resolve(texts)
        check_protocols(config)
    except ConfigRefused as refused:
        raise _refusal(refused, settings.get(refused.key)) from None
    said = [
        f"{settings[warning.name].origin}: {warning.name} {warning.reason}"
        + (f"; did you mean {warning.suggestion}?" if warning.suggestion else "")
        for warning in warnings
    ]
    return Settings(config, said)


def _read_file(path: str) -> list[Setting]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as problem:
        raise ProgramError(
            f"cannot read {path}",
            cause=problem.strerror or str(problem),
            fix="barnabas up    (needs no file)",
            see="unreadable-properties",
            exit_code=EXIT_USAGE,
        ) from None
    try:
        return read_properties(data, path)
    except DecodeError as problem:
        raise ProgramError(
            f"cannot read {path}",
            cause=str(problem),
            fix="write a backslash as two of them",
            see="unreadable-properties",
            exit_code=EXIT_USAGE,
        ) from None


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
        fix = _example(refused.key)
        see = "bad-value"
    return ProgramError(
        f"{place}{refused.key}={refused.value}",
        cause=refused.reason,
        fix=fix,
        see=see,
        exit_code=EXIT_USAGE,
    )


def _example(name: str) -> str:
    """The key at its default, as an example of what it takes."""
    key = BROKER_KEYS.get(name)
    if key is None or not key.default:
        return f"remove {name}"
    return f"{name}={key.default}    (the default)"
