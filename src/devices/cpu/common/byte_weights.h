#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "devices/cpu/common/common.h"

/// Weights that the file stores as integers with scales, or as indices into tables of up to 16 entries. They are packed
/// as bytes, and panels are widened in each prediction. The floats are the same as those of the expanded constant.
namespace moka::devices::cpu {

/// A constant matrix [columns, depth] of such integers. The depth may span several axes of the constant. Scales are
/// then those of blocks of the first of them.
class ByteWeights {
 public:
  /// Null: input `arg` is stored in another form, or this processor has no vectors that widen bytes fast.
  static std::shared_ptr<const ByteWeights> of(const MatchCall& m, int arg, int64_t columns, int64_t depth);

  /// Packs the rows of a matrix of `depth` floats, those of the columns of one panel, to [depth][width].
  using PackPanel = std::function<void(const float* from, int64_t depth, float* to)>;

  /// The bytes of a packed matrix with its columns padded to `padded` columns in all.
  size_t bytes(int64_t padded) const;
  /// Packs the panel of `wide` columns from `column` on, padded to `width`.
  void pack(int64_t column, int64_t wide, int64_t width, int64_t padded, const PackPanel& pack, std::byte* to) const;
  /// Widens rows [first, first + rows) of this panel to [rows][width].
  void widen(const std::byte* packed, int64_t column, int64_t width, int64_t padded, int64_t first, int64_t rows,
             float* to) const;
  /// As PrepareContext::pack.
  Result<std::shared_ptr<const std::byte>> packed(kernel::PrepareContext& context, int arg, std::string_view key,
                                                  size_t bytes, const std::function<void(std::byte* to)>& fill) const;
  /// Elements [first, first + n) as floats.
  void values(int64_t first, int64_t n, float* to) const;
  int64_t depth() const { return depth_; }
  /// Elements of a column that share a scale.
  int64_t scaled_together() const { return depth_ / groups_; }

 private:
  bool has_tables() const { return !stored_.table.empty_handle(); }
  int64_t tables() const { return stored_.table.shape()[0]; }

  kernel::StoredConstant stored_, integers_;  ///< integers_: without scales and tables
  int64_t depth_ = 0, groups_ = 1;            ///< groups of a column's elements that share a scale
  int64_t same_columns_ = 1;                  ///< adjacent columns that share scales or a table
};

}  // namespace moka::devices::cpu
