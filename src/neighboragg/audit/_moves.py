"""Pictures moved to the folder of their label: all or none, and nothing is ever replaced."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from neighboragg.exceptions import InvalidInputError
from neighboragg.tables import FolderTable

__all__ = ["move_pictures", "planned_moves"]

Move = tuple[Path, Path]


def planned_moves(data: FolderTable, labels: Mapping[int, str]) -> list[Move]:
    """From where to where each picture moves; raises if one cannot.

    Parameters
    ----------
    data : FolderTable
    labels : mapping of int to str
        New label of each row that moves.

    Returns
    -------
    moves : list of (Path, Path)
        What lies deeper in a class folder lies as deep in the other.
    """
    moves = []
    for row, label in labels.items():
        unfit = label.startswith(".") or any(sign in label for sign in "/\\\0")
        if unfit or (data.folder / label).is_symlink():
            raise InvalidInputError(
                f"The label {label!r} of {data.pictures[row]} cannot be the name of a folder, so nothing was moved.\n"
                "Hint: relabel it in the review, or move the pictures by the list."
            )
        _, _, below = data.pictures[row].partition("/")
        moves.append((data.folder / data.pictures[row], data.folder / label / below))
    targets = [target for _, target in moves]
    for source, target in moves:
        if target.exists() or target.is_symlink() or targets.count(target) > 1:
            raise InvalidInputError(
                f"{source} cannot move to {target}, where there is or would be another picture; nothing was moved.\n"
                "Hint: rename one of them and audit the folder again, or move the pictures by the list."
            )
    return moves


def move_pictures(moves: Sequence[Move]) -> None:
    """Move pictures; if one cannot be moved, those that were are moved back.

    Parameters
    ----------
    moves : sequence of (Path, Path)
    """
    done: list[Move] = []
    try:
        for source, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            done.append((source, target))
    except OSError as error:
        for source, target in reversed(done):
            target.rename(source)
        raise InvalidInputError(
            f"{source} cannot be moved to {target}: {error.strerror or error}. All pictures are where they were."
        ) from error
