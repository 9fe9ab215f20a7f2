"""A pretrained encoder fine-tuned as a token classifier: on spans, or on soft labels by KL divergence.

The tags of a token are read from its first word piece. Training and reading use `threads` threads, by default one.

N tokens of all documents, L tags, H numbers that the encoder gives a piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import ModelError
from chaffinch.features import embed
from chaffinch.features.embed import BATCH, Pretrained, window_length
from chaffinch.features.embed.windows import batch_by_length
from chaffinch.kernels import Floats
from chaffinch.models.core.confidence import Calibration
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.methods import TrainingSet
from chaffinch.models.core.tasks import Task
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.encoder.inputs import BITS, Job, Targets, jobs_of, shapes
from chaffinch.models.encoder.model import Judge, Model, best
from chaffinch.models.latent import span_probabilities as latent_spans
from chaffinch.text import Document

SURE_OUTSIDE = -30.0  # the log-probability of tags other than O for tokens in no window
POOL = 32  # batches whose windows are sorted by length together: more saves padding, less is closer to random order
LAYER = re.compile(r"\blayers?\.(\d+)\.")  # a parameter's layer in its name, in all encoders of transformers
CLIP = 1.0  # gradients are scaled down to this norm; lower is more stable and slower


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Net:
    """The network: an encoder and a linear layer over its last states and the shape bits."""

    encoder: Pretrained
    head: Any  # torch: H + BITS to L
    config: Encoder

    @classmethod
    def with_new_head(cls, encoder: Pretrained, config: Encoder, L: int) -> Net:
        """Return a network of the encoder and a newly initialised linear layer for L tags."""
        import torch

        head = torch.nn.Linear(int(encoder.network.config.hidden_size) + BITS, L)
        torch.nn.init.normal_(head.weight, std=0.02)
        torch.nn.init.zeros_(head.bias)
        return cls(encoder, head, config)

    def logs(self, jobs: Sequence[Job], bits: NDArray[np.float32]) -> Any:
        """Return (tokens that the windows decide, L) log-probabilities of tags, a tensor; `bits` are of all tokens."""
        import torch

        ids, mask = self.encoder.rows([job.pieces for job in jobs])
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.bfloat16):
            states = self.encoder.network(ids, attention_mask=mask).last_hidden_state.float()
        rows = np.repeat(np.arange(len(jobs)), [len(job.firsts) for job in jobs])
        firsts = states[torch.from_numpy(rows), torch.from_numpy(np.concatenate([job.firsts for job in jobs]))]
        beside = bits[np.concatenate([job.tokens for job in jobs])] * self.config.shape
        return torch.log_softmax(self.head(torch.cat([firsts, torch.from_numpy(beside)], dim=1)), dim=1)

    def scores(self, docs: Sequence[Document]) -> Floats:
        """Return (N, L) log-probabilities of tags for all documents' tokens; tokens in no window are surely O."""
        import torch

        jobs, bits = jobs_of(docs, self.encoder, self.config.length, self.config.length // 4), shapes(docs)
        out = np.full((len(bits), self.head.out_features), SURE_OUTSIDE)
        out[:, 0] = 0.0
        self.encoder.network.eval()
        with embed.on_threads(self.config.threads), torch.inference_mode():
            for batch in batch_by_length([window_length(len(job.pieces)) for job in jobs], BATCH):
                some = [jobs[number] for number in batch]
                out[np.concatenate([job.tokens for job in some])] = self.logs(some, bits).double().numpy()
        return out

    def states(self) -> dict[str, Any]:
        """Return {name: tensor} of encoder and head."""
        named = {f"encoder.{name}": tensor for name, tensor in self.encoder.network.state_dict().items()}
        return named | {f"head.{name}": tensor for name, tensor in self.head.state_dict().items()}

    def take(self, states: dict[str, Any]) -> None:
        """Copy the values of all tensors from `states`, by name, in place."""
        import torch

        with torch.no_grad():
            for name, tensor in self.states().items():
                tensor.copy_(states[name])

    def state(self) -> State:
        """Return the weights in half precision, which is lossless after `fit`; the tokeniser and the architecture."""
        out = {name: tensor.detach().numpy() for name, tensor in self.states().items()}
        out = {name: array.astype(np.float16) if array.dtype == np.float32 else array for name, array in out.items()}
        out["specials"] = np.array([*self.encoder.specials, self.encoder.longest], np.int64)
        plan = self.encoder.network.config.to_json_string(use_diff=False)
        return State(out, {"tokenizer": (self.encoder.tokenizer.to_str(),), "plan": (plan,)})


def model_of(state: State) -> Model:
    """Return the encoder model of a file's state; ModelError if it cannot be read or does not fit together."""
    try:
        config = msgspec.convert(state.config, Encoder)
        net = Net.with_new_head(_rebuild_encoder(state), config, len(Labels(state.labels, "IOB2").tags))
        net.take({name: _tensor(state.arrays[name]) for name in net.states()})
        calibration = Calibration.of(state.arrays["calibration"])
        return Model(config, state.labels, net, calibration, state.floor)
    except (KeyError, TypeError, IndexError, ValueError, RuntimeError, json.JSONDecodeError, msgspec.MsgspecError):
        raise ModelError("its settings cannot be read; it was made by another version, retrain it") from None


def fit(data: TrainingSet, config: Encoder, *, start: Model | None = None, watcher: Watcher | None = None) -> Model:
    """Fine-tune an encoder on spans or soft labels; dev documents choose the epoch and calibrate it.

    Dev documents choose the epoch and calibrate; without them the last epoch is taken. `start` is a model to continue
    from, at half the rate. An interrupt ends training; the weights learnt so far are kept.
    """
    torch = embed.library()
    names = start.names if start else ()
    task, watcher = Task.of(data.documents, layer=data.layer, soft=data.soft, names=names), watcher or Watcher()
    watcher.scores |= task.fitted.summary()
    encoder = embed.load_encoder(config.folder) if start is None else _copy_encoder(start)
    with torch.random.fork_rng(devices=[]), embed.on_threads(config.threads):
        torch.manual_seed(config.seed)
        net = Net.with_new_head(encoder, config, len(Labels(task.names, "IOB2").tags))
        if start is not None:
            _continue_head(net, start)
        model = Model(config, task.names, net)
        judge = Judge.of(data.dev, data.layer)
        _learn(model, net, task, judge, watcher, rate=config.rate if start is None else config.rate / 2)
    tensors = net.states().items()
    net.take({name: tensor.half().float() if tensor.is_floating_point() else tensor for name, tensor in tensors})
    return _calibrate(model, data.dev, data.layer)


def divergence(targets: Targets, jobs: Sequence[Job], logs: Any) -> Any:
    """Return, as a tensor, the mean KL(target || prediction) of the windows' known tokens, up to a constant.

    A token whose row lists possible tags contributes minus the log of their total probability.
    """
    import torch

    tokens = np.concatenate([job.tokens for job in jobs])
    rows, known = torch.from_numpy(targets.rows[tokens]), torch.from_numpy(targets.known[tokens])
    possible = torch.logsumexp(torch.where(rows > 0, logs, -torch.inf), dim=1)
    crossed = torch.where(torch.from_numpy(targets.free[tokens]), possible, (rows * logs).sum(dim=1))
    return -torch.where(known, crossed, 0.0).sum() / max(int(known.sum()), 1)


def _learn(model: Model, net: Net, task: Task, judge: Judge | None, watcher: Watcher, *, rate: float) -> None:
    """Train the network in place until F1 by `judge` stops rising; keep the best epoch's weights, else the last."""
    config = model.config
    targets, bits = Targets.of(task, model.labels), shapes(task.docs)
    jobs = [job for job in jobs_of(task.docs, net.encoder, config.length, 0) if targets.known[job.tokens].any()]
    steps = -(-len(jobs) // config.batch) * config.epochs
    optimiser, schedule = _optimiser(net, rate, steps)
    rng, tried = np.random.default_rng(config.seed), list[tuple[float, int, dict[str, Any]]]()
    try:
        for epoch in range(config.epochs):
            net.encoder.network.train()
            total = 0.0
            for some in _batches(jobs, config.batch, rng):
                loss = divergence(targets, some, net.logs(some, bits))
                optimiser.zero_grad()
                loss.backward()
                _clip(net)
                optimiser.step()
                schedule.step()
                total += loss.item() * len(some)
            f1 = None if judge is None else judge(model)
            if f1 is not None and (not tried or f1 > tried[0][0]):
                tried[:] = [(f1, epoch, {name: tensor.clone() for name, tensor in net.states().items()})]
            if watcher.tell is not None:
                watcher.tell(Progress("encoder", epoch + 1, config.epochs, total / max(len(jobs), 1), f1))
            if tried and epoch - tried[0][1] >= config.patience:
                break
    except KeyboardInterrupt:
        watcher.interrupted = True
    finally:
        net.encoder.network.eval()
    if tried:
        net.take(tried[0][2])
        watcher.scores["F1 on dev"] = tried[0][0]


def _optimiser(net: Net, rate: float, steps: int) -> tuple[Any, Any]:
    """Return AdamW and its schedule, a linear rise and fall; freezes what is not trained."""
    import torch

    config, inner = net.config, list(net.encoder.network.named_parameters())
    for name, parameter in inner:
        parameter.requires_grad_(_is_trained(name, config))
    free = [parameter for _, parameter in inner if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in free if parameter.ndim > 1], "lr": rate, "weight_decay": config.decay},
        {"params": [parameter for parameter in free if parameter.ndim == 1], "lr": rate, "weight_decay": 0.0},
        {"params": list(net.head.parameters()), "lr": rate * config.head, "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups)
    rise = max(round(config.warmup * steps), 1)

    def share(step: int) -> float:
        """Return the share of the highest learning rate at a step: linear rise, then linear fall to 0."""
        return min((step + 1) / rise, max(steps - step, 0) / max(steps - rise, 1), 1.0)

    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, share)


def _is_trained(name: str, config: Encoder) -> bool:
    """Tell whether a parameter is trained: not the pooler, embeddings unless `words`, nor the lowest `frozen` layers.

    >>> [_is_trained(name, Encoder(frozen=2)) for name in ("encoder.layer.1.output.dense.bias", "encoder.layer.2.a.b")]
    [False, True]
    """
    if "pooler" in name or ("embeddings" in name and not config.words):
        return False
    layer = LAYER.search(name)
    return layer is None or int(layer[1]) >= config.frozen


def _clip(net: Net) -> None:
    """Scale the gradients of the network, in place, down to norm `CLIP` if they exceed it."""
    import torch

    torch.nn.utils.clip_grad_norm_([*net.encoder.network.parameters(), *net.head.parameters()], CLIP)


def _batches(jobs: Sequence[Job], size: int, rng: np.random.Generator) -> Iterator[list[Job]]:
    """Yield the windows in batches of `size`, in random order; those in a batch have similar lengths."""
    order = rng.permutation(len(jobs)).tolist()
    batches = []
    for begin in range(0, len(order), size * POOL):
        pool = sorted(order[begin : begin + size * POOL], key=lambda index: len(jobs[index].pieces))
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    for number in rng.permutation(len(batches)).tolist():
        yield [jobs[index] for index in batches[number]]


def _copy_encoder(start: Model) -> Pretrained:
    """Return a copy of a model's encoder, weights included."""
    state = start.net.state()
    encoder, weights = _rebuild_encoder(state), state.child("encoder").arrays
    encoder.network.load_state_dict({name: _tensor(weights[name]) for name in encoder.network.state_dict()})
    return encoder


def _rebuild_encoder(state: State) -> Pretrained:
    """Return the encoder that a state describes, without its weights; ModelError if special pieces do not fit."""
    *specials, longest = state.arrays["specials"].tolist()
    encoder = embed.build_encoder(state.strings["plan"][0], state.strings["tokenizer"][0], tuple(specials), longest)
    size, reach = encoder.network.config.vocab_size, encoder.network.config.max_position_embeddings
    if not all(0 <= piece < size for piece in specials) or not embed.SPECIALS < longest <= reach:
        raise ModelError("its special pieces do not fit its encoder; copy the file again, or retrain the model")
    return encoder


def _continue_head(net: Net, start: Model) -> None:
    """Copy the earlier model's rows of known tags, in place, to the first rows of the new head."""
    import torch

    weights = start.net.state().child("head").arrays
    with torch.no_grad():
        for name, tensor in net.head.state_dict().items():
            known = _tensor(weights[name])
            tensor[: len(known)] = known


def _calibrate(model: Model, dev: Sequence[Document], layer: str | None) -> Model:
    """Return the model calibrated on dev; unchanged if dev has no spans, has new labels or is not sorted by patient."""
    if not any(doc.layer(layer) for doc in dev):
        return model
    seen, batch = model.batch(dev)
    if not len(batch.emit):
        return model
    task = Task.of(dev, layer=layer, soft=None, names=model.names)
    labels = model.labels
    if task.names != model.names or any(a is not b for a, b in zip(task.docs, dev, strict=True)):
        return model
    gold = labels.tag_of[task.target(labels).gold[seen.places]]
    return replace(model, calibration=latent_spans.calibrate(batch, labels, gold, best(batch)))


def _tensor(array: NDArray[Any]) -> Any:
    """Return an array as a tensor; half precision becomes single precision."""
    import torch

    return torch.from_numpy(array.astype(np.float32) if array.dtype == np.float16 else np.array(array))
