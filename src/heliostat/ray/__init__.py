"""Everything that knows Ray: the bootstrap, the Jobs REST client, health."""
