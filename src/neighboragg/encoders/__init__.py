"""Texts and pictures to vectors: by an encoder of the user's or a small built-in descriptor, cached by content."""

from neighboragg._public import publish as _publish
from neighboragg.encoders._encode import Encoded, encode_images, encode_texts, list_problems
from neighboragg.encoders._encoder import Encoder, find_encoder
from neighboragg.encoders._picture_descriptor import describe_pictures
from neighboragg.encoders._pictures import PICTURE_TYPES, open_picture
from neighboragg.encoders._vector_cache import VectorCache

__all__ = [
    "PICTURE_TYPES",
    "Encoded",
    "Encoder",
    "VectorCache",
    "describe_pictures",
    "encode_images",
    "encode_texts",
    "find_encoder",
    "list_problems",
    "open_picture",
]

_publish(globals())
