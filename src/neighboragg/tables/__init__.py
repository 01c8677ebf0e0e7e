"""Tables: files and folders of pictures to frames and back, the text of labels, and what each column is used for."""

from neighboragg._public import publish as _publish
from neighboragg.tables._folder import FolderTable
from neighboragg.tables._formulas import escape_formula, unescape_formula
from neighboragg.tables._labels import check_class_labels, class_order, label_notes
from neighboragg.tables._leaks import leaking_columns
from neighboragg.tables._matrix import to_matrix
from neighboragg.tables._reading import format_of, read_table
from neighboragg.tables._roles import (
    ColumnRole,
    check_usable,
    column_roles,
    describe_roles,
    prepared_frame,
)
from neighboragg.tables._table import Table
from neighboragg.tables._writing import check_outputs, staged_files

__all__ = [
    "ColumnRole",
    "FolderTable",
    "Table",
    "check_class_labels",
    "check_outputs",
    "check_usable",
    "class_order",
    "column_roles",
    "describe_roles",
    "escape_formula",
    "format_of",
    "label_notes",
    "leaking_columns",
    "prepared_frame",
    "read_table",
    "staged_files",
    "to_matrix",
    "unescape_formula",
]

_publish(globals())
