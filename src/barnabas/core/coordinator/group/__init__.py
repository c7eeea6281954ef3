"""One consumer group of the classic protocol: its members, its generations, its offsets."""
