"""A source with one label column, as tests of formats look at it."""

from neighboragg import Table
from neighboragg._data.open import open_source


class Read:
    """The labels, the other columns, and a copy with other labels."""

    def __init__(self, path, label=None, **options):
        self.source = open_source(Table(path, **options) if options else path)
        self.label = self.source.own_label or label
        self.labels = self.source.texts(self.label)
        self.notes = self.source.notes
        self.place_of = self.source.place_of

    @property
    def frame(self):
        names = [name for name in self.source.columns if name != self.source.named(self.label)]
        return self.source.read(0, len(self.source), names)

    def relabeled(self, texts, dropped=()):
        [(_, raw)] = self.source.relabeled(self.label, texts, dropped)
        return raw
