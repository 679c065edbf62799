#!/usr/bin/env python3
"""Writes torch_traces.txt and torch_ops.txt: what PyTorch says the engine should compute.

    make_torch_traces.py [FOLDER]      (the folder of this file when left out)

Needs PyTorch 2.3 or later, whose GradScaler works on a CPU. Inputs are drawn here and not by
PyTorch, as multiples of 1/32: fp32 and fp16 hold them exactly, and the files are the same on every
machine but for last digits.

Both files are read by one rule. Lines that begin with # are comments. A case is

    KIND NAME
    attr KEY VALUE
    tensor NAME SHAPE: VALUE VALUE ..    (row-major; 2x3 is two rows of three; 1 for a lone number)
    end
"""

import math
import os
import sys

import torch
import torch.nn.functional as functional

class Source:
    """A linear congruential generator; its upper bits are scattered well enough for test data."""

    def __init__(self):
        self.state = 1

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit


source = Source()


def draw(*shape, dtype=torch.float64, low=-2.0, high=2.0):
    """Scattered multiples of 1/32 from low to below high, the next ones at each call."""
    steps = int((high - low) * 32)
    values = [low + source.below(steps) / 32 for _ in range(math.prod(shape))]
    return torch.tensor(values, dtype=dtype).reshape(shape)


def draw_distinct(*shape):
    """As draw, but no two values alike: the largest of a window is never in doubt."""
    count = math.prod(shape)
    values = [(i * 37 % 101 - 50) / 32 for i in range(count)]
    assert len(set(values)) == count
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


class CaseFile:
    def __init__(self, folder, name, about):
        self.path = os.path.join(folder, name)
        self.lines = [f"# {line}".rstrip() for line in about.strip().split("\n")]
        self.lines += [
            f"# Made by make_torch_traces.py with PyTorch {torch.__version__.split('+')[0]}; "
            "to make it again:",
            "#     python3 tests/golden/make_torch_traces.py",
        ]

    def case(self, kind, name, attrs, tensors):
        self.lines += ["", f"{kind} {name}"]
        self.lines += [f"attr {key} {value:g}" for key, value in attrs.items()]
        for key, values in tensors.items():
            values = torch.as_tensor(values).detach()
            digits = 9 if values.dtype == torch.float32 else 12
            shape = "x".join(str(size) for size in values.shape) or "1"
            numbers = " ".join(f"{value:.{digits}g}" for value in values.flatten().tolist())
            self.lines.append(f"tensor {key} {shape}: {numbers}")
        self.lines.append("end")

    def write(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("\n".join(self.lines) + "\n")


# ---- loss scaling --------------------------------------------------------------------------------


def run_scaler(settings, found, start, gradient, lr=1.0, clips=None, injected=math.inf):
    """Plain SGD under a GradScaler; where found is 1 the gradient is made not finite."""
    parameter = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=lr)
    scaler = torch.amp.GradScaler(
        "cpu",
        init_scale=settings["init"],
        growth_factor=settings["growth"],
        backoff_factor=settings["backoff"],
        growth_interval=settings["interval"],
    )
    scales, good, parameters = [], [], []
    for step, is_found in enumerate(found):
        optimizer.zero_grad()
        scaler.scale((parameter * gradient).sum()).backward()
        if is_found:
            parameter.grad[0] = injected
        if clips:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([parameter], clips[step])
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        good.append(scaler.state_dict()["_growth_tracker"])
        parameters.append(parameter.detach().clone())
    return scales, good, torch.stack(parameters)


def scaler_case(file, name, settings, found, start=(1.0,), gradient=1.0, lr=0.0, clips=None,
                injected=math.inf):
    scales, good, parameters = run_scaler(settings, found, start, gradient, lr, clips, injected)
    tensors = {
        "found": torch.tensor(found),
        "scale": torch.tensor(scales),
        "good": torch.tensor(good),
    }
    attrs = dict(settings)
    if lr:
        attrs |= {"lr": lr, "gradient": gradient}
        tensors |= {"start": torch.tensor(start), "parameters": parameters}
    if clips:
        tensors["clip"] = torch.tensor(clips)
    file.case("scaler", name, attrs, tensors)


def scaler_settings(init, growth, backoff, interval):
    return {"init": init, "growth": growth, "backoff": backoff, "interval": interval}


