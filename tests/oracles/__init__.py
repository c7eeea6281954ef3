"""Independent judges: Kafka's own code and other people's, asked the same questions."""
