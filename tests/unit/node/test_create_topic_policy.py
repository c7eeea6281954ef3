"""The policy for new topics is found by the name of its entry point, or the start is refused."""

import sys
from pathlib import Path

import pytest

from barnabas.core.administration.creation import TopicPlan
from barnabas.model.ids import BrokerId
from barnabas.node.create_topic_policy import load_create_topic_policy
from barnabas.node.output import EXIT_USAGE, ProgramError
from tests.behaviours import behaviour

MODULE = """
def nothing_big(plan):
    return "too big" if len(plan.assigned) > 1 else None

number = 5
"""


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on Python's path with a module and a package's metadata that offers it."""
    (tmp_path / "topic_policies_of_a_test.py").write_text(MODULE)
    metadata = tmp_path / "topic_policies-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: topic_policies\nVersion: 1\n")
    module = "topic_policies_of_a_test"
    (metadata / "entry_points.txt").write_text(
        "[barnabas.create_topic_policy]\n"
        f"small = {module}:nothing_big\nnumber = {module}:number\n"
        f"absent = {module}:absent\nno_module = no_such_module_at_all:f\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, module, raising=False)
    return tmp_path


def test_no_name_is_no_policy():
    assert load_create_topic_policy(None) is None
    assert load_create_topic_policy("") is None


@behaviour("C10")
@pytest.mark.usefixtures("offered")
def test_an_entry_point_is_loaded_by_its_name():
    policy = load_create_topic_policy("small")
    assert policy is not None
    one = (BrokerId(1),)
    assert policy(TopicPlan("t", {0: one, 1: one}, {})) == "too big"
    assert policy(TopicPlan("t", {0: one}, {})) is None


@behaviour("C10")
@pytest.mark.usefixtures("offered")
@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("nosuch", "there are: absent, no_module, number, small"),
        ("absent", "AttributeError"),
        ("no_module", "ModuleNotFoundError"),
        ("number", "topic_policies_of_a_test:number cannot be called"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_the_cause(name: str, cause: str):
    with pytest.raises(ProgramError) as refused:
        load_create_topic_policy(name)
    assert cause in refused.value.cause
    assert refused.value.exit_code == EXIT_USAGE
    assert f"barnabas.create.topic.policy={name}" in str(refused.value)
