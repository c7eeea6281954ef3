"""What linters cannot say: rules of this project about its own text, as tests."""
