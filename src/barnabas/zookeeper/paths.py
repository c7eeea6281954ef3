"""Which paths ZooKeeper accepts."""

from barnabas.zookeeper.journal import ROOT


def is_valid_path(path: str) -> bool:
    """Whether a node may have this path: absolute, no empty or relative step, no odd character."""
    if path == ROOT:
        return True
    if not path.startswith("/") or path.endswith("/"):
        return False
    steps = path[1:].split("/")
    if any(step in ("", ".", "..") for step in steps):
        return False
    if path.isascii() and path.isprintable():
        # As nearly all are, and a large topic has ten thousand of them.
        return True
    return not any(_is_refused(ord(character)) for character in path)


def _is_refused(code_point: int) -> bool:
    """Control characters, surrogates (so all beyond U+FFFF), private use and specials."""
    return (
        code_point <= 0x1F
        or 0x7F <= code_point <= 0x9F
        or 0xD800 <= code_point <= 0xF8FF
        or code_point >= 0xFFF0
    )
