// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/op_def.h"

namespace moka::runtime {

/// What a prediction overwrites of states in host memory, to put it back when the prediction is stopped. Its memory
/// stays for the next prediction.
class StateUndo {
 public:
  void clear();
  /// Saves the whole state, once.
  void save(const ir::TensorView& state);
  /// Saves the slice of `state` that a call of slice_update, which reads it as x, is about to overwrite.
  void save_slice(const ir::OpCall& call, const ir::TensorView& state);
  /// Puts everything back.
  void restore();

 private:
  void save(std::byte* data, size_t bytes);

  struct Piece {
    std::byte* data;
    size_t bytes, offset;  ///< offset: in saved_
  };
  std::vector<Piece> pieces_;
  std::vector<std::byte> saved_;
  std::vector<const void*> whole_;  ///< states of which nothing more needs to be saved
};

}  // namespace moka::runtime
