# SPDX-License-Identifier: Apache-2.0
"""moka key, encrypt and decrypt, and predictions with encrypted models, against Debian's age and tar where they are installed."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["MOKA_PROGRAM"]
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("MOKA_")}


def moka(*arguments, **environment):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
                          env={**ENVIRONMENT, **environment}, start_new_session=True)


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


class Protect(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = Path(keeper.name)
        self.model = self.folder / "Net.mlpackage"
        shutil.copytree(GOLDEN / "cached" / "model.mlpackage", self.model)
        self.key = self.folder / "secret.key"
        self.recipient = self.fine("key", "-o", self.key).strip()
        self.encrypted = self.folder / "Net.mlpackage.age"

    def fine(self, *arguments, **environment):
        done = moka(*arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def answer(self, *arguments, **environment):
        """The values of a prediction."""
        answer = json.loads(self.fine("predict", *arguments, "-i", "random", "--json", **environment))
        return answer["outputs"]

    def refused(self, code, words, *arguments, **environment):
        done = moka(*arguments, **environment)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_keys(self):
        self.assertEqual(self.key.stat().st_mode & 0o777, 0o600)
        self.assertTrue(self.recipient.startswith("age1"))
        self.assertEqual(self.fine("key", "--of", self.key).strip(), self.recipient)
        self.refused(2, "exists already", "key", "-o", self.key)
        answer = json.loads(self.fine("key", "--json"))
        self.assertTrue(answer["identity"].startswith("AGE-SECRET-KEY-1"))
        self.refused(2, "-o", "key", "--passphrase")
        self.refused(3, "AGE-SECRET-KEY", "key", "--of", self.model / "Manifest.json")

    def test_predicts_with_the_encrypted_model(self):
        self.assertIn("Net.mlpackage.age", self.fine("encrypt", self.model, "-r", self.recipient))
        plain = self.answer(self.model)
        for way in (["--identity", self.key], []):
            environment = {} if way else {"MOKA_IDENTITY": str(self.key)}
            self.assertEqual(self.answer(self.encrypted, *way, **environment), plain)
        for command in ("inspect", "metadata", "explain"):
            self.fine(command, self.encrypted, "--identity", self.key)
        self.refused(2, "no identity is given", "predict", self.encrypted, "-i", "random")
        other = self.folder / "other.key"
        self.fine("key", "-o", other)
        self.refused(2, "another identity", "predict", self.encrypted, "-i", "random", "--identity", other)
        self.refused(2, "moka decrypt", "compile", self.encrypted, self.folder / "out", MOKA_IDENTITY=str(self.key))
        self.assertFalse((self.folder / "out" / "Net.mlpackage.mlmodelc").exists())

    def test_the_cache_stays_empty(self):
        self.fine("encrypt", self.model, "-r", self.recipient)
        cache = self.folder / "cache"
        self.fine("predict", self.encrypted, "-i", "random", "--identity", self.key, "--cache", cache)
        self.assertEqual([p for p in cache.rglob("*") if p.is_file()], [])
        self.fine("predict", self.model, "-i", "random", "--cache", cache)
        self.assertNotEqual([p for p in cache.rglob("*") if p.is_file()], [])

    def test_altered_and_cut_files_are_refused(self):
        self.fine("encrypt", self.model, "-r", self.recipient)
        whole = self.encrypted.read_bytes()
        for at in (0, 30, 100, 150, 200, 260, len(whole) // 2, len(whole) - 1):
            self.encrypted.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            self.assertIn(moka("predict", self.encrypted, "-i", "random", "--identity", self.key).returncode, (2, 3), at)
            self.encrypted.write_bytes(whole[:at])
            self.assertIn(moka("predict", self.encrypted, "-i", "random", "--identity", self.key).returncode, (2, 3), at)

    def test_decrypts_to_the_same_files(self):
        before = contents(self.model)
        self.fine("encrypt", self.model, "-r", self.recipient)
        (self.model / "Manifest.json").rename(self.model / "letter")
        self.refused(2, "never replaced", "decrypt", self.encrypted, "--identity", self.key)
        shutil.rmtree(self.model)
        self.assertEqual(json.loads(self.fine("decrypt", self.encrypted, "--identity", self.key, "--json")), {"written": str(self.model)})
        self.assertEqual(contents(self.model), before)

    def test_passphrases(self):
        word = self.folder / "word"
        word.write_text("correct horse\n")
        self.fine("encrypt", self.model, "--passphrase-file", word)
        self.fine("predict", self.encrypted, "-i", "random", "--passphrase-file", word)
        self.fine("predict", self.encrypted, "-i", "random", MOKA_PASSPHRASE="correct horse")
        self.refused(2, "the passphrase is wrong", "predict", self.encrypted, "-i", "random", MOKA_PASSPHRASE="wrong")
        self.refused(2, "none is given", "predict", self.encrypted, "-i", "random")
        self.refused(2, "no terminal", "encrypt", self.model, "--passphrase")
        self.refused(2, "either recipients", "encrypt", self.model)
        self.refused(2, "either recipients", "encrypt", self.model, "--passphrase-file", word, "-r", self.recipient)
        locked = self.folder / "locked.key"
        recipient = self.fine("key", "-o", locked, "--passphrase-file", word).strip()
        self.fine("encrypt", self.model, "-r", recipient)
        self.fine("predict", self.encrypted, "-i", "random", "--identity", locked, "--passphrase-file", word)

    def test_mistakes(self):
        self.refused(2, "mistyped", "encrypt", self.model, "-r", self.recipient[:-1] + ("q" if self.recipient[-1] != "q" else "p"))
        self.refused(2, "is secret", "encrypt", self.model, "-r", self.key.read_text().split("\n")[1])
        self.refused(3, "does not exist", "encrypt", self.folder / "none", "-r", self.recipient)
        self.refused(2, "moka encrypt", "compile", self.model, self.folder, "--encrypt", "x.mlmodelkey")
        self.fine("encrypt", self.model, "-r", self.recipient)
        self.refused(3, "Apple", "predict", self.encrypted, "-i", "random", "--identity", "team.mlmodelkey")
        self.refused(2, "encrypted already", "encrypt", self.encrypted, "-r", self.recipient)

    def test_files_beside_the_output_stay(self):
        other = self.folder / "Net.mlpackage.age.unfinished"
        other.write_text("mine")
        self.fine("encrypt", self.model, "-r", self.recipient)
        self.assertEqual(other.read_text(), "mine")

    def test_two_at_once_write_whole_files(self):
        many = [subprocess.Popen([PROGRAM, "encrypt", self.model, "-r", self.recipient], env=ENVIRONMENT, stdout=subprocess.PIPE)
                for _ in range(6)]
        for one in many:
            one.communicate()
            self.assertEqual(one.returncode, 0)
        self.fine("predict", self.encrypted, "-i", "random", "--identity", self.key)
        self.assertEqual(list(self.folder.glob("*unfinished*")), [])

    def test_outputs_that_are_no_files(self):
        rent = Path(__file__).parents[2] / "examples/models/rent.mlmodel"
        pipe, target, link = self.folder / "pipe.mlmodel", self.folder / "target.mlmodel", self.folder / "link.mlmodel"
        os.mkfifo(pipe)
        link.symlink_to(target)
        for command in (["encrypt", rent, "-r", self.recipient], ["edit", rent, "--author", "me"]):
            with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
                self.fine(*command, "-o", pipe)
                self.assertGreater(len(reader.stdout.read()), 100)
            self.assertTrue(pipe.is_fifo())
            target.unlink(missing_ok=True)
            self.fine(*command, "-o", link)
            self.assertTrue(link.is_symlink())
        self.fine("inspect", target)
        (self.folder / "file").write_text("")
        self.refused(3, "Not a directory", "encrypt", rent, "-r", self.recipient, "-o", self.folder / "file" / "x" / "y.age")

    def test_an_interrupted_decrypt_leaves_no_model(self):
        self.fine("encrypt", self.model, "-r", self.recipient)
        before = contents(self.model)
        shutil.rmtree(self.model)

        def limits():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        killed = subprocess.run([PROGRAM, "decrypt", self.encrypted, "--identity", self.key], env=ENVIRONMENT, preexec_fn=limits,
                                capture_output=True)
        self.assertEqual(killed.returncode, -signal.SIGXFSZ, killed.stderr)
        self.assertFalse(self.model.exists())
        self.fine("decrypt", self.encrypted, "--identity", self.key)
        self.assertEqual(contents(self.model), before)

    def test_age_opens_ours_and_we_open_theirs(self):
        if shutil.which("age") is None:
            self.skipTest("age is not installed")
        self.fine("encrypt", self.model, "-r", self.recipient)
        out = self.folder / "out"
        out.mkdir()
        subprocess.run(f"age -d -i {self.key} {self.encrypted} | tar x -C {out}", shell=True, check=True)
        self.assertEqual(contents(out / "Net.mlpackage"), contents(self.model))
        plain = self.answer(self.model)
        for options, name in (("", "theirs.age"), ("-a", "armored.age")):
            subprocess.run(f"tar c -C {self.folder} Net.mlpackage | age -r {self.recipient} {options} > {self.folder / name}", shell=True, check=True)
            self.assertEqual(self.answer(self.folder / name, "--identity", self.key), plain)
        made = subprocess.run(["age-keygen"], capture_output=True, text=True, check=True).stdout
        (self.folder / "theirs.key").write_text(made)
        recipient = made.split("public key: ")[1].split("\n")[0]
        self.assertEqual(self.fine("key", "--of", self.folder / "theirs.key").strip(), recipient)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
