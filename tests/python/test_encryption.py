# SPDX-License-Identifier: Apache-2.0
"""Encrypted models from Python, against pyrage, an implementation of age in Rust."""

import io
import pathlib
import pickle
import tarfile

import moka
import numpy as np
import pytest
from moka import build, encryption


@pytest.fixture
def package(tmp_path):
    program = build.Program("ios16")
    x = program.input("x", build.array((1, 64)))
    weight = np.random.default_rng(1).standard_normal((300, 64)).astype(np.float32)
    program.output(program.linear(x=x, weight=weight), "y")
    return program.save(tmp_path / "net.mlpackage")


@pytest.fixture
def pair():
    return encryption.generate_key_pair()


@pytest.fixture
def encrypted(package, pair, tmp_path):
    encryption.encrypt_model(package, tmp_path / "net.age", recipients=[pair.recipient])
    return tmp_path / "net.age"


def same(a, b):
    x = {"x": np.random.default_rng(2).standard_normal((1, 64)).astype(np.float32)}
    np.testing.assert_array_equal(a.predict(x)["y"], b.predict(x)["y"])


def test_every_form_of_key(package, pair, encrypted, tmp_path, monkeypatch):
    plain = moka.Model(package)
    same(plain, moka.Model(encrypted, key=pair.identity))
    (tmp_path / "key").write_text(pair.identity)
    same(plain, moka.Model(encrypted, key=tmp_path / "key"))
    asked = []
    same(plain, moka.Model(encrypted, key=lambda path, passphrase: asked.append((path, passphrase)) or pair.identity))
    assert asked == [(str(encrypted), False)]
    monkeypatch.setenv("MOKA_IDENTITY", pair.identity)
    same(plain, moka.Model(encrypted))
    same(plain, pickle.loads(pickle.dumps(moka.Model(encrypted))))
    same(plain, moka.Model(encrypted.read_bytes()))


def test_missing_and_wrong_keys(encrypted):
    with pytest.raises(moka.InvalidArgumentError, match="no identity"):
        moka.Model(encrypted)
    with pytest.raises(moka.InvalidArgumentError, match="another identity"):
        moka.Model(encrypted, key=encryption.generate_key_pair().identity)
    with pytest.raises(ZeroDivisionError):
        moka.Model(encrypted, key=lambda path, passphrase: 1 // 0)
    with pytest.raises(TypeError, match="key"):
        moka.Model(encrypted, key=3)


def test_passphrase(package, tmp_path):
    encryption.encrypt_model(package, tmp_path / "p.age", passphrase="correct horse", work_factor=10)
    same(moka.Model(package), moka.Model(tmp_path / "p.age", key="correct horse"))
    with pytest.raises(moka.InvalidArgumentError, match="wrong"):
        moka.Model(tmp_path / "p.age", key="Correct horse")


def archive(package):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(package, arcname="net.mlpackage")
    return out.getvalue()


def test_pyrage_opens_ours_and_we_open_its(package, pair, encrypted, tmp_path):
    pyrage = pytest.importorskip("pyrage")
    identity = pyrage.x25519.Identity.from_str(pair.identity)
    assert str(identity.to_public()) == pair.recipient
    names = set()
    with tarfile.open(fileobj=io.BytesIO(pyrage.decrypt(encrypted.read_bytes(), [identity]))) as tar:
        for member in tar:
            if member.isfile():
                path = pathlib.Path(member.name).relative_to("net.mlpackage")
                names.add(path)
                assert tar.extractfile(member).read() == (pathlib.Path(package) / path).read_bytes()
    assert names == {p.relative_to(package) for p in pathlib.Path(package).rglob("*") if p.is_file()}
    theirs = tmp_path / "theirs.age"
    theirs.write_bytes(pyrage.encrypt(archive(package), [identity.to_public()]))
    same(moka.Model(package), moka.Model(theirs, key=pair.identity))
    encryption.encrypt_model(package, tmp_path / "p.age", passphrase="pass", work_factor=10)
    assert pyrage.passphrase.decrypt((tmp_path / "p.age").read_bytes(), "pass")[:13] == b"net.mlpackage"
    theirs.write_bytes(pyrage.passphrase.encrypt(archive(package), "pass"))
    same(moka.Model(package), moka.Model(theirs, key="pass"))


def test_altered_files_never_predict(encrypted, pair):
    whole = encrypted.read_bytes()
    for at in range(0, len(whole), len(whole) // 200 + 1):
        with pytest.raises(moka.Error):
            moka.Model(whole[:at] + bytes([whole[at] ^ 8]) + whole[at + 1 :], key=pair.identity)


class Inverted:
    """A scheme of the application's own."""

    def __init__(self, data, broken=False):
        self.data = bytes(255 - b for b in data)
        self.size = len(data)
        self.broken = broken

    def read(self, offset, length):
        if self.broken:
            return b"short"
        return bytes(255 - b for b in self.data[offset : offset + length])


def test_reader(package):
    model = moka.Model(Inverted(archive(package)))
    same(moka.Model(package), model)
    assert "<th>input</th>" in model._repr_html_()
    with pytest.raises(moka.UnsupportedError, match="a reader"):
        model.view()
    with pytest.raises(moka.IOError, match="5 bytes"):
        moka.Model(Inverted(archive(package), broken=True))


def test_decrypt(package, pair, encrypted, tmp_path):
    encryption.decrypt_model(encrypted, tmp_path / "back.mlpackage", key=pair.identity)
    same(moka.Model(package), moka.Model(tmp_path / "back.mlpackage"))