def write_scalers(file):
    scaler_case(file, "grows_after_its_interval", scaler_settings(4, 2, 0.25, 2), (0, 0, 1))
    scaler_case(file, "grows_every_step", scaler_settings(128, 2, 0.5, 1), (0, 0, 1, 0))
    scaler_case(file, "keeps_a_scale_that_would_overflow", scaler_settings(1e38, 16, 0.5, 1),
                (0, 0))
    scaler_case(file, "window_of_two", scaler_settings(8, 2, 0.5, 2),
                (0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0))
    scaler_case(file, "window_of_three", scaler_settings(1024, 4, 0.125, 3),
                (0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0))
    scaler_case(file, "skips_a_step_of_nan", scaler_settings(2, 2, 0.5, 1), (0, 1),
                start=(1.0, 2.0), gradient=2.0, lr=1.0, injected=math.nan)
    scaler_case(file, "clips_true_gradients", scaler_settings(2, 2, 0.5, 1), (0, 0, 1),
                start=(5.0,), gradient=4.0, lr=2.0, clips=(2.0, 3.0, 3.0))


def write_two_layers(file):
    """Two linear layers trained under a scaler; infinity met in the third of four batches."""
    weights = [draw(*shape, dtype=torch.float32, low=-0.5, high=0.5)
               for shape in ((8, 8), (8,), (8, 8), (8,))]
    inputs, targets = draw(4, 8, 8, dtype=torch.float32), draw(4, 8, 8, dtype=torch.float32)
    parameters = [weight.clone().requires_grad_() for weight in weights]
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0, growth_interval=1)
    scales = []
    for step in range(4):
        optimizer.zero_grad()
        hidden = functional.linear(inputs[step], parameters[0], parameters[1])
        loss = functional.mse_loss(
            functional.linear(hidden, parameters[2], parameters[3]), targets[step])
        scaler.scale(loss).backward()
        if step == 2:
            parameters[2].grad[0, 0] = math.inf
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    names = ("weight1", "bias1", "weight2", "bias2")
    tensors = {"inputs": inputs, "targets": targets, "found": torch.tensor((0, 0, 1, 0)),
               "scale": torch.tensor(scales)}
    tensors |= {f"{name}_start": weight for name, weight in zip(names, weights)}
    tensors |= {f"{name}_end": weight for name, weight in zip(names, parameters)}
    file.case("training", "two_linear_layers", scaler_settings(128, 2, 0.5, 1) | {"lr": 1}, tensors)


# ---- optimizers ----------------------------------------------------------------------------------


def optimizer_case(file, name, kind, settings, start, gradients):
    parameter = start.clone().requires_grad_()
    renamed = dict(settings)
    if "beta1" in renamed:
        renamed["betas"] = (renamed.pop("beta1"), renamed.pop("beta2"))
    if "epsilon" in renamed:
        renamed["eps"] = renamed.pop("epsilon")
    if "nesterov" in renamed:
        renamed["nesterov"] = bool(renamed["nesterov"])
    optimizer = kind([parameter], foreach=False, **renamed)
    after = []
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
        after.append(parameter.detach().clone())
    file.case(kind.__name__.lower(), name, settings,
              {"start": start, "gradients": gradients, "parameters": torch.stack(after)})


