"""A folder of images by class as a table."""

import pytest

from neighboragg.exceptions import InvalidInputError
from tables import Read


@pytest.fixture
def make_folder(tmp_path):
    def make(*places):
        root = tmp_path / "pets"
        for place in places:
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            if place.endswith("/"):
                path.mkdir()
            else:
                path.write_bytes(b"")
        return root

    return make


def test_folders_are_labels_and_rows_are_in_order(make_folder):
    root = make_folder("dog/b.png", "cat/10.JPG", "cat/2.jpeg", "dog/deep/er/a.webp", "hen/x.gif")
    table = Read(root)
    images = ["cat/10.JPG", "cat/2.jpeg", "dog/b.png", "dog/deep/er/a.webp", "hen/x.gif"]
    assert table.frame["image"].tolist() == images
    assert table.labels.tolist() == ["cat", "cat", "dog", "dog", "hen"]
    assert [table.place_of(i) for i in range(5)] == images
    assert table.notes == []
    assert (table.source.name, table.label, len(table.source)) == (str(root), "label", 5)


def test_rows_are_in_the_order_of_sorted_paths(make_folder):
    places = ["cat/b.png", "cat/a/z.png", "cat-2/a.png", "cat/a.png", "Dog/a.png", "cat/c/a.png"]
    assert Read(make_folder(*places)).frame["image"].tolist() == sorted(places)


def test_whatever_is_left_out_is_named(make_folder):
    images = ["cat/a.png", "dog/b.png"]
    root = make_folder(*images, "dog/about.txt", "c.png", "list.csv", "hen/", ".git/x.png", "cat/.a.png")
    assert Read(root).frame["image"].tolist() == images
    assert Read(root).notes == [
        "Left out, not an image (2): dog/about.txt, list.csv.",
        "Left out, not in the folder of a class (1): c.png.",
        "Class folders without images (1): hen.",
    ]


def test_images_that_browsers_do_not_show_are_images(make_folder):
    assert Read(make_folder("cat/a.png", "dog/b.TIFF")).frame["image"].tolist() == [
        "cat/a.png",
        "dog/b.TIFF",
    ]


def test_classes_may_be_called_as_the_parts_of_a_split_are(make_folder):
    assert Read(make_folder("dev/a.png", "test/b.png")).labels.tolist() == ["dev", "test"]


def test_links_to_folders_are_not_followed(make_folder, tmp_path):
    root = make_folder("cat/a.png", "dog/b.png")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "c.png").write_bytes(b"")
    (root / "dog" / "more").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert Read(root).frame["image"].tolist() == ["cat/a.png", "dog/b.png"]


def test_a_copy_with_other_labels_lists_every_image(make_folder):
    root = make_folder("cat/a.png", "cat/b, c.png", "dog/d.png", "=x/e.png")
    table = Read(root)
    assert table.frame["image"].tolist() == ["=x/e.png", "cat/a.png", "cat/b, c.png", "dog/d.png"]
    assert table.relabeled({2: "dog"}, [3]).decode() == (
        "image,label,folder\n'=x/e.png,'=x,'=x\ncat/a.png,cat,cat\n\"cat/b, c.png\",dog,cat\n"
    )


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (
            ["a.png", "cat/notes.txt"],
            "The subfolders of {root} do not contain images.\n"
            "Hint: use one folder per class, such as {root}/class/image.png; the formats are .avif, "
            ".bmp, .gif, .jpeg, .jpg, .png, .webp.",
        ),
        (
            ["Train/cat/a.png", "test/dog/a.png"],
            "The folders of {root} are the parts of a split: Train, test. The folders of the classes are expected "
            "there.\nHint: pass one part, {root}/Train.",
        ),
    ],
    ids=["none", "split"],
)
def test_folders_that_are_refused(make_folder, places, message):
    root = make_folder(*places)
    with pytest.raises(InvalidInputError) as caught:
        Read(root)
    assert str(caught.value) == message.format(root=root)
