"""A pretrained encoder fine-tuned as a token classifier: on spans, or on soft labels by KL divergence.

The tags of a token are read from its first word piece. Learning and reading use one thread unless told otherwise.

N tokens of all documents, L tags, H numbers that the encoder gives a piece.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import ModelError
from chaffinch.features import embed
from chaffinch.features.embed import BATCH, Pretrained, padded
from chaffinch.features.embed.windows import by_length
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

SURE_OUTSIDE = -30.0  # the log-probability of other tags where a document has no word piece at all
POOL = 32  # batches among which windows are sorted by length
CLIP = 1.0  # the longest a gradient may be


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Net:
    """The network: an encoder and a linear layer over its last states, with shape bits beside them."""

    encoder: Pretrained
    head: Any  # torch: H + BITS to L
    config: Encoder

    @classmethod
    def begun(cls, encoder: Pretrained, config: Encoder, L: int) -> Net:
        """An encoder with a layer that knows nothing yet."""
        import torch

        head = torch.nn.Linear(int(encoder.network.config.hidden_size) + BITS, L)
        torch.nn.init.normal_(head.weight, std=0.02)
        torch.nn.init.zeros_(head.bias)
        return cls(encoder, head, config)

    def logs(self, jobs: Sequence[Job], bits: NDArray[np.float32]) -> Any:
        """(tokens of those windows, L) log-probabilities of tags, as a tensor; `bits` are those of all tokens."""
        import torch

        ids, mask = self.encoder.rows([job.pieces for job in jobs])
        states = self.encoder.network(ids, attention_mask=mask).last_hidden_state
        rows = np.repeat(np.arange(len(jobs)), [len(job.firsts) for job in jobs])
        firsts = states[torch.from_numpy(rows), torch.from_numpy(np.concatenate([job.firsts for job in jobs]))]
        beside = bits[np.concatenate([job.tokens for job in jobs])] * self.config.shape
        return torch.log_softmax(self.head(torch.cat([firsts, torch.from_numpy(beside)], dim=1)), dim=1)

    def scores(self, docs: Sequence[Document]) -> Floats:
        """(N, L) log-probabilities of tags, token by token."""
        import torch

        jobs, bits = jobs_of(docs, self.encoder, self.config.length, self.config.length // 4), shapes(docs)
        out = np.full((len(bits), self.head.out_features), SURE_OUTSIDE)
        out[:, 0] = 0.0
        self.encoder.network.eval()
        with embed.on_threads(self.config.threads), torch.inference_mode():
            for batch in by_length([padded(len(job.pieces)) for job in jobs], BATCH):
                some = [jobs[number] for number in batch]
                out[np.concatenate([job.tokens for job in some])] = self.logs(some, bits).double().numpy()
        return out

    def states(self) -> dict[str, Any]:
        """All its tensors by name."""
        named = {f"encoder.{name}": own for name, own in self.encoder.network.state_dict().items()}
        return named | {f"head.{name}": own for name, own in self.head.state_dict().items()}

    def take(self, states: dict[str, Any]) -> None:
        """Sets all its tensors."""
        import torch

        with torch.no_grad():
            for name, own in self.states().items():
                own.copy_(states[name])

    def state(self) -> State:
        """Return its weights in half precision, which loses nothing after `fit`; its tokeniser and its plan."""
        out = {name: own.detach().numpy() for name, own in self.states().items()}
        out = {name: own.astype(np.float16) if own.dtype == np.float32 else own for name, own in out.items()}
        out["specials"] = np.array([*self.encoder.specials, self.encoder.longest], np.int64)
        plan = self.encoder.network.config.to_json_string(use_diff=False)
        return State(out, {"tokenizer": (self.encoder.tokenizer.to_str(),), "plan": (plan,)})


def model_of(state: State) -> Model:
    """Return the model of a file; ModelError if its pieces do not fit together."""
    try:
        config = msgspec.convert(state.config, Encoder)
        net = Net.begun(_rebuilt(state), config, len(Labels(state.labels, "IOB2").tags))
        net.take({name: _tensor(state.arrays[name]) for name in net.states()})
        calibration = Calibration(*state.arrays["calibration"].tolist())
        return Model(config, state.labels, net, calibration, state.floor)
    except (KeyError, TypeError, IndexError, ValueError, RuntimeError, json.JSONDecodeError, msgspec.MsgspecError):
        raise ModelError("its settings cannot be read; it was made by another version, train it anew") from None


def fit(data: TrainingSet, config: Encoder, *, start: Model | None = None, watcher: Watcher | None = None) -> Model:
    """Learn a model.

    Dev documents choose the epoch and calibrate; without them the last one is taken. `start` is a model to go on
    from, at half the rate. An interrupt ends learning; what was learnt till then is kept.
    """
    torch = embed.library()
    names = start.names if start else ()
    task, watcher = Task.of(data.documents, layer=data.layer, soft=data.soft, names=names), watcher or Watcher()
    watcher.scores |= task.fitted.told()
    encoder = embed.pretrained(config.folder) if start is None else _copied(start)
    with torch.random.fork_rng(devices=[]), embed.on_threads(config.threads):
        torch.manual_seed(config.seed)
        net = Net.begun(encoder, config, len(Labels(task.names, "IOB2").tags))
        if start is not None:
            _continue_head(net, start)
        model = Model(config, task.names, net)
        judge = Judge.of(data.dev, data.layer)
        _learn(model, net, task, judge, watcher, rate=config.rate if start is None else config.rate / 2)
    net.take({name: own.half().float() if own.is_floating_point() else own for name, own in net.states().items()})
    return _calibrated(model, data.dev, data.layer)


def divergence(targets: Targets, jobs: Sequence[Job], logs: Any) -> Any:
    """The mean KL(known || read) of those windows' tokens, up to a constant; of lists, -log of what is possible."""
    import torch

    tokens = np.concatenate([job.tokens for job in jobs])
    rows, known = torch.from_numpy(targets.rows[tokens]), torch.from_numpy(targets.known[tokens])
    possible = torch.logsumexp(torch.where(rows > 0, logs, -torch.inf), dim=1)
    crossed = torch.where(torch.from_numpy(targets.free[tokens]), possible, (rows * logs).sum(dim=1))
    return -torch.where(known, crossed, 0.0).sum() / max(int(known.sum()), 1)


