"""A policy for new topics in a real process: an entry point of an installed package."""

from pathlib import Path

from tests.behaviours import behaviour
from tests.e2e import raw_answers, raw_requests
from tests.e2e.broker_process import BrokerProcess
from tests.e2e.raw_wire import Connection

NONE = 0
POLICY_VIOLATION = 44
UNKNOWN_SERVER_ERROR = -1

MODULE = """
def of_teams(plan):
    if plan.name == "bug":
        raise RuntimeError("met a bug")
    return None if plan.name.startswith("team.") else "begin with team."
"""


def _install(site: Path) -> None:
    metadata = site / "topic_policies-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: topic-policies\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[barnabas.create_topic_policy]\nteams = topic_policies:of_teams\n"
    )
    (site / "topic_policies.py").write_text(MODULE)


@behaviour("C10")
def test_a_policy_of_a_package_refuses_topics(tmp_path: Path) -> None:
    site = tmp_path / "site"
    _install(site)
    settings = {"barnabas.create.topic.policy": "teams"}
    process = BrokerProcess(tmp_path / "broker", settings, environment={"PYTHONPATH": str(site)})
    with process, Connection(process.port) as connection:
        asked = raw_requests.create_topics(4, ["mine", "bug", "team.a"])
        assert raw_answers.created_topics(asked, connection.ask(asked)) == {
            "mine": POLICY_VIOLATION,
            "bug": UNKNOWN_SERVER_ERROR,
            "team.a": NONE,
        }
        assert "failed at bug: RuntimeError: met a bug" in process.story()
        assert process.stop() == 0
