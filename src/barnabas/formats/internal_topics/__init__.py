"""Records of the topics that brokers keep for themselves."""
