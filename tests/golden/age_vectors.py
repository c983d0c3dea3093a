# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/age/vectors.json: files in the format age v1, valid and damaged in one way each, with what opening them must say.

python3 tests/golden/age_vectors.py        needs the package `cryptography`, which shares no code with Moka or libsodium

The cases follow the categories of the public test vectors of age (C2SP/CCTV): success, no match (the key does not fit),
HMAC failure, header failure, payload failure, armor failure.
"""
import base64
import hashlib
import hmac
import json
import os

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

FILE_KEY = bytes(range(16))
SECRET = hashlib.sha256(b"identity").digest()
OTHER = hashlib.sha256(b"other identity").digest()
EPHEMERAL = hashlib.sha256(b"ephemeral").digest()
NONCE = hashlib.sha256(b"nonce").digest()[:16]
SALT = hashlib.sha256(b"salt").digest()[:16]
PLAIN = b"age"
LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
CHUNK = 64 * 1024
BEGIN, END = "-----BEGIN AGE ENCRYPTED FILE-----", "-----END AGE ENCRYPTED FILE-----"


def b64(data):
    return base64.b64encode(data).decode().rstrip("=")


def hkdf(secret, salt, info):
    extracted = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


def polymod(values):
    sum = 1
    for v in values:
        top = sum >> 25
        sum = (sum & 0x1FFFFFF) << 5 ^ v
        for i, g in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            sum ^= g if top >> i & 1 else 0
    return sum


def bech32(prefix, data):
    bits = "".join(format(b, "08b") for b in data)
    bits += "0" * (-len(bits) % 5)
    values = [int(bits[i:i + 5], 2) for i in range(0, len(bits), 5)]
    head = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    sum = polymod(head + values + [0] * 6) ^ 1
    return prefix + "1" + "".join(LETTERS[v] for v in values + [sum >> 5 * (5 - i) & 31 for i in range(6)])


def public(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def identity(secret):
    return bech32("age-secret-key-", secret).upper()


def body_lines(body):
    text = b64(body)
    return "".join(text[i:i + 64] + "\n" for i in range(0, len(text) + 1, 64))


def seal(key, data):
    return ChaCha20Poly1305(key).encrypt(bytes(12), data, None)


def x25519(secret=SECRET, file_key=FILE_KEY, arguments=None, share=None, body=None):
    share = share or public(EPHEMERAL)
    recipient = public(secret)
    shared = X25519PrivateKey.from_private_bytes(EPHEMERAL).exchange(X25519PublicKey.from_public_bytes(recipient))
    key = hkdf(shared, share + recipient, b"age-encryption.org/v1/X25519")
    return "-> " + (arguments or "X25519 " + b64(share)) + "\n" + (body or body_lines(seal(key, file_key)))


def scrypt(passphrase="password", work=10, file_key=FILE_KEY, salt=SALT, arguments=None, body=None):
    key = Scrypt(salt=b"age-encryption.org/v1/scrypt" + salt, length=32, n=1 << work, r=8, p=1).derive(passphrase.encode())
    return "-> " + (arguments or "scrypt %s %d" % (b64(salt), work)) + "\n" + (body or body_lines(seal(key, file_key)))


def header(*stanzas, version="age-encryption.org/v1\n", file_key=FILE_KEY, end=None):
    text = (version + "".join(stanzas) + "---").encode()
    mac = hmac.new(hkdf(file_key, b"", b"header"), text, hashlib.sha256).digest()
    return text + (end(mac) if end else (" " + b64(mac) + "\n").encode())


def chunk(index, data, last, file_key=FILE_KEY):
    key = hkdf(file_key, NONCE, b"payload")
    return ChaCha20Poly1305(key).encrypt(index.to_bytes(11, "big") + bytes([last]), data, None)


def payload(plain=PLAIN, file_key=FILE_KEY):
    parts = [plain[i:i + CHUNK] for i in range(0, len(plain), CHUNK)] or [b""]
    return NONCE + b"".join(chunk(i, p, i == len(parts) - 1, file_key) for i, p in enumerate(parts))


def armored(data, eol="\n", begin=BEGIN, end=END):
    text = base64.b64encode(data).decode()
    return eol.join([begin] + [text[i:i + 64] for i in range(0, len(text), 64)] + [end]) + eol


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def not_canonical(text):
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return text[:-1] + alphabet[alphabet.index(text[-1]) + 1]


cases = []
POOL = {"more": chunk(0, bytes(CHUNK), False), "last": chunk(0, bytes(CHUNK), True)}  # large parts, which several cases share


def case(name, expect, data, plain=None, passphrase=None):
    data = data.encode() if isinstance(data, str) else data
    parts = [data]
    for word, large in POOL.items():
        parts = [q for p in parts for q in ([p] if isinstance(p, str) or large not in p else [p.split(large)[0], word, p.split(large)[1]])]
    entry = {"name": name, "expect": expect, "file": [p if isinstance(p, str) else base64.b64encode(p).decode() for p in parts]}
    if plain is not None:
        entry["sha256"] = hashlib.sha256(plain).hexdigest()
    if passphrase is not None:
        entry["passphrase"] = passphrase
    cases.append(entry)


good = header(x25519()) + payload()
case("x25519", "success", good, PLAIN)
case("x25519_two_recipients", "success", header(x25519(OTHER), x25519()) + payload(), PLAIN)
case("x25519_unknown_stanza_first", "success", header("-> grease some arguments\n" + body_lines(bytes(100)), x25519()) + payload(), PLAIN)
case("x25519_no_match", "no match", header(x25519(OTHER)) + payload())
case("x25519_bad_tag", "no match", header(x25519(body=body_lines(bytes(32)))) + payload())
case("x25519_extra_argument", "header failure", header(x25519(arguments="X25519 %s 1" % b64(public(EPHEMERAL)))) + payload())
case("x25519_no_argument", "header failure", header(x25519(arguments="X25519")) + payload())
case("x25519_short_share", "header failure", header(x25519(arguments="X25519 " + b64(public(EPHEMERAL)[:31]))) + payload())
case("x25519_long_share", "header failure", header(x25519(arguments="X25519 " + b64(public(EPHEMERAL) + b"\0"))) + payload())
case("x25519_zero_share", "header failure", header(x25519(arguments="X25519 " + b64(bytes(32)))) + payload())
case("x25519_low_order_share", "header failure", header(x25519(arguments="X25519 " + b64(b"\1" + bytes(31)))) + payload())
case("x25519_share_not_canonical", "header failure",
     header(x25519(arguments="X25519 " + not_canonical(b64(public(EPHEMERAL))))) + payload())
case("x25519_long_file_key", "header failure", header(x25519(file_key=bytes(24)), file_key=bytes(24)) + payload(file_key=bytes(24)))
case("x25519_lower_case", "no recipient", header(x25519(arguments="x25519 " + b64(public(EPHEMERAL)))) + payload())

for name, passphrase, expect in (("scrypt", "password", "success"), ("scrypt_no_match", "wrong", "no match")):
    case(name, expect, header(scrypt()) + payload(), PLAIN, passphrase)
case("scrypt_and_x25519", "header failure", header(scrypt(), x25519()) + payload(), passphrase="password")
case("scrypt_twice", "header failure", header(scrypt(), scrypt()) + payload(), passphrase="password")
case("scrypt_bad_tag", "no match", header(scrypt(body=body_lines(bytes(32)))) + payload(), passphrase="password")
case("scrypt_work_factor_differs", "no match", header(scrypt(arguments="scrypt %s 11" % b64(SALT))) + payload(), passphrase="password")
case("scrypt_long_file_key", "header failure", header(scrypt(file_key=bytes(24)), file_key=bytes(24)) + payload(), passphrase="password")
for name, arguments in {
        "extra_argument": b64(SALT) + " 10 10", "no_salt": "10", "no_work_factor": b64(SALT), "short_salt": b64(SALT[:15]) + " 10",
        "long_salt": b64(SALT + b"1") + " 10", "salt_not_canonical": not_canonical(b64(SALT)) + " 10", "work_factor_zero": b64(SALT) + " 0",
        "work_factor_negative": b64(SALT) + " -10", "work_factor_plus": b64(SALT) + " +10", "work_factor_hex": b64(SALT) + " 0xa",
        "work_factor_leading_zero": b64(SALT) + " 010", "work_factor_garbage": b64(SALT) + " 10x", "work_factor_23": b64(SALT) + " 23",
        "work_factor_overflow": b64(SALT) + " 18446744073709551626"}.items():
    case("scrypt_" + name, "header failure", header(scrypt(arguments="scrypt " + arguments)) + payload(), passphrase="password")
case("scrypt_body_not_canonical", "header failure",
     header(scrypt(body=not_canonical(b64(bytes(32))) + "\n")) + payload(), passphrase="password")

extra = lambda text: header(x25519(), text) + payload()
case("stanza_empty_body", "success", extra("-> empty\n\n"), PLAIN)
case("stanza_full_line", "success", extra("-> full\n" + "A" * 64 + "\n\n"), PLAIN)
case("stanza_characters", "success", extra("-> " + "".join(chr(c) for c in range(33, 127)) + "\n\n"), PLAIN)
for name, text in {
        "no_last_line": "-> full\n" + "A" * 64 + "\n", "no_body": "-> nothing\n", "two_short_lines": "-> short\nAAAA\nAAAA\n",
        "long_line": "-> long\n" + "A" * 68 + "\n\n", "no_arguments": "->\n\n", "empty_argument": "-> a  b\n\n", "trailing_space": "-> a \n\n",
        "padding": "-> padded\nAA==\n", "not_canonical": "-> stray\nAB\n", "bad_start": "- > start\n\n", "carriage_return": "-> cr\r\n\r\n",
        "control_character": "-> a\x7fb\n\n", "not_ascii": "-> \u00e4\n\n"}.items():
    case("stanza_" + name, "header failure", extra(text))

case("version_2", "header failure", header(x25519(), version="age-encryption.org/v2\n") + payload())
case("version_carriage_return", "header failure", header(x25519(), version="age-encryption.org/v1\r\n") + payload())
case("no_stanzas", "header failure", header() + payload())
case("mac_wrong", "HMAC failure", header(x25519(), end=lambda m: (" " + b64(flipped(m, 3)) + "\n").encode()) + payload())
for name, end in {
        "no_space": lambda m: b64(m) + "\n", "two_spaces": lambda m: "  " + b64(m) + "\n", "trailing_space": lambda m: " " + b64(m) + " \n",
        "short": lambda m: " " + b64(m[:31]) + "\n", "missing": lambda m: "\n", "not_canonical": lambda m: " " + not_canonical(b64(m)) + "\n",
        "padding": lambda m: " " + b64(m) + "=\n", "carriage_return": lambda m: " " + b64(m) + "\r\n"}.items():
    case("mac_" + name, "header failure", header(x25519(), end=lambda m, end=end: end(m).encode()) + payload())

head = header(x25519())
case("payload_empty", "success", head + payload(b""), b"")
for name, plain in {"one_chunk": bytes(CHUNK), "two_chunks": bytes(CHUNK) + b"1"}.items():
    case("payload_" + name, "success", head + payload(plain), plain)
case("payload_missing", "payload failure", head + NONCE)
case("payload_no_nonce", "payload failure", head)
case("payload_short_nonce", "payload failure", head + NONCE[:12])
case("payload_short_tag", "payload failure", head + payload()[:30])
case("payload_bad_tag", "payload failure", head + flipped(payload(), -1))
case("payload_bad_nonce", "payload failure", head + flipped(payload(), 0))
case("payload_not_last", "payload failure", head + NONCE + chunk(0, PLAIN, False))
case("payload_cut_chunk", "payload failure", head + NONCE + chunk(0, bytes(CHUNK), False))
case("payload_empty_last_chunk", "payload failure", head + NONCE + chunk(0, bytes(CHUNK), False) + chunk(1, b"", True))
case("payload_second_chunk_bad", "payload failure", head + NONCE + chunk(0, bytes(CHUNK), False) + flipped(chunk(1, PLAIN, True), 1))
case("payload_swapped_number", "payload failure", head + NONCE + chunk(1, PLAIN, True))
case("payload_two_last_chunks", "payload failure", head + NONCE + chunk(0, bytes(CHUNK), True) + chunk(1, PLAIN, True))
case("payload_trailing", "payload failure", head + payload() + b"1")

text = armored(good)
lines = text.split("\n")
case("armor", "success", text, PLAIN)
case("armor_crlf", "success", armored(good, "\r\n"), PLAIN)
case("armor_no_final_eol", "success", text[:-1], PLAIN)
case("armor_space_around", "success", " \t\r\n\n" + text + "\n \t\n", PLAIN)
full = header(x25519(), "-> pad\n" + body_lines(bytes(next(n for n in range(1, 60) if len(
    header(x25519(), "-> pad\n" + body_lines(bytes(n))) + payload()) % 48 == 0)))) + payload()
case("armor_full_last_line", "success", armored(full), PLAIN)
case("armor_header_bad", "header failure", armored(header(x25519(), "-> a  b\n\n") + payload()))
case("armor_payload_bad", "payload failure", armored(flipped(good, -1)))
stray = armored(header(x25519(), "-> a\n" + body_lines(bytes(next(n for n in range(3) if len(
    header(x25519(), "-> a\n" + body_lines(bytes(n))) + payload()) % 3 == 2)))) + payload())
stray = stray.replace(stray[stray.index("=") - 1:stray.index("=") + 1], not_canonical(stray[stray.index("=") - 1]) + "=")
for name, bad in {
        "no_end": "\n".join(lines[:-2]) + "\n", "lower_case": text.replace(BEGIN, BEGIN.lower().replace("begin", "BEGIN")),
        "wrong_end": armored(good, end="-----END PGP MESSAGE-----"), "long_line": "\n".join([lines[0], lines[1] + lines[2]] + lines[3:]),
        "short_line": "\n".join([lines[0], lines[1][:60], lines[1][60:] + lines[2]] + lines[3:]),
        "short_middle": "\n".join([lines[0], lines[1][:60], lines[1][60:]] + lines[2:]), "empty_line": "\n".join(lines[:1] + [""] + lines[1:]),
        "empty_line_at_end": "\n".join(lines[:-2] + [""] + lines[-2:]), "space_in_line": text.replace(lines[2], lines[2] + " "),
        "headers": "\n".join([lines[0], "Comment: x", ""] + lines[1:]), "garbage_after": text + "x", "garbage_character": text.replace(lines[2], "*" + lines[2][1:]),
        "nothing": BEGIN + "\n" + END + "\n", "not_canonical": stray}.items():
    case("armor_" + name, "armor failure", bad)

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "age")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "vectors.json"), "w") as f:
    pool = {word: base64.b64encode(large).decode() for word, large in POOL.items()}
    json.dump({"identity": identity(SECRET), "recipient": bech32("age", public(SECRET)), "pool": pool, "cases": cases}, f, indent=0)
    f.write("\n")
print("%d cases" % len(cases))
