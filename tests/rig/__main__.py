"""`python -m tests.rig 4`: four hosts to play with, until Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import sys

from tests.rig.rig import USER, Rig, missing


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    lacking = missing()
    if lacking:
        print(f"the rig needs: {lacking}", file=sys.stderr)
        return 2
    # A closed terminal or a `kill` must take the same way out as Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with Rig() as rig, contextlib.suppress(KeyboardInterrupt):
        for host in rig.new(count):
            print(f"ssh -F {rig.config} {host.name}    # {USER}@{host.address}")
        print(
            f"\nexport HELIO_SSH_CONFIG={rig.config}\nhosts: node[01-{count:02}].lab\nCtrl-C ends them all.",
            flush=True,
        )
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
