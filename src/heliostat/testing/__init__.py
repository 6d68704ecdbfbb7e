"""For those who write a ground: a fake one with faults, and the suite that every ground must pass."""
