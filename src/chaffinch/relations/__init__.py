"""Relations between entities: which tuples of mentions stand in a relation, and in which sentence that is said."""

from chaffinch.relations.candidates import Candidate
from chaffinch.relations.documents import DocumentExtractor, Finding, train_documents
from chaffinch.relations.extract import Extractor, Reason
from chaffinch.relations.joint import JointExtractor
from chaffinch.relations.joint_learning import train_joint
from chaffinch.relations.keeping import AnyExtractor, load, save
from chaffinch.relations.learning import train
from chaffinch.relations.report import Report, Summary
from chaffinch.relations.schema import Schema
from chaffinch.relations.settings import Extraction

__all__ = [
    "AnyExtractor",
    "Candidate",
    "DocumentExtractor",
    "Extraction",
    "Extractor",
    "Finding",
    "JointExtractor",
    "Reason",
    "Report",
    "Schema",
    "Summary",
    "load",
    "save",
    "train",
    "train_documents",
    "train_joint",
]
