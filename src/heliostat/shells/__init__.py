"""How to run, push, pull and forward on a node."""
