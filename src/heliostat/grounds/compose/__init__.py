"""Ray nodes as containers of one Docker engine, here or far away, described by a Compose file."""
