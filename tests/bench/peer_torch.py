#!/usr/bin/env python3
"""The training steps that mpbench is measured against, in PyTorch.

The workloads of the speed tests, each built as a PyTorch user would and then given every
help that PyTorch offers on a CPU: fused optimizers, fused attention, channels-last images,
torch.compile, denormals flushed. One configuration is one process, so that threads, peak memory
and compiled code of one never colour another. A step is all of zero_grad, forward, loss, backward
and update, on data in memory. With --device cuda it is the card's: steps are then timed ten at a
time, since none waits for the one before; tf32 is fp32 that is multiplied in TF32 everywhere, and
fp32 nowhere.

    peer_torch.py --workloads a,b,c,d,e,f --precision fp32,bf16 --threads 1,2 --seconds 3 --json

Prints one line a configuration, then the fastest for each workload and precision. With --python
A,B several installations of PyTorch are compared and the best line is over all of them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

MODES = ("eager", "compile")
VARIANTS = {  # what else a workload can be built with; the first listed needs no recent PyTorch
    "a": ("plain",),
    "b": ("plain",),
    "c": ("channels-first", "channels-last"),
    "d": ("channels-first", "channels-last"),
    "e": ("plain", "fused-attention"),
    "f": ("channels-first", "channels-last"),
}
WARM_UP_STEPS = 3  # at most; no more than are timed at least
STEPS_AT_A_TIME = {"cpu": 1, "cuda": 10}
SLOWEST_RUN_S = 300  # a compiler included
NO_RESULT = 75  # exit status: this installation cannot build the configuration


# ---- models: run in the measuring process, where PyTorch is loaded -------------------------------


def build_mlp_small(torch, _variant):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs, classes = torch.randn(32, 128), torch.randint(0, 10, (32,))
    return model, inputs, classes, (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9})


def build_mlp_large(torch, _variant):
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    inputs, classes = torch.rand(256, 784), torch.randint(0, 10, (256,))
    return model, inputs, classes, (torch.optim.Adam, {"lr": 1e-3})


def build_cnn(torch, variant):
    nn = torch.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)),
    )
    inputs, classes = torch.rand(128, 1, 28, 28), torch.randint(0, 10, (128,))
    if variant == "channels-last":
        model = model.to(memory_format=torch.channels_last)
        inputs = inputs.to(memory_format=torch.channels_last)
    return model, inputs, classes, (torch.optim.Adam, {"lr": 1e-3})


def build_gpt(torch, variant):
    """Six blocks with the norm before each half, no biases in products, input and output tied."""
    nn, functional = torch.nn, torch.nn.functional
    vocabulary, width, heads, context, batch = 65, 384, 6, 256, 8
    fused = variant == "fused-attention"
    if fused and not hasattr(functional, "scaled_dot_product_attention"):
        sys.exit(NO_RESULT)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
            self.query_key_value = nn.Linear(width, 3 * width, bias=False)
            self.project = nn.Linear(width, width, bias=False)
            self.widen = nn.Linear(width, 4 * width, bias=False)
            self.narrow = nn.Linear(4 * width, width, bias=False)
            future = torch.ones(context, context, dtype=torch.bool).triu(1)
            self.register_buffer("future", future, persistent=False)

        def attend(self, x):
            rows, length, _ = x.shape
            parts = self.query_key_value(x).view(rows, length, 3, heads, width // heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
            if fused:
                mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            else:
                scores = (query @ key.transpose(-2, -1)) * (width // heads) ** -0.5
                scores = scores.masked_fill(self.future, float("-inf"))
                mixed = functional.softmax(scores, dim=-1) @ value
            return self.project(mixed.transpose(1, 2).reshape(rows, length, width))

        def forward(self, x):
            x = x + self.attend(self.norm_attention(x))
            return x + self.narrow(functional.gelu(self.widen(self.norm_feed(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(6)))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.head.weight = self.token.weight
            self.register_buffer("places", torch.arange(context), persistent=False)

        def forward(self, tokens):
            x = self.token(tokens) + self.place(self.places)
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    tokens = torch.randint(0, vocabulary, (batch, context))
    following = torch.randint(0, vocabulary, (batch * context,))
    return Gpt(), tokens, following, (torch.optim.AdamW, {"lr": 1e-3})


def build_resnet(torch, variant):
    """ResNet-18 as it is built for images of 32x32."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, filters, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(filters), nn.BatchNorm2d(filters)
            self.short = nn.Identity()
            if stride != 1 or channels != filters:
                self.short = nn.Sequential(
                    nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters)
                )

        def forward(self, x):
            y = functional.relu(self.norm1(self.conv1(x)))
            return functional.relu(self.norm2(self.conv2(y)) + self.short(x))

    widths = (64, 64, 128, 256, 512)
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    for stage in range(4):
        layers.append(Block(widths[stage], widths[stage + 1], 1 if stage == 0 else 2))
        layers.append(Block(widths[stage + 1], widths[stage + 1], 1))
    model = nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))
    inputs, classes = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
    if variant == "channels-last":
        model = model.to(memory_format=torch.channels_last)
        inputs = inputs.to(memory_format=torch.channels_last)
    return model, inputs, classes, (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9})


