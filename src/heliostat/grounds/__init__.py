"""The places where clusters stand, each its own room."""
