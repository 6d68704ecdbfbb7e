"""Which numbers around nine million are prime? Ten thousand and one tasks, one for each number.

On a cluster:   helio run examples/primes.py
Without one:    python examples/primes.py

A task for so little work is a waste, on purpose: it shows how many tasks a cluster gets through in a second.
"""

import time

import ray

MIDDLE = 9_000_000
AROUND = 5_000


@ray.remote
def is_prime(n: int) -> bool:
    """Try every odd divisor up to the square root."""
    return n == 2 or (n > 2 and n % 2 == 1 and all(n % d for d in range(3, int(n**0.5) + 1, 2)))


ray.init(logging_level="WARNING")
numbers = range(MIDDLE - AROUND, MIDDLE + AROUND + 1)
began = time.perf_counter()
answers = ray.get([is_prime.remote(n) for n in numbers])
took = time.perf_counter() - began

primes = [n for n, prime in zip(numbers, answers, strict=True) if prime]
print(f"{len(numbers)} tasks in {took:.1f} s, {len(numbers) / took:.0f} a second")
print(f"{len(primes)} primes between {numbers[0]} and {numbers[-1]}")
print(f"the first: {', '.join(map(str, primes[:5]))}")
print(f"the last:  {', '.join(map(str, primes[-5:]))}")
