# SPDX-License-Identifier: Apache-2.0
"""The rules for prose. RULES are patterns with a better wording; MAX_WORDS limits the length of a sentence.

A rule belongs here only if every sentence that it matches can be worded more plainly. Words that are sometimes right do not.
"""
import re

from . import prose

MAX_WORDS = 45  # between full stops
MAX_CLAUSE = 36  # between any of . ! ? ; :

RULES = [
    (r"\bcrews?\b", "write 'threads', or 'the threads of this prediction'"),
    (r"\b(lend|lends|lending|lent)\b", "write that a prediction uses or borrows workers of the pool"),
    (r"\bleaders?\b", "write 'caller' or 'calling thread'"),
    (r"\bof who\b|\bnobody waits for\b|\bthat helps? the first\b", "name the subject: which thread does what"),
    (r"\bwho(?=ever\b)|\bwho (asks|wants|reads|calls|waits|was asked)\b", "name the caller, the reader, the user"),
    (r"\bso often\b", "write 'N times'"),
    (r"\bmay be others\b|\bare others'?\b|\bas \w+'s are not\b", "say which ones, in a sentence of their own"),
    (r"(?i)(?<!there )\b(is|are|was|were) no (?!more\b|longer\b|less\b|fewer\b|better\b|worse\b|slower\b|faster\b|larger\b"
     r"|smaller\b|further\b|other\b|such\b|one\b)[a-z]", "write 'is not a', 'are not'"),
    (r"(?:^|[.:;] )Of (?!course\b|two\b|equal\b)", "begin with the subject: 'The bytes of ...'"),
    (r"\bto be had\b|\bin one go\b|\bspeaks? of\b", "write 'available', 'at once', 'mentions'"),
    (r"\b[Mm]end(s|ed|ing)?\b", "write 'fix' or 'correct'"),
    (r"\b(thereof|therein|wherein|whereof|thereby|hitherto|henceforth|betwixt|albeit)\b", "write it as you would say it"),
    (r"(?i)\b(colour|neighbour|behaviour|centre[sd]?\b|honour|favour)", "spell it color, neighbor, behavior, center, honor, favor"),
    (r"(?i)\b\w*(normal|optim|special|quant|general|organ|serial|initial|synchron|minim|maxim|summar|recogn|real)"
     r"is(e[ds]?|ing|ation)\b", "spell it with z: normalize, optimize, specialization"),
    (r"\b(the|an?|of|to|in|is|are|and|or|for|on|with|by|as|it|be|not|this|which) \1\b", "a word stands twice"),
]
COMPILED = [(re.compile(pattern), advice) for pattern, advice in RULES]
# Strings there are data: programs, names, texts of models. Comments are checked.
DATA = re.compile(r"^(tests|bench/tests|tools/checks)/|^tools/check$")


def words(text):
    return len(re.findall(r"[A-Za-z][\w'-]*", text))


def findings(path, text):
    """(line, problem) for the prose of a file."""
    for line, kind, passage in prose.passages(path, text):
        if kind == "string" and DATA.search(path):
            continue
        for pattern, advice in COMPILED:
            m = pattern.search(passage)
            if m:
                yield line, "'%s': %s" % (context(passage, m), advice)
        if kind == "code":
            continue
        for sentence in re.split(r"(?<=[.!?]) +", passage):
            n = words(sentence)
            longest = max((words(clause) for clause in re.split(r"[;:] ", sentence)), default=0)
            if n > MAX_WORDS or longest > MAX_CLAUSE:
                yield line, "a sentence of %d words, '%s ...'" % (n, sentence[:50])


def context(passage, m):
    start = passage.rfind(" ", 0, max(0, m.start() - 12)) + 1
    end = passage.find(" ", min(len(passage), m.end() + 12))
    return passage[start:end if end > 0 else len(passage)].strip()