def build_gan(torch, variant):
    """The two halves of DCGAN for 64x64, and images that are real."""
    nn, noise, width, batch = torch.nn, 100, 64, 32

    def up(channels, filters, stride, padding):
        return nn.ConvTranspose2d(channels, filters, 4, stride, padding, bias=False)

    def down(channels, filters, stride, padding):
        return nn.Conv2d(channels, filters, 4, stride, padding, bias=False)

    generator = [up(noise, 8 * width, 1, 0), nn.BatchNorm2d(8 * width), nn.ReLU()]
    discriminator = [down(3, width, 2, 1), nn.LeakyReLU(0.2)]
    for times in (4, 2, 1):
        generator += [up(2 * times * width, times * width, 2, 1)]
        generator += [nn.BatchNorm2d(times * width), nn.ReLU()]
    for times in (2, 4, 8):
        discriminator += [down(times * width // 2, times * width, 2, 1)]
        discriminator += [nn.BatchNorm2d(times * width), nn.LeakyReLU(0.2)]
    generator += [up(width, 3, 2, 1), nn.Tanh()]
    discriminator += [down(8 * width, 1, 1, 0), nn.Flatten(0)]
    halves = nn.Sequential(*generator), nn.Sequential(*discriminator)
    real = torch.rand(batch, 3, 64, 64) * 2 - 1
    if variant == "channels-last":
        halves = tuple(half.to(memory_format=torch.channels_last) for half in halves)
        real = real.to(memory_format=torch.channels_last)
    return *halves, real, torch.randn(batch, noise, 1, 1)


BUILDERS = {
    "a": build_mlp_small,
    "b": build_mlp_large,
    "c": build_cnn,
    "d": build_resnet,
    "e": build_gpt,
}
WORKLOADS = (*BUILDERS, "f")


# ---- one configuration, in a process of its own --------------------------------------------------


def make_optimizer(kind, parameters, settings):
    """The fused form where this PyTorch has it for the device, else the ordinary one."""
    parameters = list(parameters)
    try:
        return kind(parameters, fused=True, **settings), "fused"
    except (TypeError, RuntimeError, ValueError):
        return kind(parameters, **settings), "plain"


def peak_memory_mib():
    """Of this process alone: what getrusage says may still be its parent's."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def autocast(torch, config):
    low = config["precision"] == "bf16"
    return torch.autocast(config["device"], dtype=torch.bfloat16, enabled=low)


def model_step(torch, config):
    """A step of one model, as a function, and the form of its optimizer."""
    model, inputs, classes, (kind, settings) = BUILDERS[config["workload"]](
        torch, config["variant"]
    )
    device = config["device"]
    model, inputs, classes = model.to(device), inputs.to(device), classes.to(device)
    optimizer, optimizer_form = make_optimizer(kind, model.parameters(), settings)

    def loss_of(inputs, classes):
        with autocast(torch, config):
            return torch.nn.functional.cross_entropy(model(inputs), classes)

    if config["mode"] == "compile":
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(inputs, classes)
        loss.backward()
        optimizer.step()
        return loss

    return step, optimizer_form


def gan_step(torch, config):
    """One update of the discriminator and one of the generator."""
    device = config["device"]
    generator, discriminator, real, noise = build_gan(torch, config["variant"])
    generator, discriminator = generator.to(device), discriminator.to(device)
    real, noise = real.to(device), noise.to(device)
    settings = {"lr": 2e-4, "betas": (0.5, 0.999)}
    of_generator, form = make_optimizer(torch.optim.Adam, generator.parameters(), settings)
    of_discriminator, _ = make_optimizer(torch.optim.Adam, discriminator.parameters(), settings)
    yes, no = torch.ones(len(real), device=device), torch.zeros(len(real), device=device)
    if config["mode"] == "compile":
        generator, discriminator = torch.compile(generator), torch.compile(discriminator)

    def judged(images, wanted):
        with autocast(torch, config):
            answers = discriminator(images)
        return torch.nn.functional.binary_cross_entropy_with_logits(answers.float(), wanted)

    def step():
        of_discriminator.zero_grad(set_to_none=True)
        judged(real, yes).backward()
        with autocast(torch, config):
            fake = generator(noise.normal_())
        judged(fake.detach(), no).backward()
        of_discriminator.step()
        of_generator.zero_grad(set_to_none=True)
        loss = judged(fake, yes)
        loss.backward()
        of_generator.step()
        return loss

    return step, form


def measure(config, seconds, fewest):
    import torch

    # Before the first parallel region: the pool's threads inherit the setting.
    torch.set_flush_denormal(True)
    torch.set_num_threads(config["threads"])
    torch.manual_seed(0)
    if config["mode"] == "compile" and not hasattr(torch, "compile"):
        sys.exit(NO_RESULT)
    device = config["device"]
    if device == "cuda":  # what fp32 is multiplied in is said, not left to its defaults
        in_tf32 = config["precision"] == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = in_tf32
    step, optimizer_form = (gan_step if config["workload"] == "f" else model_step)(torch, config)

    def timed_steps(count):
        """Seconds each, of steps that the host queues one after another, and the last loss."""
        started = time.perf_counter()
        for _ in range(count):
            loss = step()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - started) / count, loss

    first, _ = timed_steps(1)
    timed_steps(min(WARM_UP_STEPS, fewest))
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < fewest:
        each, loss = timed_steps(STEPS_AT_A_TIME[device])
        times.append(each)
    times.sort()
    return {
        **config,
        "torch": torch.__version__,
        "optimizer": optimizer_form,
        # What mpbench tells of a run is a mean: on a machine that others disturb, that is longer.
        "mean_ms": round(1e3 * sum(times) / len(times), 4),
        "median_ms": round(1e3 * statistics.median(times), 4),
        "p10_ms": round(1e3 * times[len(times) // 10], 4),
        "p90_ms": round(1e3 * times[len(times) * 9 // 10], 4),
        "steps": len(times) * STEPS_AT_A_TIME[device],
        "first_ms": round(1e3 * first, 1),
        "peak_mib": round(peak_memory_mib(), 1),
        "loss": round(float(loss.detach()), 6),
    }


# ---- all configurations --------------------------------------------------------------------------


def run_apart(python, config, seconds, fewest):
    """The result of one configuration, None where PyTorch lacks it, or what went wrong."""
    command = [python, os.path.abspath(__file__), "--one", json.dumps(config)]
    command += ["--seconds", str(seconds), "--fewest", str(fewest)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(config["threads"])}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SLOWEST_RUN_S
        )
    except subprocess.TimeoutExpired:
        return {**config, "error": f"no result within {SLOWEST_RUN_S} s"}
    except OSError as error:
        return {**config, "error": str(error)}
    if done.returncode == NO_RESULT:
        return None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {**config, "error": said[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def describe(result):
    name = " ".join(str(result[key]) for key in ("workload", "precision", "mode", "variant"))
    name += f", {result['threads']} threads"
    if "error" in result:
        return f"{name}: {result['error']}"
    spread = f"{result['p10_ms']:.3f}..{result['p90_ms']:.3f}"
    return (
        f"{name}, torch {result['torch']}: {result['mean_ms']:.3f} ms ({spread}), "
        f"{result['peak_mib']:.0f} MiB"
    )


def choices(allowed):
    def parse(text):
        chosen = text.split(",")
        for one in chosen:
            if one not in allowed:
                raise argparse.ArgumentTypeError(f"{one!r} is none of {', '.join(allowed)}")
        return chosen

    return parse


def thread_counts(text):
    try:
        counts = [int(one) for one in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers") from None
    if min(counts) < 1:
        raise argparse.ArgumentTypeError("a thread count is at least 1")
    return counts


def parse_arguments():
    summary = __doc__.split("\n", maxsplit=1)[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--workloads", type=choices(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument(
        "--precision", type=choices(("fp32", "tf32", "bf16")), default=["fp32", "bf16"]
    )
    parser.add_argument("--threads", type=thread_counts, default=[1, 2])
    parser.add_argument("--device", choices=tuple(STEPS_AT_A_TIME), default="cpu")
    parser.add_argument("--modes", type=choices(MODES), default=list(MODES))
    parser.add_argument("--seconds", type=float, default=3.0, help="timed, each configuration")
    parser.add_argument("--fewest", type=int, default=5, help="steps timed, however long they take")
    variants = sorted({variant for some in VARIANTS.values() for variant in some})
    parser.add_argument("--variants", type=choices(variants), default=variants)
    parser.add_argument("--python", default=sys.executable, help="interpreters, comma between")
    parser.add_argument(
        "--by", choices=("mean_ms", "p10_ms"), default="mean_ms", help="what the fastest is fastest by"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.device == "cpu" and not arguments.one and "tf32" in arguments.precision:
        sys.exit("peer_torch.py: a processor multiplies nothing in tf32: leave it out")
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.seconds, arguments.fewest)))
        return 0
    configs = [
        {"workload": workload, "precision": precision, "threads": threads}
        | {"mode": mode, "variant": variant, "device": arguments.device}
        for workload in arguments.workloads
        for precision in arguments.precision
        for threads in arguments.threads
        for mode in arguments.modes
        for variant in VARIANTS[workload]
        if variant in arguments.variants
    ]
    best = {}
    for config in configs:
        for python in arguments.python.split(","):
            result = run_apart(python, config, arguments.seconds, arguments.fewest)
            if result is None:
                continue
            print(json.dumps(result) if arguments.json else describe(result), flush=True)
            key = f"{config['workload']} {config['precision']}"
            if "error" in result:
                continue
            if key not in best or result[arguments.by] < best[key][arguments.by]:
                best[key] = result
    if arguments.json:
        print(json.dumps({"best": best}))
    else:
        for result in best.values():
            print("best:", describe(result))
    return 0 if best else 1


if __name__ == "__main__":
    sys.exit(main())
