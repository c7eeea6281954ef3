"""The check for bugs: what must hold, with the story to tell when it does not."""


class InvariantViolated(AssertionError):
    """A bug of this program; stops the smallest thing that can be trusted no more."""


def invariant(condition: bool, story: str) -> None:
    """Raise unless `condition` holds; unlike assert it is there under -O."""
    if not condition:
        raise InvariantViolated(story)
