"""What a program says about settings it cannot honour, and which of several it takes."""

from pathlib import Path

import pytest

from barnabas.node.output import EXIT_USAGE, ProgramError
from barnabas.node.settings import load_settings


def _file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "server.properties"
    path.write_text(text)
    return str(path)


def test_options_beat_the_environment_and_the_environment_beats_the_file(tmp_path: Path):
    path = _file(tmp_path, "broker.id=1\nnum.partitions=2\nlog.segment.bytes=1000\n")
    environment = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_LOG_SEGMENT_BYTES": "2000"}
    config = load_settings(path, environment, ["log.segment.bytes=3000"]).config
    assert (config.broker_id, config.num_partitions, config.log_segment_bytes) == (1, 3, 3000)


def test_a_bad_value_names_its_file_and_line(tmp_path: Path):
    path = _file(tmp_path, "broker.id=1\n\nnum.partitions=many\n")
    with pytest.raises(ProgramError) as refused:
        load_settings(path, {})
    assert refused.value.exit_code == EXIT_USAGE
    assert refused.value.to_text().splitlines() == [
        f"error: {path}:3: num.partitions=many",
        "cause: Not a number of type INT",
        "fix:   num.partitions=1    (the default)",
        "see:   docs/errors.md#bad-value",
    ]


def test_a_bad_value_names_its_variable(tmp_path: Path):
    with pytest.raises(ProgramError, match=r"KAFKA_BROKER_ID: broker\.id=x"):
        load_settings(_file(tmp_path, ""), {"KAFKA_BROKER_ID": "x"})


def test_what_must_not_be_passed_over_is_refused_unless_accepted_by_name(tmp_path: Path):
    path = _file(tmp_path, "authorizer.class.name=a.B\nbroker.id=4\n")
    with pytest.raises(ProgramError) as refused:
        load_settings(path, {})
    assert refused.value.exit_code == EXIT_USAGE
    assert "--accept-unsupported authorizer.class.name" in refused.value.fix
    settings = load_settings(path, {}, accepted=["authorizer.class.name"])
    assert settings.config.broker_id == 4
    assert settings.warnings == [f"{path}:1: authorizer.class.name not honoured, as told"]


def test_a_listener_with_tls_is_refused_whatever_is_accepted(tmp_path: Path):
    path = _file(tmp_path, "listeners=PLAINTEXT://:1,SSL://:2\n")
    with pytest.raises(ProgramError, match="listeners"):
        load_settings(path, {}, accepted=["listeners"])


def test_unknown_and_unhonoured_keys_are_warned_about_by_place_and_name(tmp_path: Path):
    path = _file(
        tmp_path, "num.partition=3\nauto.leader.rebalance.enable=false\nnum.io.threads=2\n"
    )
    assert load_settings(path, {}).warnings == [
        f"{path}:2: auto.leader.rebalance.enable not honoured yet",
        f"{path}:1: num.partition is no key of Kafka's; did you mean num.partitions?",
    ]


@pytest.mark.parametrize(
    ("overrides", "accepted", "told"),
    [
        (["num.partitions"], [], "--override num.partitions"),
        (["=3"], [], "--override =3"),
        ([], ["zookeeper.connect"], "--accept-unsupported zookeeper.connect"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, overrides: list[str], accepted: list[str], told: str
):
    with pytest.raises(ProgramError, match=told):
        load_settings(_file(tmp_path, ""), {}, overrides, accepted)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path):
    with pytest.raises(ProgramError) as missing:
        load_settings(str(tmp_path / "nowhere"), {})
    assert missing.value.cause == "No such file or directory"
    with pytest.raises(ProgramError) as malformed:
        load_settings(_file(tmp_path, "log.dirs=C:\\users\\x\n"), {})
    assert "server.properties:1" in malformed.value.cause


@pytest.mark.parametrize(
    ("text", "told", "fix"),
    [
        ("listeners=SSL://:9093\n", "SSL: security is not built yet", "PLAINTEXT://:9093"),
        (
            "listeners=INT://:1\nlistener.security.protocol.map=INT:PLAINTEXT\n",
            "on the listener PLAINTEXT, and none has that name",
            "inter.broker.listener.name=INT",
        ),
        (
            "listeners=PLAINTEXT://0.0.0.0:7\n",
            "clients are told to connect",
            "PLAINTEXT://localhost:7",
        ),
        ("broker.id=-2\n", "must be at least -1", "broker.id=1"),
        ("broker.id=1\nnode.id=7\n", "broker.id=1 is another id", "remove node.id"),
    ],
)
def test_the_way_out_is_not_what_was_refused(tmp_path: Path, text: str, told: str, fix: str):
    with pytest.raises(ProgramError) as refused:
        load_settings(_file(tmp_path, text), {})
    assert told in refused.value.cause
    assert fix in refused.value.fix
    assert "security.inter.broker.protocol" not in refused.value.to_text()


def test_a_value_that_asks_for_too_much_is_warned_of_by_place_name_and_value(tmp_path: Path):
    path = _file(tmp_path, "log.cleanup.policy=compact\nmax.connections=0\n")
    policy, room = load_settings(path, {}).warnings
    assert policy.startswith(f"{path}:1: log.cleanup.policy=compact: nothing is compacted yet")
    assert room.startswith(f"{path}:2: max.connections=0: leaves no room for the controller")


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"\x7fELF\x02\x01\0\0broker.id=1\n", "bytes of zero"),
        ("broker.id=1\n".encode("utf-16"), "bytes of zero"),
        (b"\n".join(b"word%d more words" % number for number in range(40)), "of 40 keys none"),
    ],
)
def test_what_is_no_file_of_settings_is_refused(tmp_path: Path, data: bytes, cause: str):
    path = tmp_path / "server.properties"
    path.write_bytes(data)
    with pytest.raises(ProgramError) as refused:
        load_settings(str(path), {})
    assert cause in refused.value.cause
    assert refused.value.see == "unreadable-properties"
    assert "text file" in refused.value.fix


def test_a_few_unknown_keys_and_bytes_that_java_takes_are_no_reason_to_refuse(tmp_path: Path):
    path = tmp_path / "server.properties"
    path.write_bytes(b"caf\xe9=1\nmy.own=\x01\n")
    assert len(load_settings(str(path), {}).warnings) == 2
