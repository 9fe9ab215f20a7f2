"""Documents to and from tables in memory: pandas data frames and Hugging Face datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chaffinch.errors import ConfigError, DataError, MissingExtraError
from chaffinch.text.corpus import Corpus
from chaffinch.text.document import Document
from chaffinch.text.formats.base import ReadOptions
from chaffinch.text.formats.hf import document_of
from chaffinch.text.tags import encode


def from_pandas(
    frame: Any,
    *,
    text: str = "text",
    id: str | None = None,  # noqa: A002  (the field's name)
    patient: str | None = None,
) -> Corpus:
    """Return a corpus with a document per row, other columns as meta; ConfigError for bad names of columns.

    `text`, `id` and `patient` are names of columns. The iteration raises DataError at a row without a text.

    Without `id`, a document's id is its row's label in the index.
    """
    columns = list(frame.columns)
    for option, column in (("text", text), ("id", id), ("patient", patient)):
        if column is not None and columns.count(column) != 1:
            raise ConfigError(f"{option} names no column of the frame, or several; it has {len(columns)} columns")
    others = [column for column in columns if column not in (text, id, patient)]

    def walk() -> Iterator[Document]:
        """Yield a document for each row; raise DataError if its text is not a string."""
        for label, row in zip(frame.index.tolist(), frame.to_dict("records"), strict=True):
            value = row[text]
            if not isinstance(value, str):
                raise DataError("a row of the frame has no text; drop it, or fill it with an empty text")
            yield Document.make(
                value,
                id=str(label if id is None else row[id]),
                group=None if patient is None or _is_missing(row[patient]) else str(row[patient]),
                meta={str(column): row[column] for column in others},
            )

    return Corpus(walk, "pandas")


def to_pandas(documents: Iterable[Document], *, layer: str | None = None, spans: bool = False) -> Any:
    """Return a frame with a row per document, with a list of spans if `layer`; or per span; MissingExtraError.

    Documents have the columns id, text and patient, meta fields, and, with a layer, "spans": a list of dictionaries.
    """
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "pandas") from None
    if spans:
        rows = [
            {"id": doc.id, **_span_row(span), "text": doc.text[span.start : span.end]}
            for doc in documents
            for span in doc.layer(layer)
        ]
        return pandas.DataFrame(rows, columns=["id", "start", "end", "label", "score", "text"])
    rows = []
    for doc in documents:
        row = {"id": doc.id, "text": doc.text, "patient": doc.group, **doc.meta}
        rows.append(row | ({} if layer is None else {"spans": [_span_row(span) for span in doc.layer(layer)]}))
    return pandas.DataFrame(rows)


def _span_row(span: Any) -> dict[str, Any]:
    """Return a span as a dictionary: start, end, label, score."""
    return {"start": span.start, "end": span.end, "label": span.label, "score": float(span.score)}


def _is_missing(value: Any) -> bool:
    """Tell whether a cell is empty: None, or NaN."""
    return value is None or value != value  # noqa: PLR0124  (only NaN differs from itself)


def from_datasets(dataset: Any, *, layer: str = "gold", text: str = "text") -> Corpus:
    """Return a corpus of a Hugging Face dataset's rows (tokens and tags, or text); ConfigError without either.

    Tags that are numbers get their names from the dataset's features.
    """
    if "tokens" not in dataset.column_names and text not in dataset.column_names:
        raise ConfigError("the dataset has neither a column tokens nor the text column; name that: text=…")
    options = ReadOptions(layer=layer, tag_names=_tag_names(dataset.features))

    def walk() -> Iterator[Document]:
        """Yield a document for each row: of its tokens and tags if it has tokens, else of its text; or DataError."""
        for number, row in enumerate(dataset):
            if "tokens" in row:
                yield document_of({key: value for key, value in row.items() if value is not None}, str(number), options)
            else:
                name = str(row.get("id", number))
                meta = {key: value for key, value in row.items() if key not in ("id", text)}
                yield Document.make(row[text], id=name, meta=meta)

    return Corpus(walk, "datasets")


def _tag_names(features: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a dataset's integer tags, in order; () if its tags are text or it has none."""
    for key in ("ner_tags", "tags", "labels"):
        names = getattr(getattr(features.get(key), "feature", None), "names", None)
        if names is not None:
            return tuple(names)
    return ()


def to_datasets(documents: Iterable[Document], *, layer: str | None = None) -> Any:
    """Return a Hugging Face dataset of id, tokens, ner_tags (named numbers); MissingExtraError if not installed."""
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "datasets") from None
    rows = [
        {"id": doc.id, "tokens": doc.words(), "ner_tags": encode(doc.layer(layer), doc.tokens)} for doc in documents
    ]
    labels = sorted({tag[2:] for row in rows for tag in row["ner_tags"] if tag != "O"})
    names = ["O", *(f"{letter}-{label}" for label in labels for letter in "BI")]
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "tokens": datasets.Sequence(datasets.Value("string")),
            "ner_tags": datasets.Sequence(datasets.ClassLabel(names=names)),
        }
    )
    return datasets.Dataset.from_list(rows, features=features)
