# SPDX-License-Identifier: Apache-2.0
"""The rules for commit messages: an imperative subject, and a body if code changes."""
import re
import subprocess

SINCE = "8a604be"  # the first commit that is judged is the one after it
MAX_SUBJECT = 72
CODE = re.compile(r"\.(h|hpp|cpp|c|inc|py|pyi|cmake|proto|sh)$|(^|/)CMakeLists\.txt$|^Makefile$|^tools/[^.]+$")
VERBS = set("""accept add adopt align allow annotate answer apply assert assign avoid batch begin bench benchmark bind bound break
ask bring build bump cache call cancel change check choose clarify clean clear close collect combine compare compile complete
compress compute configure connect consolidate convert copy correct count cover create cut deal declare decode
deduplicate decompile default define delete deliver demote deprecate derive describe detect disable dispatch divide
document draw drop emit enable encode enforce ensure estimate evaluate exclude expand expect explain export expose
extend extract fail fill filter find finish fit fix fold follow forbid format forward free fuse fuzz gather generate give group
grow guard handle hide hold honor ignore implement import improve include increase infer initialise inline insert
install instrument integrate introduce invert isolate join judge keep key label land launch lay leave let lift limit
link list load lock log look loosen lower make map mark match measure merge migrate mirror model move multiply name
narrow normalise note number offer omit open optimise order overlap own pack pad pair parallelise parse pass permit pin
place plan plot point port precompile predict prefer prefetch prepare preserve prevent print profile promote propagate
protect prove provide prune publish pull push put quantise quantize query quote raise re-export re-record reach read rearrange rebuild
recognise record recover reduce refactor refine refuse register regenerate reject resample relax release remember
remove rename render reorder reorganise repair repeat replace report require reserve reset reshape resolve restore
restrict resume retry return reuse revert review revise rewrite rework round route run save say scale scan schedule
search select send separate set share shard shorten show shrink silence simplify size skip sort speed spell split
stage start state stop store stream strengthen strip sum support suppress swap switch tell test tighten time tolerate
trace track train transpose treat trim try tune turn type unify unite unpack unroll update upgrade use validate vary verify
version walk warn widen wire work wrap write yield""".split())


def git(root, *arguments):
    return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)


def findings(root, since=SINCE):
    """(commit, problem) for the commits after `since`; empty if the clone does not contain that commit."""
    if git(root, "cat-file", "-e", since + "^{commit}").returncode != 0:
        return
    listed = git(root, "log", "--no-merges", "--format=%h%x00%s%x00%b%x01", since + "..HEAD")
    for entry in listed.stdout.split("\x01"):
        if not entry.strip():
            continue
        commit, subject, body = entry.strip("\n").split("\x00")
        for what in judge(subject, body, git(root, "show", "--format=", "--name-only", commit).stdout.split("\n")):
            yield commit, what


def judge(subject, body, changed):
    first = re.match(r"[\w-]+", subject)
    if not first or first.group(0).lower() not in VERBS:
        yield "'%s' does not begin with an imperative verb (tools/checks/commits.py lists them)" % subject
    elif not subject[0].isupper():
        yield "'%s' does not begin with a capital letter" % subject
    if len(subject) > MAX_SUBJECT:
        yield "a subject of %d characters, more than %d: '%s'" % (len(subject), MAX_SUBJECT, subject)
    if subject.endswith("."):
        yield "'%s' ends with a full stop" % subject
    if not body.strip() and any(CODE.search(path) for path in changed):
        yield "'%s' changes code; its body says why, and what was measured" % subject
