"""From rows to vectors whose distances mean something."""

from neighboragg._core.packages import publish as _publish
from neighboragg.features._column_memory import ColumnMemory as ColumnMemory
from neighboragg.features._columns import as_strings as as_strings
from neighboragg.features._columns import is_texts as is_texts
from neighboragg.features._encode import Encoded as Encoded
from neighboragg.features._encode import ImageFeatures
from neighboragg.features._encode import encode_images as encode_images
from neighboragg.features._encode import encode_texts as encode_texts
from neighboragg.features._encode import list_problems as list_problems
from neighboragg.features._images import open_image as open_image
from neighboragg.features._leaks import to_matrix as to_matrix
from neighboragg.features._roles import ColumnRole as ColumnRole
from neighboragg.features._roles import check_usable as check_usable
from neighboragg.features._roles import column_roles as column_roles
from neighboragg.features._roles import describe_roles as describe_roles
from neighboragg.features._roles import prepared_frame as prepared_frame
from neighboragg.features._tabular import TabularFeatures
from neighboragg.features._vectorizer import Vectorizer as Vectorizer

__all__ = ["ImageFeatures", "TabularFeatures"]

_publish(globals())
