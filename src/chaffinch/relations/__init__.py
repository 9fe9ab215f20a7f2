"""Relations between entities: which tuples of mentions stand in a relation, and in which sentence that is said."""

from chaffinch.relations.candidates import Candidate
from chaffinch.relations.documents import DocumentExtractor, Finding, train_documents
from chaffinch.relations.extract import Extractor, Reason, train
from chaffinch.relations.joint import JointExtractor, train_joint
from chaffinch.relations.keeping import load, save
from chaffinch.relations.report import Report
from chaffinch.relations.schema import Schema
from chaffinch.relations.settings import Extraction

__all__ = [
    "Candidate",
    "DocumentExtractor",
    "Extraction",
    "Extractor",
    "Finding",
    "JointExtractor",
    "Reason",
    "Report",
    "Schema",
    "load",
    "save",
    "train",
    "train_documents",
    "train_joint",
]
