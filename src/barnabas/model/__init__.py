"""The words of the system: ids, epochs, partition state, error codes, znode operations."""
