"""Folders to nodes and back; only what changed travels."""
