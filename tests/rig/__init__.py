"""Real hosts on one machine: each with its own address, files, processes and sshd.

A keeper process holds a network, a mount and a PID namespace of its own; every host lives inside them. When
the keeper goes, for whatever reason, the kernel takes hosts, mounts and links along: nothing is left over.

    make rig N=4        # starts four hosts, prints how to log in, waits for Ctrl-C
"""
