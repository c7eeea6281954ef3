"""The Kafka protocol: schemas, generated codecs, headers and frames."""
