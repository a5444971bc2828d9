# SPDX-License-Identifier: Apache-2.0
"""Iterators and the position: which of them end, and which follow."""
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))

from package import betonfs  # noqa: E402

N, SIZE = 53, 10


@pytest.fixture(params=["loader", "mix", "mix that cycles"])
def open_one(request, tmp_path):
    path = tmp_path / "n.beton"
    betonfs.write(path, [{"x": float(i)} for i in range(N)], {"x": "float"})

    def loader(seed):
        return betonfs.Loader(path, SIZE, seed=seed, tensors="numpy")

    if request.param == "loader":
        return lambda: loader(1)
    return lambda: betonfs.Mix([loader(1), loader(2)], seed=3,
                               cycle="cycles" in request.param)


def ids(batches):
    return [b.ids.tolist() for b in batches]


@pytest.fixture
def whole(open_one):
    loader = open_one()
    return [ids(loader) for _ in range(3)]


@pytest.mark.parametrize("epoch", range(3))
def test_an_untouched_iterator_follows(open_one, whole, epoch):
    """Lightning calls iter() first, and then set_epoch() of a sampler."""
    loader = open_one()
    it = iter(loader)
    loader.batch_sampler.sampler.set_epoch(epoch)
    assert ids(it) == whole[epoch]
    if epoch < 2:
        assert ids(loader) == whole[epoch + 1]


def test_an_untouched_iterator_follows_into_a_resumed_epoch(open_one, whole):
    loader = open_one()
    it = iter(loader)
    next(it)
    next(it)
    other = open_one()
    other.load_state_dict(loader.state_dict())
    it = iter(other)
    other.set_epoch(0)
    assert ids(it) == whole[0][2:]


def test_an_iterator_that_was_used_ends(open_one):
    loader = open_one()
    it = iter(loader)
    next(it)
    loader.set_epoch(0)
    with pytest.raises(RuntimeError, match="another iteration"):
        next(it)


def test_only_the_latest_iterator_follows(open_one, whole):
    loader = open_one()
    older, latest = iter(loader), iter(loader)
    loader.set_epoch(1)
    with pytest.raises(RuntimeError, match="another iteration"):
        next(older)
    assert ids(latest) == whole[1]
