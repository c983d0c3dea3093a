// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace moka::passes {

/// What a pass did, for users: "relu_1 into conv_1".
struct Remark {
  std::string_view pass;
  std::string text;
  /// The program's own result is not a number, or infinite, where the new one is finite.
  bool changes_result = false;
};

struct PassContext {
  ir::Function& function;
  const ir::OpTable& table;
  std::vector<Remark>& remarks;
  std::string_view pass;  ///< the running pass
  void remark(std::string text) { remarks.push_back({pass, std::move(text)}); }
  /// For a change beyond rounding. Whoever predicts is told.
  void change(std::string text) { remarks.push_back({pass, std::move(text), true}); }
};

/// Rewrites a function without changing what it computes, up to rounding. Errors are bugs or exhausted budgets.
struct Pass {
  std::string_view name;
  Status (*run)(PassContext&);
};

/// All passes. The build makes this list of the files src/passes/pass_*.cpp, one pass each.
std::span<const Pass> all();
const Pass* find(std::string_view name);

/// The names of the passes that run_pipeline runs, in order; remove_dead_code runs after each.
std::span<const std::string_view> order();
/// Runs one pass. Error internal: there is none of this name.
Status run_pass(ir::Function& function, std::string_view name, const ir::OpTable& table, std::vector<Remark>& remarks);

struct PipelineOptions {
  bool optimize = true;
  bool widen_float16 = true;  ///< compute and keep float16 values in float32
};

/// Runs the passes in their order (pipeline.cpp) on every function and verifies the program before and after.
Status run_pipeline(ir::Program& program, const ir::OpTable& table, const PipelineOptions& options,
                    std::vector<Remark>& remarks);

/// Calls `fn` for every operation of the block in order, after those of the operation's own blocks. `fn` may erase the
/// operation it is given and those before it, and insert before it.
void for_each_op(ir::Block& block, const std::function<void(ir::Op&)>& fn);
/// The same, until a call fails; returns that error.
Status try_each_op(ir::Block& block, const std::function<Status(ir::Op&)>& fn);

}  // namespace moka::passes