def write_optimizers(file):
    sgd, adam, adamw = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
    start, gradients = draw(6, dtype=torch.float32), draw(5, 6, dtype=torch.float32)
    moments = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    cases = (
        ("plain", sgd, {"lr": 0.1}),
        ("decayed", sgd, {"lr": 0.1, "weight_decay": 0.01}),
        ("momentum", sgd, {"lr": 0.1, "momentum": 0.9}),
        ("momentum_decayed", sgd, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
        ("nesterov_decayed", sgd,
         {"lr": 0.1, "momentum": 0.9, "nesterov": 1, "weight_decay": 0.01}),
        ("usual", adam, {"lr": 0.01} | moments),
        ("decayed", adam, {"lr": 0.01, "weight_decay": 0.1} | moments),
        ("short_memory_large_epsilon", adam,
         {"lr": 0.05, "beta1": 0.5, "beta2": 0.9, "epsilon": 1e-3}),
        ("undecayed", adamw, {"lr": 0.01, "weight_decay": 0.0} | moments),
        ("decayed", adamw, {"lr": 0.01, "weight_decay": 0.1} | moments),
    )
    for name, kind, settings in cases:
        optimizer_case(file, name, kind, settings, start, gradients)
    for kind in (adam, adamw):
        settings = {"lr": 0.1, "weight_decay": 0.1} | moments
        optimizer_case(file, "three_steps_of_one_number", kind, settings, torch.ones(1),
                       torch.full((3, 1), 0.5))


# ---- operations ----------------------------------------------------------------------------------


def channels_first(x):
    return x.permute(0, 3, 1, 2)


def channels_last(x):
    return x.permute(0, 2, 3, 1)


def op_case(file, name, function, inputs, attrs=None, constants=None, extra=None):
    """Inputs, the result y for them, a gradient dy that came back, and the gradient of each input.

    constants are inputs without a gradient; extra gives further results by name.
    """
    leaves = {key: value.clone().requires_grad_() for key, value in inputs.items()}
    result = function(**leaves, **(constants or {}))
    seed = draw(*result.shape) if result.dim() else torch.ones((), dtype=torch.float64)
    gradients = torch.autograd.grad(result, list(leaves.values()), seed)
    tensors = dict(leaves) | (constants or {}) | {"y": result, "dy": seed}
    tensors |= {f"d{key}": gradient for key, gradient in zip(leaves, gradients)}
    file.case("op", name, attrs or {}, tensors | (extra(**leaves) if extra else {}))


def convolution(function, **settings):
    """In the engine's layouts: images [N,H,W,C], weights [O,KH,KW,C/groups]."""
    def run(x, w, bias):
        return channels_last(function(channels_first(x), channels_first(w), bias, **settings))
    return run


def write_products(file):
    op_case(file, "linear", lambda x, w, bias: functional.linear(x, w, bias),
            {"x": draw(2, 3, 5), "w": draw(4, 5), "bias": draw(4)})
    op_case(file, "matmul", lambda x, w: x @ w, {"x": draw(2, 3, 5), "w": draw(5, 4)})
    for settings, image, weight in (
        ({"stride": 1, "padding": 0, "dilation": 1, "groups": 1}, (1, 4, 5, 2), (3, 3, 3, 2)),
        ({"stride": 2, "padding": 1, "dilation": 1, "groups": 2}, (2, 5, 4, 4), (6, 3, 3, 2)),
        ({"stride": 1, "padding": 2, "dilation": 2, "groups": 1}, (1, 4, 4, 2), (2, 3, 2, 2)),
    ):
        inputs = {"x": draw(*image), "w": draw(*weight), "bias": draw(weight[0])}
        op_case(file, "conv2d", convolution(functional.conv2d, **settings), inputs, settings)
    # The transpose's weight is that of the convolution whose gradient it is: [C,KH,KW,O].
    settings = {"stride": 2, "padding": 1}
    op_case(file, "conv_transpose2d", convolution(functional.conv_transpose2d, **settings),
            {"x": draw(1, 3, 2, 3), "w": draw(3, 4, 4, 2), "bias": draw(2)}, settings)


def attend(query, key, value, scale, causal):
    """The result [B,T,H,D], and the logarithm of each row's sum of exponentials [B,H,T]."""
    query, key, value = (part.transpose(1, 2) for part in (query, key, value))
    scores = query @ key.transpose(-2, -1) * scale
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    mixed = torch.softmax(scores, -1) @ value
    return mixed.transpose(1, 2), torch.logsumexp(scores, -1)


def write_attention(file):
    for causal in (1, 0):
        settings = {"scale": 0.5, "causal": causal}
        inputs = {key: draw(1, 5, 2, 4) for key in ("q", "k", "v")}
        op_case(file, "attention", lambda q, k, v: attend(q, k, v, **settings)[0], inputs, settings,
                extra=lambda q, k, v: {"sums": attend(q, k, v, **settings)[1]})


def statistics_of(x, dims, epsilon):
    variance, mean = torch.var_mean(x, dims, correction=0)
    return {"mean": mean, "inverse": (variance + epsilon).rsqrt()}


def write_norms(file):
    epsilon = 1e-5
    op_case(file, "layer_norm",
            lambda x, weight, bias: functional.layer_norm(x, (6,), weight, bias, epsilon),
            {"x": draw(2, 2, 6), "weight": draw(6), "bias": draw(6)}, {"epsilon": epsilon},
            extra=lambda x, **_: statistics_of(x, 2, epsilon))
    running = {"running_mean": draw(3), "running_variance": draw(3, low=0.5)}
    updated = {f"{key}_after": value.clone() for key, value in running.items()}
    op_case(file, "batch_norm",
            lambda x, weight, bias: channels_last(functional.batch_norm(
                channels_first(x), updated["running_mean_after"], updated["running_variance_after"],
                weight, bias, training=True, momentum=0.1, eps=epsilon)),
            {"x": draw(2, 3, 2, 3), "weight": draw(3), "bias": draw(3)},
            {"epsilon": epsilon, "momentum": 0.1},
            extra=lambda x, **_: statistics_of(x, (0, 1, 2), epsilon) | running | updated)
    op_case(file, "batch_norm_infer",
            lambda x, weight, bias, running_mean, running_variance: functional.batch_norm(
                x, running_mean, running_variance, weight, bias, eps=epsilon),
            {"x": draw(4, 3), "weight": draw(3), "bias": draw(3)}, {"epsilon": epsilon},
            constants=running)
    groups = 2
    op_case(file, "group_norm",
            lambda x, weight, bias: channels_last(
                functional.group_norm(channels_first(x), groups, weight, bias, epsilon)),
            {"x": draw(2, 2, 3, 4), "weight": draw(4), "bias": draw(4)},
            {"epsilon": epsilon, "groups": groups},
            extra=lambda x, **_: statistics_of(
                channels_first(x).reshape(2, groups, -1), 2, epsilon))


def write_pointwise(file):
    for name in ("gelu", "silu", "tanh", "sigmoid", "softplus", "relu"):
        points = torch.tensor((-9.5, -3, -1.25, -0.5, -0.03125, 0.03125, 0.5, 1, 2.75, 9.5),
                              dtype=torch.float64)
        op_case(file, name, lambda x, name=name: getattr(functional, name)(x), {"x": points})
    op_case(file, "leaky_relu", lambda x: functional.leaky_relu(x, 0.2), {"x": draw(8)}, {"a": 0.2})


def write_rows_and_losses(file):
    op_case(file, "softmax", lambda x: functional.softmax(x, -1), {"x": draw(3, 5)})
    op_case(file, "log_softmax", lambda x: functional.log_softmax(x, -1), {"x": draw(3, 5)})
    # Class -1 is left out of the mean and gets no gradient.
    op_case(file, "cross_entropy",
            lambda x, classes: functional.cross_entropy(x, classes, ignore_index=-1),
            {"x": draw(4, 5) * 4}, constants={"classes": torch.tensor((2, 0, -1, 4))},
            extra=lambda x: {"sums": torch.logsumexp(x, -1)})
    target = torch.tensor((0, 1, 0.25, 1, 0, 0.5), dtype=torch.float64)
    wide = torch.tensor((-40, 40, 0.5, -3, 3, 0), dtype=torch.float64)
    op_case(file, "bce_with_logits",
            lambda x, t: functional.binary_cross_entropy_with_logits(x, t), {"x": wide},
            constants={"t": target})
    op_case(file, "mse", lambda x, t: functional.mse_loss(x, t), {"x": draw(2, 3)},
            constants={"t": draw(2, 3)})


def write_pools_and_rows(file):
    for name, function in (("max_pool2d", functional.max_pool2d),
                           ("avg_pool2d", functional.avg_pool2d)):
        for settings in ({"kernel": 2, "stride": 2, "padding": 0},
                         {"kernel": 3, "stride": 2, "padding": 1}):
            op_case(file, name,
                    lambda x, f=function, s=settings: channels_last(
                        f(channels_first(x), s["kernel"], s["stride"], s["padding"])),
                    {"x": draw_distinct(1, 6, 5, 2)}, settings)
    op_case(file, "embedding", lambda weight, index: functional.embedding(index, weight),
            {"weight": draw(5, 3)}, constants={"index": torch.tensor(((1, 4, 1), (0, 1, 4)))})


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    traces = CaseFile(folder, "torch_traces.txt", """
Loss scales and optimizers, step by step, in fp32. Every list has one row for each step.
scaler and training: found says which steps were given a gradient that is not finite; scale and
good (clean steps since the last change) are those after update; parameters are those after each
step. clip is a bound on the norm of the true gradient; PyTorch adds 1e-6 to the norm before it
divides, which shows in the seventh digit. Other kinds name an optimizer.""")
    write_scalers(traces)
    write_two_layers(traces)
    write_optimizers(traces)
    traces.write()
    ops = CaseFile(folder, "torch_ops.txt", """
Operations and their gradients, computed in float64: inputs, result y, incoming gradient dy, and dX
for each input X. Images are [N,H,W,C], weights of convolutions [O,KH,KW,C/groups], of linear
[out,in], attention's q k v [B,T,H,D].""")
    for write in (write_products, write_attention, write_norms, write_pointwise,
                  write_rows_and_losses, write_pools_and_rows):
        write(ops)
    ops.write()


if __name__ == "__main__":
    main()
