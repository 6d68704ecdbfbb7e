"""Ray nodes as processes of this machine."""
