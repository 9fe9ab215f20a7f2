"""The systems of the HMM-DP benchmark, the choices whose effects it measures, and the published figures."""

from __future__ import annotations

from typing import Any

from benchmarks.hmmdp.worker import System

DEFAULT = System("HMMDP", posteriors=True)
PUBLISHED = System("HMMDP", "published", posteriors=True)
# The updated system with our tags, sentences and classes of rare words: what doubling tags into B and I does.
DOUBLED = PUBLISHED.but(tags="IOB2", sentences="given", word_classes="seven")
# The same one at a time.
FIDELITY: dict[str, dict[str, Any]] = {
    "with B and I": {"tags": "IOB2"},
    "sentences as given": {"sentences": "given"},
    "seven classes of rare words": {"word_classes": "seven"},
}
SUBMITTED = System("HMMDP", "submitted", {"rules": None}, labels="categories")  # rules are learnt of training notes
# Chosen on the held-out training notes: more sub-tags than the discriminative stage needs.
GENERATIVE = {"discriminative": False, "outside": 50, "inside": 8, "start": "context", "passes": 40}
FACTORED = System("HMMDP", fields={**GENERATIVE, "emissions": "factored"})
BACKOFF = System("HMMDP", fields={**GENERATIVE, "emissions": "backoff"})
CASCADE = System("Cascade", posteriors=True)
CRF = System("CRF")
SYSTEMS = {"HMM-DP, defaults": DEFAULT, "HMM-DP, generative": DOUBLED, "cascade": CASCADE, "CRF": CRF}

# What the effects are measured on: categorical words, small enough to be trained many times.
SMALL = System(
    "HMMDP",
    fields={"discriminative": False, "emissions": "categorical", "outside": 20, "inside": 4, "start": "context"},
)
DECODERS = "joint", "tag-viterbi", "kl", "kl-pooled", "kl+rerank", "posterior"
# What is changed of the small model, and what of the model it is compared with.
EFFECTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "R2, factored q": ({"states": "factored"}, {}),
    "R1 (sticks and atoms), chain": ({"form": "atoms"}, {}),
    "R1 (sticks and atoms), factored q": ({"form": "atoms", "states": "factored"}, {}),
    "50 sub-tags of O": ({"outside": 50}, {}),
    "100 sub-tags of O": ({"outside": 100}, {}),
    "alpha_E 0.05": ({"alpha_emission": 0.05}, {}),
    "alpha_E 0.2": ({"alpha_emission": 0.2}, {}),
    "alpha_E 1": ({"alpha_emission": 1.0}, {}),
    "split initialisation": ({"start": "split"}, {}),
    "random initialisation": ({"start": "random"}, {}),
    "weights W2": ({"sticks": "W2"}, {}),
    "weights W3": ({"sticks": "W3"}, {}),
    "concentrations learnt": ({"learn_priors": True}, {}),
}
KNOWN: tuple[dict[str, Any], ...] = (
    {"system": "submitted, as published, i2b2 2014", "label": "all categories", "F1": 0.910},
    {"system": "submitted, as published, i2b2 2014", "label": "ID", "R": 0.874},
    {"system": "submitted, as published, i2b2 2014", "label": "ID, types by rules", "R": 0.623},
)
