"""What runs on the node: sent with each command, standard library only, Python 3.9 and newer."""
