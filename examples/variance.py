"""The variance of the numbers in some files, computed twice: one part after another, and all parts on Ray.

On a cluster:   helio run examples/variance.py N FILE...
Without one:    python examples/variance.py N FILE...
To try it:      python examples/variance.py --sample COUNT FILE     (writes a FILE of COUNT random numbers)

N is the number of parts, each of them one Ray task. A FILE holds one number on each line; on a cluster it
must be in the folder that is sent, or at a path that the head can see.
"""

import random
import sys
import time
from functools import reduce

import ray

Part = tuple[int, float, float]  # how many numbers, their mean, the sum of squared differences from it


def summary(text: str) -> Part:
    """What has to be known about one part."""
    numbers = [float(line) for line in text.splitlines()]
    mean = sum(numbers) / len(numbers)
    return len(numbers), mean, sum((x - mean) ** 2 for x in numbers)


def together(a: Part, b: Part) -> Part:
    """Two parts as one (the formula of Chan, Golub and LeVeque)."""
    n = a[0] + b[0]
    apart = b[1] - a[1]
    return n, a[1] + apart * b[0] / n, a[2] + b[2] + apart**2 * a[0] * b[0] / n


def read(files: list[str]) -> list[str]:
    """All lines with a number on them; anything else ends the program, with its place."""
    lines = []
    for name in files:
        with open(name) as file:
            for number, line in enumerate(file, start=1):
                try:
                    float(line)
                except ValueError:
                    sys.exit(f"{name}:{number}: not a number: {line.strip()[:40]!r}")
                lines.append(line.strip())
    return lines


def compare(parts: list[str]) -> None:
    """The same parts in the same order, both times: the results must be equal to the last bit."""
    began = time.perf_counter()
    here = reduce(together, [summary(part) for part in parts])
    alone = time.perf_counter() - began

    ray.init(logging_level="WARNING")
    on_ray = ray.remote(summary)
    ray.get([on_ray.remote("1\n2") for _ in parts])  # Ray's processes start now, and are not measured
    began = time.perf_counter()
    there = reduce(together, ray.get([on_ray.remote(part) for part in parts]))
    spread = time.perf_counter() - began

    print(f"numbers:       {here[0]:,} in {len(parts)} parts")
    print(f"variance:      {here[2] / here[0]!r} sequentially, in {alone:.2f} s")
    print(f"variance:      {there[2] / there[0]!r} on Ray, in {spread:.2f} s")
    print(f"equal results: {'yes' if here == there else 'NO'}")
    print(f"speed-up:      {alone / spread:.2f}")
    sys.exit(0 if here == there else 1)


def main(words: list[str]) -> None:
    if len(words) == 3 and words[0] == "--sample" and words[1].isdigit():
        with open(words[2], "w") as file:
            file.writelines(f"{random.gauss(0, 10)}\n" for _ in range(int(words[1])))
        print(f"wrote {words[1]} numbers to {words[2]}")
        return
    if len(words) < 2 or not words[0].isdigit() or words[0] == "0":
        sys.exit(f"{__doc__}\nAn N and a FILE are missing; this example makes no numbers up.")
    try:
        lines = read(words[1:])
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    if not lines:
        sys.exit(f"no numbers in {', '.join(words[1:])}")
    size = -(-len(lines) // int(words[0]))  # rounded up, so that there are at most N parts
    compare(["\n".join(lines[at : at + size]) for at in range(0, len(lines), size)])


if __name__ == "__main__":
    main(sys.argv[1:])
