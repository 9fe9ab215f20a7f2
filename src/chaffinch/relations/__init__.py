"""Relation extraction: which tuples of mentions are related, and which sentence states it."""

from chaffinch.relations.candidates import Candidate
from chaffinch.relations.config import Extraction
from chaffinch.relations.documents import DocumentExtractor, Finding, train_documents
from chaffinch.relations.entities.extractor import Extractor, Reason
from chaffinch.relations.entities.train import train
from chaffinch.relations.evaluate.report import RelationReport, Summary
from chaffinch.relations.joint.extractor import JointExtractor
from chaffinch.relations.joint.train import train_joint
from chaffinch.relations.schema import Schema
from chaffinch.relations.storage import AnyExtractor, save

__all__ = [
    "AnyExtractor",
    "Candidate",
    "DocumentExtractor",
    "Extraction",
    "Extractor",
    "Finding",
    "JointExtractor",
    "Reason",
    "RelationReport",
    "Schema",
    "Summary",
    "save",
    "train",
    "train_documents",
    "train_joint",
]
