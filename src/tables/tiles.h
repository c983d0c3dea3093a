// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "import/description.h"
#include "moka/feature.h"
#include "runtime/model.h"

namespace moka::tables {

/// Predicts tiles of rows with the variant of a model that takes rows (ImportOptions::rows). Tiles run concurrently.
class Tiles {
 public:
  /// `model` and `columns` must outlive it. `threads`: how many threads divide the tiles.
  Tiles(const runtime::Model& model, const Features& columns, int64_t rows, int threads);

  /// Errors: invalid_argument (a column), unsupported (states).
  Status set_up();
  int64_t count() const { return (rows_ + tile_ - 1) / tile_; }
  int64_t first_row(int64_t tile) const { return tile * tile_; }
  /// The last tile begins earlier so that it has as many rows as the others. Adds what deviated from the plan to
  /// `remarks`. Errors: also those of the stop.
  Status run(int64_t i, std::vector<FeatureValue>& outputs, std::vector<std::string>& remarks, const Stop& stop) const;
  /// Memory for the outputs of the whole table. Error unsupported: an output has no rows.
  Result<std::vector<FeatureValue>> new_outputs() const;

 private:
  struct Input {
    const import::FeatureDescription* feature;
    const FeatureValue* column;  ///< nullptr: use the default
    std::vector<int64_t> shape;  ///< of a tile of the column
  };
  const runtime::Model& model_;
  const Features& columns_;
  int64_t rows_, tile_;
  std::vector<Input> inputs_;
  std::vector<ir::Type> types_;
};

}  // namespace moka::tables
