"""Names of topics: what is allowed and what collides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.core.administration.topic_ids import new_uuid
from barnabas.core.administration.topic_names import (
    TopicNames,
    find_fault,
    is_valid_topic_name,
)
from barnabas.formats.znodes.uuids import uuid_text
from tests.behaviours import behaviour


@behaviour("C7")
@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets", "-"])
def test_names_that_may_be(name: str):
    assert find_fault(name) is None


@behaviour("C7")
@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ü", "a\n", "a:b"])
def test_names_that_may_not_be(name: str):
    assert find_fault(name) is not None
    assert not is_valid_topic_name(name)


@behaviour("C7")
def test_dots_and_underscores_collide():
    topics = TopicNames(["a.b", "a_b", "a-b", "x.y_z"])
    assert topics.collisions("a_b") == ["a.b", "a_b"]
    assert topics.collisions("x_y.z") == ["x.y_z"]
    assert topics.collisions("ab") == []
    assert "a-b" in topics
    assert "a.c" not in topics
    topics.add("a.c")
    assert topics.collisions("a_c") == ["a.c"]
    assert "a_c" not in topics


@given(st.randoms(use_true_random=False))
def test_new_ids(source):
    uuid = new_uuid(source)
    assert len(uuid) == 16
    assert uuid[6] >> 4 == 4
    assert uuid[8] >> 6 == 2
    assert not uuid_text(uuid).startswith("-")
