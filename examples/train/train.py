"""Train a small vision model on several nodes, and go on from the last checkpoint when one of them dies.

On a cluster:   helio run train.py --workers 2
Without one:    python train.py          (Ray starts on this machine for that run alone)

The pictures are drawn by this program: discs, rings, pluses and x in noise. README.md says what to try.
"""

import argparse
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from textwrap import shorten
from typing import Any

import ray
import ray.exceptions
import ray.train
import ray.train.torch
import torch
from torch import Tensor, nn

SIDE = 16  # pixels
KINDS = ("disc", "ring", "plus", "x")
STATE = "state.pt"  # the one file of a checkpoint
os.environ.setdefault("RAY_TRAIN_ENABLE_PRINT_PATCH", "0")  # with Ray Train's own `print`, lines come twice
os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")  # for machines that a cloud takes back
os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.5")  # a checkpoint counts at the next check


def pictures(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Shapes of any size at any place, with noise; the same ones for the same seed, on every node."""
    dice = torch.Generator().manual_seed(seed)
    kind = torch.randint(len(KINDS), (count,), generator=dice)
    middle = 5 + 6 * torch.rand(count, 2, 1, 1, generator=dice)
    radius = 3 + 2 * torch.rand(count, 1, 1, generator=dice)
    pixels = torch.stack(torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij"))
    down, right = (pixels - middle).abs().unbind(1)
    far = (down**2 + right**2).sqrt()
    straight, slanted = torch.minimum(down, right), (down - right).abs()
    inside = far < radius
    shapes = torch.stack(
        [inside, inside & (far > radius - 1.5), inside & (straight < 1), inside & (slanted < 1.2)], dim=1
    )
    drawn = shapes[torch.arange(count), kind].float()
    noise = 0.3 * torch.randn(count, SIDE, SIDE, generator=dice)
    return (drawn + noise).unsqueeze(1), kind


def network() -> nn.Module:
    """Two layers of convolutions: it trains on a laptop in seconds."""
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * (SIDE // 4) ** 2, len(KINDS))),
    )


class Training:
    """What one worker holds, and what a checkpoint saves of it."""

    def __init__(self, options: dict[str, Any]) -> None:
        torch.manual_seed(options["seed"])
        torch.set_num_threads(1)  # as many as Ray was asked for: one CPU for each worker
        self.options = options
        self.rank = ray.train.get_context().get_world_rank()
        self.size = ray.train.get_context().get_world_size()
        self.model = ray.train.torch.prepare_model(network())  # on its GPU if there is one; wrapped for DDP
        self.bare = getattr(self.model, "module", self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        device = ray.train.torch.get_device()
        self.images, self.labels = (one.to(device) for one in pictures(options["pictures"], options["seed"]))
        self.tests, self.answers = (one.to(device) for one in pictures(512, options["seed"] + 1))
        self.epoch = 0  # how many are done
        self.parts: list[dict[str, Any]] = []  # which epochs ran where: one part for each start

    def save(self, folder: str) -> None:
        state = {
            "model": self.bare.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epoch,
            "parts": self.parts,
        }
        torch.save(state, Path(folder, STATE))

    def load(self, folder: str) -> None:
        state = torch.load(Path(folder, STATE), map_location=ray.train.torch.get_device(), weights_only=True)
        self.bare.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch, self.parts = state["epoch"], state["parts"]

    def one_epoch(self) -> None:
        """All pictures once, in an order that only the seed and the epoch decide; a share for each worker."""
        dice = torch.Generator().manual_seed(1000 * self.options["seed"] + self.epoch)
        order = torch.randperm(len(self.images), generator=dice)
        even = len(order) // self.size * self.size  # every worker must have as many batches as the others
        batches = order[:even][self.rank :: self.size].split(max(1, self.options["batch"] // self.size))
        self.model.train()
        for batch in batches:
            self.optimizer.zero_grad()
            chosen = batch.to(self.images.device)
            nn.functional.cross_entropy(self.model(self.images[chosen]), self.labels[chosen]).backward()
            self.optimizer.step()
            time.sleep(self.options["seconds_per_epoch"] / len(batches))  # as if the model were a large one
        self.epoch += 1

    @torch.no_grad()
    def figures(self) -> dict[str, Any]:
        """How good it is on pictures that it has not seen. All workers have the same model and answer."""
        self.bare.eval()
        guess = self.bare(self.tests)
        loss = nn.functional.cross_entropy(guess, self.answers).item()
        right = (guess.argmax(1) == self.answers).float().mean().item()
        return {"epoch": self.epoch, "loss": loss, "accuracy": right, "parts": self.parts}


def node_name() -> str:
    """The node that this process is on, as `helio status` calls it."""
    here = ray.get_runtime_context().get_node_id()
    (node,) = (node for node in ray.nodes() if node["NodeID"] == here)
    return str(node["Labels"].get("helio-node", node["NodeName"]))


def all_nodes(size: int) -> list[str]:
    """The nodes of all workers of this start."""
    names = [node_name()] * size
    if size > 1:
        torch.distributed.all_gather_object(names, names[0])
    return sorted(names)


def work(options: dict[str, Any]) -> None:
    """What every worker does, from the beginning or from the last checkpoint to the end."""
    logging.getLogger().setLevel(logging.WARNING)  # Ray Train tells of each report there
    training = Training(options)
    nodes = all_nodes(training.size)
    say = print if training.rank == 0 else lambda *_: None
    if checkpoint := ray.train.get_checkpoint():
        with checkpoint.as_directory() as folder:
            training.load(folder)
        say(f"RESUMED from the checkpoint of epoch {training.epoch}, now on {', '.join(nodes)}")
    else:
        say(f"started from nothing on {', '.join(nodes)}")
    training.parts.append({"after": training.epoch, "epochs": 0, "nodes": nodes})
    while training.epoch < options["epochs"]:
        say(f"epoch {training.epoch + 1}/{options['epochs']} begins")
        training.one_epoch()
        training.parts[-1]["epochs"] += 1
        figures = training.figures()
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if training.rank == 0:  # one is enough: all models are equal
                training.save(folder)
                checkpoint = ray.train.Checkpoint.from_directory(folder)
            ray.train.report(figures, checkpoint=checkpoint)
        ray.train.get_all_reported_checkpoints()  # comes back once it counts: `report` alone is too early
        say(f"epoch {training.epoch}/{options['epochs']} done and saved: {described(figures)}")


def described(figures: dict[str, Any]) -> str:
    return f"loss {figures['loss']:.6f}, accuracy {100 * figures['accuracy']:.1f} %"


class Losses(ray.train.UserCallback):
    """Says what ended the workers; Ray Train then starts all of them again, wherever there is room."""

    def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
        for rank, error in sorted(worker_exceptions.items()):
            gone = isinstance(getattr(error, "health_check_failure", None), ray.exceptions.RayActorError)
            why = str(error).strip().splitlines()[-1].strip()
            print(f"{'LOST' if gone else 'stopped'} worker {rank}: {shorten(why, 160)}")


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--workers", type=int, default=2, help="how many train together (%(default)s)")
    add("--gpus", type=float, default=0, help="of each worker; 0.5 lets two share one (%(default)s)")
    add("--epochs", type=int, default=6, help="(%(default)s)")
    add("--seconds-per-epoch", type=float, default=0, help="waits that make an epoch this much longer")
    add("--max-failures", type=int, default=3, help="how often to go on after a loss (%(default)s)")
    add("--pictures", type=int, default=2048, help="to train with (%(default)s)")
    add("--batch", type=int, default=32, help="over all workers (%(default)s)")
    add("--seed", type=int, default=1, help="(%(default)s)")
    add("--storage", default=default_storage(), help="where checkpoints go (%(default)s)")
    add("--name", default=os.environ.get("HELIO_RUN"), help="the same name goes on where that run ended")
    return parser.parse_args(words)


def default_storage() -> str:
    """The cluster's storage; else what `helio run` brings back; else a folder here. All nodes need it."""
    outputs = os.environ.get("HELIO_OUTPUTS")
    return os.environ.get("HELIO_STORAGE") or (
        f"{outputs}/checkpoints" if outputs else str(Path("checkpoints").resolve())
    )


def trainer(options: argparse.Namespace) -> ray.train.torch.TorchTrainer:
    share = {"CPU": 1.0, **({"GPU": options.gpus} if options.gpus else {})}
    # NCCL refuses two workers on one GPU; gloo does not.
    backend = "gloo" if options.gpus < 1 else None
    return ray.train.torch.TorchTrainer(
        work,
        train_loop_config=vars(options),
        torch_config=ray.train.torch.TorchConfig(backend=backend),
        scaling_config=ray.train.ScalingConfig(
            num_workers=options.workers,
            use_gpu=options.gpus > 0,
            resources_per_worker=share,
            placement_strategy="SPREAD",  # on different nodes, while there are enough
        ),
        run_config=ray.train.RunConfig(
            name=options.name,
            storage_path=options.storage,
            failure_config=ray.train.FailureConfig(max_failures=options.max_failures),
            checkpoint_config=ray.train.CheckpointConfig(num_to_keep=2),
            callbacks=[Losses()],
            logging_config=ray.train.LoggingConfig(log_level="CRITICAL"),  # we say ourselves what happens
        ),
    )


def told(figures: dict[str, Any]) -> str:
    """The whole run in a few lines."""
    lines = [f"trained {figures['epoch']} epochs: {described(figures)}"]
    for part in figures["parts"]:
        last = part["after"] + part["epochs"]
        how = f"resumed from the checkpoint of epoch {part['after']}" if part["after"] else "from nothing"
        lines.append(f"  epochs {part['after'] + 1} to {last} on {', '.join(part['nodes'])}, {how}")
    return "\n".join(lines)


def main(words: list[str]) -> None:
    options = arguments(words)
    ray.init(logging_level="WARNING")
    try:
        result = trainer(options).fit()
    except ray.train.TrainingFailedError as error:
        sys.exit(f"the training ended: {error}")
    print(told(result.metrics))
    print(f"checkpoints: {options.storage}/{Path(result.path).name}")


if __name__ == "__main__":
    main(sys.argv[1:])
