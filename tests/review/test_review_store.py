"""The decision log: nothing lost, nothing overwritten, nothing changed afterward."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from neighboragg._review.store import DecisionConflictError, DecisionStore
from neighboragg.exceptions import FileFormatError, InvalidInputError, InvalidParameterError


class Clock:
    def __init__(self):
        self.now = 1_700_000_000.25

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, review_set, clock):
    with DecisionStore(tmp_path / "d.sqlite", review_set, clock=clock) as opened:
        yield opened


def keep(store, row, reviewer="Ada", based_on=None):
    version = store.version(row) if based_on is None else based_on
    return store.record(row, action="keep", reviewer=reviewer, based_on=version)


def test_a_decision_is_entered_with_all_that_matters(store):
    decision = store.record(3, action="relabel", label="hen", reviewer="Ada", based_on=0)
    assert (
        decision == store.log()[0] == store.current()[3] == store.entry(decision.id) == store.last_of("Ada")
    )
    assert (decision.row, decision.action, decision.label, decision.reviewer) == (3, "relabel", "hen", "Ada")
    assert (decision.time, decision.based_on, decision.undoes) == ("2023-11-14T22:13:20.250Z", 0, None)
    assert store.version(3) == decision.id
    assert store.entry(99) is None
    assert store.last_of("Bob") is None


def test_labels_of_the_actions(store):
    assert keep(store, 0).label == "cat"
    assert store.record(1, action="skip", reviewer="Ada", based_on=0, label="cat").label is None
    assert store.record(2, action="unsure", reviewer="Ada", based_on=0).label is None
    same = store.record(3, action="relabel", label="cat", reviewer="Ada", based_on=0)
    assert (same.action, same.label) == ("keep", "cat")
    assert [store.current()[row].settled for row in range(4)] == [True, False, False, True]


def test_a_stale_decision_is_refused(store):
    first = keep(store, 3, "Ada")
    with pytest.raises(DecisionConflictError) as caught:
        store.record(3, action="relabel", label="dog", reviewer="Bob", based_on=0)
    assert str(caught.value) == (
        "Ada has changed row 3 in the meantime (keep); nothing was saved.\n"
        "Hint: reload the row and decide again."
    )
    assert (caught.value.row, caught.value.latest, caught.value.in_force) == (3, first, first)
    assert store.log() == [first]
    second = store.record(3, action="relabel", label="dog", reviewer="Bob", based_on=first.id)
    assert store.current()[3] == second
    assert store.log(3) == [first, second]
    assert store.log(4) == []


def test_the_same_decision_sent_twice_is_entered_once(store):
    first = keep(store, 3)
    assert keep(store, 3, based_on=0) == first
    assert len(store.log()) == 1
    with pytest.raises(DecisionConflictError):
        keep(store, 3, reviewer="Bob", based_on=0)


def test_undo_restores_the_previous_decision(store):
    first = keep(store, 3, "Ada")
    second = store.record(3, action="relabel", label="dog", reviewer="Bob", based_on=first.id)
    undone = store.undo(second.id, reviewer="Bob")
    assert (undone.action, undone.undoes, undone.based_on, undone.row) == ("undo", second.id, second.id, 3)
    assert store.current()[3] == first
    assert store.undo(second.id, reviewer="Bob") == undone
    assert store.undo(first.id, reviewer="Ada").undoes == first.id
    assert store.current() == {}
    assert [entry.action for entry in store.log()] == ["keep", "relabel", "undo", "undo"]
    again = keep(store, 3)
    assert store.current() == {3: again}


def test_only_ones_own_decision_in_force_is_undone(store):
    first = keep(store, 3, "Ada")
    with pytest.raises(InvalidInputError, match=r"^There is no decision 1 of Bob to undo.$"):
        store.undo(first.id, reviewer="Bob")
    with pytest.raises(InvalidInputError, match=r"^There is no decision 9 of Ada to undo.$"):
        store.undo(9, reviewer="Ada")
    second = store.record(3, action="unsure", reviewer="Bob", based_on=first.id)
    with pytest.raises(DecisionConflictError) as caught:
        store.undo(first.id, reviewer="Ada")
    assert caught.value.in_force == second
    assert store.last_of("Ada") is None
    undone = store.undo(second.id, reviewer="Bob")
    with pytest.raises(InvalidInputError):
        store.undo(undone.id, reviewer="Bob")
    keep(store, 3, "Cy")
    with pytest.raises(DecisionConflictError):
        store.undo(second.id, reviewer="Bob")


def test_decisions_that_cannot_be(store):
    with pytest.raises(InvalidInputError, match=r"^Row 77 is not in the review set.$"):
        keep(store, 77, based_on=0)
    with pytest.raises(InvalidInputError, match=r"^Row 3: the new label 'cow' is not among the 3 classes.$"):
        store.record(3, action="relabel", label="cow", reviewer="Ada", based_on=0)
    with pytest.raises(InvalidInputError, match=r"^Row 3 has no version 5.$"):
        keep(store, 3, based_on=5)
    with pytest.raises(InvalidParameterError) as caught:
        store.record(3, action="undo", reviewer="Ada", based_on=0)
    assert str(caught.value) == (
        "The 'action' parameter of DecisionStore.record must be one of 'exclude', 'keep', 'relabel', 'skip', "
        "'unsure'. Got 'undo' instead."
    )
    for label, message in (
        ("", "Row 3: the name of the new class is empty."),
        ("x" * 201, "The name of the new class must be one line of up to 200 printable characters."),
        ("a\0b", "The name of the new class must be one line of up to 200 printable characters."),
    ):
        with pytest.raises(InvalidInputError, match=f"^{message}$"):
            store.record(3, action="relabel", label=label, new_class=True, reviewer="Ada", based_on=0)
    with pytest.raises(
        InvalidInputError, match=r"^The note must be one line of up to 1,000 printable characters.$"
    ):
        store.record(3, action="keep", reviewer="Ada", based_on=0, note="x" * 1001)
    assert store.log() == []


def test_a_new_class_an_exclusion_and_notes(store):
    new = store.record(3, action="relabel", label=" blue  cow ", new_class=True, reviewer="Ada", based_on=0)
    assert (new.action, new.label, new.note, new.settled) == ("relabel", "blue cow", "", True)
    known = store.record(4, action="relabel", label="dog", new_class=True, reviewer="Ada", based_on=0)
    assert (known.action, known.label) == ("keep", "dog")
    gone = store.record(5, action="exclude", label="dog", reviewer="Ada", based_on=0, note=" a\ncopy ")
    assert (gone.action, gone.label, gone.note, gone.settled) == ("exclude", None, "a copy", True)
    assert store.in_force(5) == gone == store.entry(gone.id)
    # The same decision with another note is another decision.
    with pytest.raises(DecisionConflictError):
        store.record(5, action="exclude", reviewer="Ada", based_on=0, note="other")


def test_changes_since_an_entry(store):
    assert store.changes(0) == (0, {})
    first, second = keep(store, 3), keep(store, 4)
    assert store.changes(0) == (second.id, {3: first, 4: second})
    assert store.changes(first.id) == (second.id, {4: second})
    undone = store.undo(first.id, reviewer="Ada")
    assert store.changes(second.id) == (undone.id, {3: None})
    assert store.changes(undone.id) == (undone.id, {})


def test_the_log_cannot_be_changed_by_any_program(store):
    keep(store, 3)
    store.close()
    connection = sqlite3.connect(store.path)
    try:
        for statement in ("UPDATE decisions SET label = 'x'", "DELETE FROM decisions"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            connection.execute(
                "INSERT INTO decisions (item, action, label, reviewer, time, based_on) "
                "VALUES (3, 'keep', 'x', 'B', '', 0)"
            )
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    finally:
        connection.close()
    assert len(store.log()) == 1


def test_every_commit_is_synced(store):
    keep(store, 3)
    with store._database.reading() as db:
        # 2 is FULL.
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_failed_write_leaves_nothing(store):
    with pytest.raises(RuntimeError, match="power"), store._database.transaction() as db:
        db.execute("INSERT INTO sessions VALUES ('s', 'Ada')")
        raise RuntimeError("power failure")
    assert store.sessions.reviewer("t") == "reviewer 1"


def test_a_store_is_kept_and_belongs_to_one_review_set(tmp_path, store, review_set, make_review_set):
    first = keep(store, 3)
    store.close()
    with DecisionStore(store.path, review_set) as again:
        assert again.log() == [first]
    with pytest.raises(FileFormatError) as caught:
        DecisionStore(store.path, make_review_set(seed=1))
    assert str(caught.value) == (
        f"The decisions in {store.path} belong to another review set: its rows, labels, classes or sampling plan "
        "differ.\nHint: give each review set its own store_path."
    )


def test_files_that_are_not_a_store(tmp_path, review_set):
    path = tmp_path / "other"
    with pytest.raises(FileFormatError) as caught:
        DecisionStore(path, review_set, create=False)
    assert str(caught.value) == (
        f"The file of decisions {path} does not exist.\nHint: review some rows first, or check the path."
    )
    path.write_text("this is not a database, but a text that is long enough to be looked at")
    with pytest.raises(FileFormatError) as caught:
        DecisionStore(path, review_set)
    assert str(caught.value) == f"{path} cannot be used as a decision store: file is not a database."
    with pytest.raises(FileFormatError, match="unable to open database file"):
        DecisionStore(tmp_path / "no" / "folder", review_set)


def test_rows_are_handed_to_one_session_at_a_time(store, clock):
    def hand(session):
        return store.sessions.hand_out([4, 5, 6], session=session, seconds=60)

    assert [hand("a"), hand("b"), hand("c")] == [4, 5, 6]
    # All are taken: the first is shown to a fourth as well, and still belongs to the first session.
    assert hand("d") == 4
    assert [hand("a"), hand("b")] == [4, 5]
    clock.now += 59
    assert hand("d") == 4
    clock.now += 2
    assert hand("d") == 4
    assert hand("a") == 5
    assert store.sessions.hand_out([], session="a", seconds=60) is None
    # Asking for another row gives the former one free.
    assert hand("b") == 5


def test_a_decision_ends_the_lease(store):
    assert store.sessions.hand_out([4, 5], session="a", seconds=60) == 4
    keep(store, 4)
    assert store.sessions.hand_out([4, 5], session="b", seconds=60) == 4


def test_looking_at_a_row_names_who_else_does(store, clock):
    assert store.sessions.reviewer("a") == "reviewer 1"
    store.sessions.rename("a", "Ada")
    assert store.sessions.look_at(4, session="a", seconds=60) is None
    assert store.sessions.look_at(4, session="a", seconds=60) is None
    assert store.sessions.look_at(4, session="b", seconds=60) == "Ada"
    clock.now += 61
    assert store.sessions.look_at(4, session="b", seconds=60) is None


def test_names_of_sessions(store):
    assert [store.sessions.reviewer(session) for session in "aba"] == [
        "reviewer 1",
        "reviewer 2",
        "reviewer 1",
    ]
    store.sessions.rename("b", "Bob")
    assert store.sessions.reviewer("b") == "Bob"


def test_many_at_once_overwrite_nothing(tmp_path, store, review_set):
    """Eight threads on two connections decide the same rows; each row keeps exactly one of them."""
    with DecisionStore(store.path, review_set) as second, ThreadPoolExecutor(8) as pool:

        def decide(number):
            try:
                chosen = (store, second)[number % 2]
                return chosen.record(number % 6, action="unsure", reviewer=f"r{number}", based_on=0)
            except DecisionConflictError as error:
                return error

        results = list(pool.map(decide, range(48)))
    entries = [result for result in results if not isinstance(result, DecisionConflictError)]
    assert len(entries) == 6
    assert sorted(entries, key=lambda entry: entry.id) == store.log()
    assert {entry.row for entry in entries} == set(range(6))


class StoreMachine(RuleBasedStateMachine):
    """Any sequence of decisions and undos leaves what a plain model of it leaves."""

    factory = None

    def __init__(self):
        super().__init__()
        self.store = self.factory()
        self.stacks = {}
        self.entries = 0

    @rule(row=st.integers(0, 3), label=st.sampled_from(["cat", "dog", "hen"]), reviewer=st.sampled_from("AB"))
    def decide(self, row, label, reviewer):
        version = self.store.version(row)
        decision = self.store.record(row, action="relabel", label=label, reviewer=reviewer, based_on=version)
        self.stacks.setdefault(row, []).append(decision)
        self.entries += 1

    @rule(reviewer=st.sampled_from("AB"))
    def undo(self, reviewer):
        expected = max(
            (stack[-1] for stack in self.stacks.values() if stack and stack[-1].reviewer == reviewer),
            key=lambda decision: decision.id,
            default=None,
        )
        assert self.store.last_of(reviewer) == expected
        if expected is not None:
            self.store.undo(expected.id, reviewer=reviewer)
            self.stacks[expected.row].pop()
            self.entries += 1

    @rule()
    def reopen(self):
        self.store.close()

    @invariant()
    def agrees(self):
        assert self.store.current() == {row: stack[-1] for row, stack in self.stacks.items() if stack}
        assert len(self.store.log()) == self.entries

    def teardown(self):
        self.store.close()


def test_any_sequence_of_decisions_and_undos(tmp_path_factory, review_set):
    StoreMachine.factory = lambda self: DecisionStore(
        tmp_path_factory.mktemp("store") / "d.sqlite", review_set
    )
    run_state_machine_as_test(
        StoreMachine, settings=settings(deadline=None, max_examples=15, stateful_step_count=20)
    )
