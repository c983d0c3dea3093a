// SPDX-License-Identifier: Apache-2.0
#include "report_on_script.h"

#include <fmt/format.h>

namespace moka::cli {

namespace {

std::string quoted_for_sh(const std::string& text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

/// `text` with each @NAME@ replaced.
std::string filled_in(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values)
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
      text.replace(at, name.size(), value);
  return text;
}

}  // namespace

std::string far_command(const std::string& system, const std::string& machine, uint64_t bytes) {
  // No single quote, backslash, exclamation mark or line break: login shells differ in them.
  constexpr const char* kCommands[] = {
      "umask 077",
      "no() { echo \"$1\" >&2; exit 91; }",
      "h=$(uname -s)/$(uname -m)",
      "[ \"$h\" = \"@SYSTEM@\" ] || no \"the host is $h, this program is for @SYSTEM@\"",
      "for c in mktemp head tar; do command -v $c >/dev/null || no \"there is no $c on the host\"; done",
      "p=",
      "d=$(mktemp -d \"${TMPDIR:-/tmp}/moka-report-XXXXXX\") || no \"no temporary folder can be made on the host\"",
      "over() { [ -z \"$p\" ] || { kill $p; wait $p; } 2>/dev/null; rm -rf \"$d\"; }",
      "trap over EXIT",
      "trap \"exit 129\" HUP INT TERM",
      "trap \"\" PIPE",
      "head -c @BYTES@ | tar -xf - -C \"$d\" || no \"the files cannot be unpacked on the host\"",
      "[ -f \"$d/run\" ] || no \"the files did not arrive\"",
      ". \"$d/run\"",
  };
  std::string out;
  for (const char* command : kCommands) out += (out.empty() ? "" : "; ") + std::string(command);
  out = filled_in(out, {{"@SYSTEM@", system + "/" + machine}, {"@BYTES@", std::to_string(bytes)}});
  return "exec sh -c '" + out + "'";
}

std::string far_script(const FarProgram& program) {
  // The environment's folders keep caches of GPU drivers out of the user's home.
  constexpr const char* kScript = R"sh(cd "$d" && mkdir tmp cache || no "the files cannot be used on the host"
export TMPDIR="$d/tmp" MESA_SHADER_CACHE_DIR="$d/cache" __GL_SHADER_DISK_CACHE_PATH="$d/cache"
runs() { "$@" --version >/dev/null 2>tmp/why </dev/null; }
more=${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
has=$(getconf GNU_LIBC_VERSION 2>/dev/null)
if ! [ "${has#glibc 2.}" -ge @MINOR@ ] 2>/dev/null; then has=; fi
if [ -n "$has" ] && runs env LD_LIBRARY_PATH="$d/lib$more" "$d/moka"; then
  set -- env LD_LIBRARY_PATH="$d/lib$more" "$d/moka"
elif [ -n "$has" ] && runs env LD_LIBRARY_PATH="$d/lib:$d/lib/c++$more" "$d/moka"; then
  set -- env LD_LIBRARY_PATH="$d/lib:$d/lib/c++$more" "$d/moka"
else
  set -- "$d/lib/c/@LOADER@" --library-path "$d/lib:$d/lib/c++:$d/lib/c$more" "$d/moka"
  runs "$@" || no "the program does not run on the host: $(tail -n 1 tmp/why)"
fi
exec 3<&0
"$@" @ARGUMENTS@ </dev/null 3<&- &
p=$!
( read end; kill -TERM $p; sleep 5; kill -KILL $p ) <&3 >/dev/null 2>&1 &
w=$!
exec 3<&-
wait $p
rc=$?
p=
kill $w 2>/dev/null
exit $rc
)sh";
  const size_t dot = program.c_library.find('.');
  std::string arguments;
  for (const std::string& a : program.arguments) arguments += (arguments.empty() ? "" : " ") + quoted_for_sh(a);
  return filled_in(
      kScript,
      {{"@MINOR@", program.c_library.substr(dot + 1)}, {"@LOADER@", program.loader}, {"@ARGUMENTS@", arguments}});
}

}  // namespace moka::cli
