"""From rows to vectors whose distances mean something: scaling, categories, texts, pictures, taming."""

from neighboragg._public import publish as _publish
from neighboragg.features._columns import as_strings, column_kind, is_texts, read_columns
from neighboragg.features._embedded import EmbeddedFeatures
from neighboragg.features._images import ImageFeatures
from neighboragg.features._tabular import RowVectors, TabularFeatures
from neighboragg.features._taming import TamedScores
from neighboragg.features._texts import TextVectors
from neighboragg.features._vectorizer import Vectorizer

__all__ = [
    "EmbeddedFeatures",
    "ImageFeatures",
    "RowVectors",
    "TabularFeatures",
    "TamedScores",
    "TextVectors",
    "Vectorizer",
    "as_strings",
    "column_kind",
    "is_texts",
    "read_columns",
]

_publish(globals())
