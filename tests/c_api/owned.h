// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "moka/moka_files.h"

/// Handles of C that free themselves.
///
///     moka_description* d = nullptr;
///     ASSERT_EQ(moka_describe(path, &d), MOKA_OK);
///     const test::Owner<moka_description> owner(d);
namespace moka::test {

struct FreeHandle {
  void operator()(moka_model* m) const { moka_model_free(m); }
  void operator()(moka_features* f) const { moka_features_free(f); }
  void operator()(moka_state* s) const { moka_state_free(s); }
  void operator()(moka_description* d) const { moka_description_free(d); }
  void operator()(moka_picture* p) const { moka_picture_free(p); }
  void operator()(moka_compute_plan* p) const { moka_compute_plan_free(p); }
};
template <class T>
using Owner = std::unique_ptr<T, FreeHandle>;

}  // namespace moka::test
