"""CRC-32C, taken from the package crc32c without what its `__init__` drags in.

That file asks importlib.metadata for its own version, which costs every start of a broker 30 ms.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

Crc32c = Callable[..., int]
"""crc32c(data, crc_before=0): the checksum of `data` behind what `crc_before` stands for."""


def _load() -> Crc32c:
    package = find_spec("crc32c")
    inner = PathFinder.find_spec("crc32c._crc32c", package and package.submodule_search_locations)
    if inner is None or inner.loader is None:
        # Another layout than the releases we know: then in the ordinary way.
        from crc32c import crc32c as imported

        return imported
    module = module_from_spec(inner)
    inner.loader.exec_module(module)
    return module.crc32c


crc32c: Crc32c = _load()
