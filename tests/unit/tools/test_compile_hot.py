"""The first build takes minutes: what is said meanwhile."""

from tools.compile_hot import announcement


def test_the_wait_is_announced_with_its_length_and_the_way_around_it():
    first = announcement(45, is_first=True)
    assert "three on a busy machine" in first
    assert "BARNABAS_INTERPRETED=1" in first
    assert "BARNABAS_INTERPRETED=1" not in announcement(45, is_first=False)