def _learn(model: Model, net: Net, task: Task, judge: Judge | None, watcher: Watcher, *, rate: float) -> None:
    """Leaves the model's network as it is after the best epoch, or the last."""
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
            found = None if judge is None else judge(model)
            if found is not None and (not tried or found > tried[0][0]):
                tried[:] = [(found, epoch, {name: own.clone() for name, own in net.states().items()})]
            if watcher.tell is not None:
                watcher.tell(Progress("encoder", epoch + 1, config.epochs, total / max(len(jobs), 1), found))
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
    """AdamW, and a rate that rises and falls in straight lines; word vectors learn only if asked."""
    import torch

    config, inner = net.config, list(net.encoder.network.named_parameters())
    for name, own in inner:
        own.requires_grad_("pooler" not in name and (config.words or "embeddings" not in name))
    free = [own for _, own in inner if own.requires_grad]
    groups = [
        {"params": [own for own in free if own.ndim > 1], "lr": rate, "weight_decay": config.decay},
        {"params": [own for own in free if own.ndim == 1], "lr": rate, "weight_decay": 0.0},
        {"params": list(net.head.parameters()), "lr": rate * config.head, "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups)
    rise = max(round(config.warmup * steps), 1)

    def share(step: int) -> float:
        return min((step + 1) / rise, max(steps - step, 0) / max(steps - rise, 1), 1.0)

    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, share)


def _clip(net: Net) -> None:
    import torch

    torch.nn.utils.clip_grad_norm_([*net.encoder.network.parameters(), *net.head.parameters()], CLIP)


def _batches(jobs: Sequence[Job], size: int, rng: np.random.Generator) -> Iterator[list[Job]]:
    """The windows in random order; neighbours in a batch are of like length."""
    order = rng.permutation(len(jobs)).tolist()
    batches = []
    for at in range(0, len(order), size * POOL):
        pool = sorted(order[at : at + size * POOL], key=lambda own: len(jobs[own].pieces))
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    for number in rng.permutation(len(batches)).tolist():
        yield [jobs[own] for own in batches[number]]


def _copied(start: Model) -> Pretrained:
    """Return a copy of the encoder of a model."""
    state = start.net.state()
    encoder, weights = _rebuilt(state), state.child("encoder").arrays
    encoder.network.load_state_dict({name: _tensor(weights[name]) for name in encoder.network.state_dict()})
    return encoder


def _rebuilt(state: State) -> Pretrained:
    """Return the encoder that a state describes, before its weights are set."""
    *specials, longest = state.arrays["specials"].tolist()
    return embed.rebuilt(state.strings["plan"][0], state.strings["tokenizer"][0], tuple(specials), longest)


def _continue_head(net: Net, start: Model) -> None:
    """Gives the layer the rows of tags that the model knows; they come first."""
    import torch

    weights = start.net.state().child("head").arrays
    with torch.no_grad():
        for name, own in net.head.state_dict().items():
            known = _tensor(weights[name])
            own[: len(known)] = known


def _calibrated(model: Model, dev: Sequence[Document], layer: str | None) -> Model:
    """The model with a calibration on dev documents, if there are any."""
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
    import torch

    return torch.from_numpy(array.astype(np.float32) if array.dtype == np.float16 else np.array(array))
