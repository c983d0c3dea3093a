// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/cpu/common/common.h"
#include "devices/cpu/vector/rows.h"

namespace moka::devices::cpu {

/// A constant matrix whose rows are read as the file stores them, or packed into another order without widening.
/// Palettes of 64 and 256 entries, sparse matrices and palettes of vectors become fp16. Immutable once prepared.
class StoredRows {
 public:
  /// The rows of the matrix in input `arg`, or its columns when `transposed`. Sets `refusal` when the file stores it in
  /// an unsupported form.
  static std::shared_ptr<StoredRows> of(const MatchCall& m, int arg, bool transposed, std::string& refusal);

  /// Packs the rows if necessary, once for all plans. `all_rows`: all rows will be read, so the file is read ahead.
  Status prepare(kernel::PrepareContext& context, bool all_rows);

  int64_t count() const { return count_; }
  int64_t depth() const { return depth_; }
  vector::Encoding encoding() const { return rows_.encoding; }
  /// Whether the rows were converted and are not read as the file stores them.
  bool is_other_form() const { return stored_.is_half; }
  /// Floats per row of x after `arrange`; 0: products read x unchanged.
  int64_t arranged() const { return vector::bits_of(rows_.encoding) < 8 ? rows_.depth : 0; }
  double bytes() const { return static_cast<double>(count_) * static_cast<double>(rows_.step); }
  /// "int4 in blocks of 32".
  std::string describe() const;

  const vector::Rows& rows() const { return rows_; }
  void decode(int64_t row, float* to) const;

 private:
  void write_elements(std::byte* to) const;
  void write_halves(const float* from, uint16_t* to) const;
  void write_parameters(float* to) const;
  size_t parameter_floats() const;
  const float* value_table(int64_t row, int64_t k) const;

  kernel::StoredConstant stored_;
  vector::Rows rows_;
  int arg_ = 0;
  int64_t count_ = 0, depth_ = 0, tables_ = 0, scales_ = 0;
  bool transposed_ = false, as_stored_ = false;
  std::shared_ptr<const std::byte> packed_, parameters_;
};

}  // namespace moka::devices::cpu
