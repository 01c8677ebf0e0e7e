"""Where Pillow is not installed: all else works, and what needs it says how to get it."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "PIL":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
"""


def run(code):
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False)


@pytest.mark.full
def test_texts_need_no_pillow():
    done = run(
        "from neighboragg.features import encode_texts; print(encode_texts(['a'], lambda texts: [[1.0]]))"
    )
    assert (done.returncode, done.stdout) == (0, "[[1.]]\n"), done.stderr


@pytest.mark.full
def test_images_name_the_extra():
    done = run("from neighboragg.features import ImageFeatures; ImageFeatures().transform(['a.png'])")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "MissingExtraError: Opening images needs the package 'PIL', which is not installed.\n"
        'Hint: pip install "neighboragg[images]"\n'
    )
