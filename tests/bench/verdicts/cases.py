# SPDX-License-Identifier: BSD-2-Clause
"""The jobs that verdicts are measured on: shapes, faults and their sizes. Two sets, whose shapes and seeds have nothing
in common: what is tuned on the one is judged on the other."""

import dataclasses

FIRST_STEP, LAST_STEP, STEPS = 15, 34, 45
STEP_NS = 20_000_000  # of computing, in every shape


@dataclasses.dataclass(frozen=True)
class Case:
    shape: str  # its name in SHAPES
    fault: str
    size: str  # as the fault's table has it
    seed: int
    arguments: tuple  # of simulate
    first_step: int = FIRST_STEP
    last_step: int = LAST_STEP

    @property
    def name(self):
        return f"{self.shape}/{self.fault}/{self.size}/{self.seed}"


# name: arguments of simulate
SHAPES = {
    "tuning": {
        "plain-8": "--shape plain --nodes 8 --gpus 1",
        "plain-4-small": "--shape plain --nodes 4 --gpus 1 --bytes 4MiB",
        "data-8": "--shape data --nodes 8 --gpus 1 --bytes 256MiB",
        "sharded-4": "--shape sharded --nodes 4 --gpus 1 --bytes 64MiB",
        "tensor-4x2": "--shape tensor --nodes 4 --gpus 2 --bytes 64MiB",
        "pipeline-4": "--shape pipeline --nodes 4 --gpus 1",
        "expert-4": "--shape expert --nodes 4 --gpus 1",
        "plain-3x2": "--shape plain --nodes 3 --gpus 2 --bytes 40MiB",
        "data-6-exposed": "--shape data --nodes 6 --gpus 1 --bytes 768MiB",
        "sharded-3x2": "--shape sharded --nodes 3 --gpus 2 --bytes 80MiB",
        "sharded-7": "--shape sharded --nodes 7 --gpus 1 --bytes 112MiB",
        "tensor-3x4": "--shape tensor --nodes 3 --gpus 4 --bytes 48MiB",
        "tensor-6x2": "--shape tensor --nodes 6 --gpus 2 --bytes 96MiB",
        "pipeline-6": "--shape pipeline --nodes 6 --gpus 1",
        "pipeline-6x2": "--shape pipeline --nodes 6 --gpus 2 --exchange 3MiB",
        "expert-5": "--shape expert --nodes 5 --gpus 1 --exchange 6MiB",
    },
    "judging": {
        "plain-6": "--shape plain --nodes 6 --gpus 1 --bytes 48MiB",
        "plain-16": "--shape plain --nodes 16 --gpus 1 --bytes 96MiB --leaf-nodes 4",
        "plain-8-one-channel": "--shape plain --nodes 8 --gpus 1 --channels 1",
        "plain-8-odd": "--shape plain --nodes 8 --gpus 1 --bytes 30000004",
        "plain-8-noisy": "--shape plain --nodes 8 --gpus 1 --noise 300",
        "plain-8-100g": "--shape plain --nodes 8 --gpus 1 --link-gbps 100",
        "plain-4x2": "--shape plain --nodes 4 --gpus 2",
        "plain-2x8": "--shape plain --nodes 2 --gpus 8 --channels 8 --bytes 256MiB",
        "data-4": "--shape data --nodes 4 --gpus 1 --bytes 512MiB",
        "data-16": "--shape data --nodes 16 --gpus 1 --bytes 192MiB --leaf-nodes 8",
        "data-8-exposed": "--shape data --nodes 8 --gpus 1 --bytes 1GiB",
        "sharded-8": "--shape sharded --nodes 8 --gpus 1 --bytes 128MiB",
        "sharded-6": "--shape sharded --nodes 6 --gpus 1 --bytes 96MiB --channels 4",
        "sharded-4x2": "--shape sharded --nodes 4 --gpus 2 --bytes 96MiB",
        "tensor-8x2": "--shape tensor --nodes 8 --gpus 2 --bytes 128MiB",
        "tensor-4x4": "--shape tensor --nodes 4 --gpus 4 --bytes 64MiB",
        "pipeline-8": "--shape pipeline --nodes 8 --gpus 1",
        "pipeline-4x2": "--shape pipeline --nodes 4 --gpus 2",
        "expert-6": "--shape expert --nodes 6 --gpus 1 --exchange 8MiB",
        "expert-8": "--shape expert --nodes 8 --gpus 1",
    },
}


def delays(*percents):
    return {f"{percent}%": f"--fault-delay {STEP_NS * percent // 100}ns" for percent in percents}


