#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD CXX CC SANITIZERS: the library installed from BUILD serves find_package and pkg-config.
set -euo pipefail
build=$1 cxx=$2 cc=$3 sanitize=$4
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flags=(-O1)
[ -z "$sanitize" ] || flags+=("-fsanitize=$sanitize")
export ASAN_OPTIONS=detect_leaks=0

expect() {  # WHAT EXPECTED GOT
  [ "$2" = "$3" ] || { echo "$1: expected '$2', got '$3'" >&2; exit 1; }
  echo "$1: $3"
}

cmake --install "$build" --prefix "$folder/first" --component library >/dev/null
[ ! -x "$build/bin/moka" ] || cmake --install "$build" --prefix "$folder/first" >/dev/null
# The installation moves afterwards, so no file may refer to its first location.
mv "$folder/first" "$folder/prefix"

# CMakeLists.txt has the version; all else follows it.
version=$(sed -n 's/^project(moka VERSION \([0-9.]*\) .*/\1/p' "$here/../../CMakeLists.txt")
expect "version in CHANGELOG.md" "$version" "$(sed -n 's/^## \([0-9.]*\) .*/\1/p' "$here/../../CHANGELOG.md" | head -n 1)"

cmake -S "$here/consumer" -B "$folder/cmake" -DEXPECTED_VERSION="$version" -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_FLAGS="${flags[*]}" >/dev/null
cmake --build "$folder/cmake" >/dev/null
expect "find_package" 3 "$("$folder/cmake/consumer")"

if [ -x "$folder/prefix/bin/moka" ]; then
  example=$here/../../examples/cmake
  cp -r "$example" "$folder/example"
  cmake -S "$folder/example" -B "$folder/plane" -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_CXX_FLAGS="${flags[*]}" >/dev/null
  cmake --build "$folder/plane" >/dev/null
  expect "moka_add_model" 9 "$("$folder/plane/plane" 1 2)"
  cmake --install "$folder/plane" --prefix "$folder/installed" >/dev/null
  lib=$(dirname "$(find "$folder/prefix" -name libmoka.so)")
  expect "moka_add_model, installed" 10 "$(LD_LIBRARY_PATH=$lib "$folder/installed/bin/plane" 0 3)"
  # Another model of the same interface: its weights are 2 and 4.
  python3 - "$folder/example/Plane.mlmodel" <<'CHANGE'
import struct, sys
data = open(sys.argv[1], "rb").read()
changed = data.replace(struct.pack("<d", 3), struct.pack("<d", 4))
assert changed != data
open(sys.argv[1], "wb").write(changed)
CHANGE
  cmake --build "$folder/plane" >/dev/null
  expect "moka_add_model, a changed model" 11 "$("$folder/plane/plane" 1 2)"
fi

# The installed examples, with only the installed files and without additional flags.
examples=$(find "$folder/prefix" -type d -path '*/doc/moka/examples')
cp -r "$examples" "$folder/examples"
cmake -S "$folder/examples/cpp" -B "$folder/examples/cpp/build" -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_CXX_FLAGS="${flags[*]}" >/dev/null
cmake -S "$folder/examples/c" -B "$folder/examples/c/build" -DCMAKE_PREFIX_PATH="$folder/prefix" -DCMAKE_C_COMPILER="$cc" \
  -DCMAKE_C_FLAGS="${flags[*]}" >/dev/null
for kind in c cpp; do cmake --build "$folder/examples/$kind/build" >/dev/null; done
expect "installed example" "  square" "$("$folder/examples/cpp/build/example_image_in" "$examples/models/shapes.mlmodel" "$examples/models/square.png" |
  sed -n 's/^ *[0-9.]*%//p' | head -n 1)"
expect "installed C example" 0 "$("$folder/examples/c/build/predict" "$examples/models/rent.mlmodel" >/dev/null; echo $?)"

pc=$(find "$folder/prefix" -name moka.pc)
export PKG_CONFIG_PATH=${pc%/*}
libraries=$(pkg-config --variable=libdir moka)
expect "version in moka.pc" "$version" "$(pkg-config --modversion moka)"
strict=(-Wall -Wextra -pedantic -Werror)
# shellcheck disable=SC2046
"$cc" -std=c99 "${strict[@]}" "${flags[@]}" "$here/consumer/consumer.c" -o "$folder/c" $(pkg-config --cflags --libs moka)
# shellcheck disable=SC2046
"$cxx" -std=c++20 "${strict[@]}" "${flags[@]}" "$here/consumer/consumer.cpp" -o "$folder/cxx" $(pkg-config --cflags --libs moka)
# Without the standard, the C++ interface says which one it needs. The one for C takes any.
# shellcheck disable=SC2046
refusal=$("$cxx" -std=c++17 -fsyntax-only "$here/consumer/consumer.cpp" $(pkg-config --cflags moka) 2>&1 || true)
expect "pkg-config, C++17" "-std=c++20" "$(grep -o -m 1 -e '-std=c++20' <<<"$refusal")"
# shellcheck disable=SC2046
"$cxx" -std=c++11 "${strict[@]}" -fsyntax-only -x c++ "$here/consumer/consumer.c" $(pkg-config --cflags moka)
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
expect "pkg-config, C" "$version not found" "$("$folder/c")"
expect "pkg-config, C++" 3 "$("$folder/cxx")"

if [ -x "$folder/prefix/bin/moka" ]; then
  unset LD_LIBRARY_PATH
  expect "program" "moka $version" "$("$folder/prefix/bin/moka" --version)"
  for file in share/bash-completion/completions/moka share/zsh/site-functions/_moka \
    share/fish/vendor_completions.d/moka.fish share/man/man1/moka.1; do
    [ -s "$folder/prefix/$file" ] || { echo "not installed: $file" >&2; exit 1; }
    grep -q -- '--compute-units\|compute-units\|compute\\-units' "$folder/prefix/$file" || { echo "$file: lacks an option" >&2; exit 1; }
  done
  offered=$(bash -c "source '$folder/prefix/share/bash-completion/completions/moka'
    COMP_WORDS=(moka predict --precision ''); COMP_CWORD=3; _moka; echo \"\${COMPREPLY[*]}\"")
  expect "bash completion" "at-least exact" "$offered"
fi
