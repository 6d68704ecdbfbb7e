"""Ray nodes on hosts that you can log in to: borrowed, so we own processes and one directory there."""
