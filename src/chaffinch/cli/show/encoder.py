"""What `chaffinch show` tells of an encoder: how large a network it is."""

from __future__ import annotations

import json
from typing import Any

from chaffinch.bundle import Bundle
from chaffinch.cli.show import View, plain
from chaffinch.errors import ModelError

_PLAN = {"model_type": "type", "num_hidden_layers": "layers", "hidden_size": "width", "vocab_size": "word pieces"}


def view(bundle: Bundle, name: str) -> View:
    """The network's type, layers, width, word pieces and parameters."""
    try:
        plan: dict[str, Any] = json.loads(bundle.strings["plan"][0])
    except (KeyError, IndexError, ValueError):
        raise ModelError("its network cannot be read; copy the file again, or train it anew", path=name) from None
    network = {what: plan[key] for key, what in _PLAN.items() if key in plan}
    weights = [own for key, own in bundle.arrays.items() if key.startswith(("encoder.", "head."))]
    network["parameters"] = sum(own.size for own in weights)
    return View({"network": network}, (), tuple, facts={"network": plain(network)}, by_part=True)