def rates(*percents):
    return {f"{percent}%-left": f"--fault-rate {percent}" for percent in percents}


# fault: sizes, each with arguments of simulate
FAULTS = {
    "gpu": delays(1, 3, 5, 10, 30),
    "gpu-spread": delays(3, 10, 30),
    "gpu-once": delays(5, 10, 30, 100),
    "host-cpu": delays(3, 10, 30),
    "host-io": delays(10, 30),
    "host-memory": delays(10, 30),
    "host-proxy": delays(3, 10, 30),
    "rate": rates(70, 40, 20, 8),
    "loss": {"0.1%": "--fault-ppm 1000", "1%": "--fault-ppm 10000", "5%": "--fault-ppm 50000"},
    "congestion": rates(60, 30, 10),
    "pause": rates(60, 30, 10),
    "jitter": {"50us": "--fault-delay 50us", "300us": "--fault-delay 300us"},
    "receiver": {"0.5%": "--fault-ppm 5000 --fault-delay 640us", "5%": "--fault-ppm 50000 --fault-delay 640us"},
    "hang": {"": ""},
    "warm-up": {"": ""},
    "checkpoint": {"200ms": "--fault-delay 200ms"},
    "evaluation": {"": ""},
    "equal": delays(10),
}
LATER_FAULTS = {"nic": rates(60, 30, 10)}  # behind all others, so that the seeds of those stay as they were
RAIL_FAULTS = {"rail": {"": ""}}  # behind these; where a node has several NICs
CLASSES = {
    "gpu": "gpu late",
    "gpu-spread": "gpu late",
    "gpu-once": "gpu late",
    "host-cpu": "host late",
    "host-io": "host late",
    "host-memory": "host late",
    "host-proxy": "host late",
    "rate": "network slow",
    "loss": "network lossy",
    "congestion": "congested",
    "pause": "pausing",
    "jitter": "network slow",
    "receiver": "receiver slow",
    "hang": "hang",
    "nic": "nic slow",
    "rail": "fallback to one rail",
}  # the others are no faults
CAUSES = {  # what may be said beside the class
    "host-cpu": "host late: no cpu",
    "host-io": "host late: block i/o",
    "host-memory": "host late: page faults",
    "host-proxy": "host late: proxy",
}
ON_LINKS = {"rate", "loss", "congestion", "pause", "jitter", "receiver"}
FIRST_SEED = {"tuning": 1, "judging": 100_001}


def is_right_class(fault, kind):
    return fault in CLASSES and kind in (CLASSES[fault], CAUSES.get(fault))


def ranks_of(arguments):
    words = arguments.split()
    return int(words[words.index("--nodes") + 1]) * int(words[words.index("--gpus") + 1])


def rows(which):
    """(shape, its arguments, fault, size, its arguments) of each case of a set."""
    for table in (FAULTS, LATER_FAULTS, RAIL_FAULTS):
        for shape, words in SHAPES[which].items():
            if table is RAIL_FAULTS and "--gpus 1 " in words + " ":
                continue
            for fault, sizes in table.items():
                for size, options in sizes.items():
                    yield shape, words, fault, size, options


def faulty_cases(which, seeds=1, shapes=None, faults=None):
    """A fault hits another rank in each case; its seed is nobody else's."""
    number = 0
    for shape, words, fault, size, options in rows(which):
        for _ in range(seeds):
            number += 1
            if (shapes and shape not in shapes) or (faults and fault not in faults):
                continue
            rank = number * 7 % ranks_of(words)
            first = 0 if fault in ("warm-up", "rail") else FIRST_STEP
            last = {"gpu-once": FIRST_STEP, "rail": STEPS - 1}.get(fault, LAST_STEP)
            place = f"--fault {fault} --fault-rank {rank} --fault-first {first} --fault-last {last}"
            arguments = f"{words} --steps {STEPS} {place} {options}".split()
            yield Case(shape, fault, size, FIRST_SEED[which] + number, tuple(arguments), first, last)


def quiet_cases(which, steps, length=250, shapes=None):
    """Jobs without a fault, `steps` steps in all, dealt out to the shapes."""
    names = [shape for shape in SHAPES[which] if not shapes or shape in shapes]
    for number in range(max(1, steps // length)):
        shape = names[number % len(names)]
        arguments = f"{SHAPES[which][shape]} --steps {length} --fault none".split()
        yield Case(shape, "none", str(length), FIRST_SEED[which] + 50_000 + number, tuple(arguments), length, length)
