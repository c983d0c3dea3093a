#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exports_test.sh LIBRARY: the library exports the two interfaces and no internal symbol.
set -euo pipefail
symbols=$(nm -DC --defined-only "$1" | cut -d' ' -f3-)
# grep fails where it finds nothing, which is what the test wants.
inside=$(grep -vE '^(moka_[a-z0-9_]+|(vtable for |typeinfo for |typeinfo name for )?moka::[A-Za-z_]+(::|\(|$|\[).*|(vtable for |typeinfo for |typeinfo name for )moka::[A-Za-z]+)$' <<<"$symbols" || true)
inside+=$(grep -E '^[^(]*(moka::(ir|ops|format|import|passes|kernel|devices|plan|runtime|api|checking|proto)::|::Impl::)' <<<"$symbols" || true)
if [ -n "$inside" ]; then
  echo "exported, but not part of the interface:" >&2
  echo "$inside" >&2
  exit 1
fi
grep -q '^moka_model_predict$' <<<"$symbols" && grep -q '^moka::Model::load(' <<<"$symbols" || { echo "the interface is not exported" >&2; exit 1; }
echo "$(wc -l <<<"$symbols") symbols, all of the interface"
