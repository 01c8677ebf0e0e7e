"""What the paper's tables consist of."""

from benchmarks.paper import plan, sensitivity_plan


def test_every_cell_is_planned_once():
    tasks = plan(("letter", "adult"), ("LR", "RF"), 3)
    assert len({(task.set, task.base, task.seed) for task in tasks}) == len(tasks) == 12
    assert tasks[0].cell() == {"set": "letter", "base": "LR", "seed": 0}


def test_sensitivity_changes_the_number_of_neighbors():
    tasks = sensitivity_plan(2, range(1, 4))
    assert [task.cell()["n_neighbors"] for task in tasks] == [1, 2, 3] * 2
    assert {(task.set, task.base) for task in tasks} == {("card_default", "LR")}
