// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "devices/cpu/common/common.h"

/// Weights that stay compressed in memory. The file stores them as integers with scales, as indices into tables of up
/// to 16 entries (with or without scales), or as a mask and float16 values for at most half of them. They are packed as
/// codes of 1, 2, 4 or 8 bits, or as a mask and values. Each prediction widens panels to floats: those of the expanded
/// constant, unless `Precision::wide` leaves out its rounding to float16.
namespace moka::devices::cpu {

/// A constant matrix [columns, depth] of such weights. The depth may span several axes of the constant. Scales are then
/// those of blocks of the first of them.
class CompressedWeights {
 public:
  /// wide: floats without StoredConstant::rounding.
  enum class Precision { wide, rounded };
  /// Null: input `arg` is stored in another form, or this processor has no vectors that widen fast. `twice`: columns
  /// that panels hold twice.
  static std::shared_ptr<const CompressedWeights> of(const MatchCall& m, int arg, int64_t columns, int64_t depth,
                                                     Precision precision, int64_t twice = 0);

  /// Packs the rows of a matrix of `depth` floats, those of the columns of one panel, to [depth][width].
  using PackPanel = std::function<void(const float* from, int64_t depth, float* to)>;

  /// Packs panels in the order of their columns.
  class Packer {
   public:
    /// `value`: the expanded constant of weights with a mask.
    Packer(const CompressedWeights& of, int64_t padded, const float* value, std::byte* to)
        : of_(of), padded_(padded), value_(value), to_(to) {}
    /// Packs the panel of `wide` columns from `column` on, padded to `width`.
    void pack(int64_t column, int64_t wide, int64_t width, const PackPanel& pack);
    /// Elements [first, first + n) as floats.
    void values(int64_t first, int64_t n, float* to) const;

   private:
    void pack_codes(int64_t column, int64_t wide, int64_t width, const PackPanel& pack);
    void copy_table(int64_t from, int64_t to);
    void pack_tables(int64_t column, int64_t wide);
    void pack_row_tables(int64_t wide, int64_t width, const PackPanel& pack);
    void pack_factors(int64_t column, int64_t wide, const PackPanel& pack);
    void pack_mask(int64_t column, int64_t width, const PackPanel& pack);

    const CompressedWeights& of_;
    int64_t padded_;
    const float* value_;
    std::byte* to_;
    int64_t values_ = 0;  ///< packed beside the mask
  };

  /// The bytes of a packed matrix with its columns padded to `padded` columns in all.
  size_t bytes(int64_t padded) const;
  /// As PrepareContext::pack. `bytes` may exceed bytes(padded).
  Result<std::shared_ptr<const std::byte>> packed(kernel::PrepareContext& context, int arg, std::string_view key,
                                                  int64_t padded, size_t bytes,
                                                  const std::function<void(Packer& packer, std::byte* to)>& fill) const;
  /// Widens rows [first, first + rows) of the panel of `width` columns from `column` on to [rows][width]. `first` is a
  /// multiple of 8.
  void widen(const std::byte* packed, int64_t column, int64_t width, int64_t padded, int64_t first, int64_t rows,
             float* to) const;
  /// The weight in a row of a panel with a mask.
  float masked(const std::byte* packed, int64_t column, int64_t width, int64_t padded, int64_t row, int64_t lane) const;

  int64_t depth() const { return depth_; }
  /// Elements of a column that share a scale.
  int64_t scaled_together() const { return depth_ / groups_; }
  bool has_mask() const { return stored_.is_half; }
  /// For KernelChoice::note.
  const char* note() const { return has_mask() ? "packed as mask and float16" : "packed as integers"; }

 private:
  bool has_tables() const { return !table_.empty_handle(); }
  int64_t rows_of_bytes() const;
  size_t tables_at(int64_t padded) const;
  size_t scales_at(int64_t padded) const;
  size_t factors_at(int64_t padded) const;
  bool has_factor() const { return stored_.rounding && !stored_.rounding->factor.empty_handle(); }
  /// Where the number of the first value of each group of rows of a panel lies beside a mask, and where all values do.
  int64_t row_groups() const;
  size_t starts_at(int64_t padded) const;
  size_t values_at(int64_t padded) const;

  kernel::StoredConstant stored_, integers_;  ///< integers_: without scales and tables
  int64_t depth_ = 0, groups_ = 1;            ///< groups of a column's elements that share a scale
  ir::Tensor table_;                          ///< of codes of up to 4 bits, also of integers
  bool row_tables_ = false;                   ///< whether each row of a panel has its table
  int64_t tables_ = 0;
  int bits_ = 8;                                    ///< of a packed code
  int64_t scaled_columns_ = 1, table_columns_ = 1;  ///< adjacent columns that share scales, or a table
  int64_t most_values_ = 0;                         ///< beside the mask
};

}  // namespace moka::devices::cpu
