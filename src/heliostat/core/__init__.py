"""Pure records and functions: no I/O, no clock, nothing asynchronous."""
