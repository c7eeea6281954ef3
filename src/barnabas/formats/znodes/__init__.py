"""The content of every znode that Kafka 3.9 reads or writes, and the paths they stand at."""
