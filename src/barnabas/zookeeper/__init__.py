"""ZooKeeper's semantics without its sockets: tree, sessions, watches, and what must be durable."""
