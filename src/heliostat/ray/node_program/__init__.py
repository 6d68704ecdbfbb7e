"""What is copied to a node and runs there with the node's own Python: standard library only."""
