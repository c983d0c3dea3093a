// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/product.h"

namespace moka::devices::gpu {

/// A constant matrix that stays compressed in the device's memory (shaders/packed.glsl). Its rows are the columns of a
/// product. Immutable once prepared.
class PackedRows {
 public:
  /// The rows of input `arg`, whose rank is at least 2. Its first axis counts the rows, and the other axes form one. If
  /// `transposed`, the input is a matrix whose columns are the rows. Sets `refusal` when the shader cannot decode it.
  static std::shared_ptr<PackedRows> of(const MatchCall& m, int arg, bool transposed, std::string& refusal);
  /// Makes `c` upload the rows before its first run.
  void prepare_in(KernelChoice& c, std::shared_ptr<PackedRows> self);

  /// Multiplies x, [rows, depth], by the transpose of this matrix. Precondition: `c` of prepare_in() was prepared.
  Status record(Recorder& recorder, Element floats, const After& after, int64_t rows, const Use& x, const Use& bias,
                const Use& addend, const Use& y) const;
  std::string refusal(int64_t rows) const;
  std::string describe() const;
  int64_t count() const { return count_; }
  int64_t depth() const { return depth_; }
  double bytes() const { return static_cast<double>(count_ * words_ * 4); }

 private:
  std::array<int64_t, 3> groups(int64_t rows) const;
  Status write_codes(uint32_t* to) const;
  void write_parameters(float* to) const;
  size_t parameter_count() const;

  kernel::StoredConstant stored_;
  const Features* card_ = nullptr;
  int arg_ = 0, bits_ = 8;
  bool transposed_ = false;
  int64_t count_ = 0, depth_ = 0, words_ = 0;
  int64_t scale_rows_ = 1, scale_depth_ = 1, scale_groups_ = 1, scales_ = 0;
  int64_t table_rows_ = 1, tables_ = 0, entries_ = 0;
  std::shared_ptr<const kernel::Buffer> codes_, parameters_;
};

}  // namespace moka::devices::gpu
