// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "ir/program.h"

namespace moka {

/// Appends an operation; a failure fails the test and gives no values.
inline std::vector<ir::Value*> build_op(ir::Builder& builder, std::string_view name, std::vector<ir::NamedArg> args) {
  auto made = builder.append({name, std::move(args), {}, {}, {}});
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  std::vector<ir::Value*> out;
  if (made.ok())
    for (size_t i = 0; i < (*made)->output_count(); i++) out.push_back((*made)->output(i));
  return out;
}

}  // namespace moka
