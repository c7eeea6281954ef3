"""ZooKeeper's semantics as a pure machine, of use without the rest."""
