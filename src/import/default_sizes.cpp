// SPDX-License-Identifier: Apache-2.0
#include "import/default_sizes.h"

#include "import/importer.h"

namespace moka::import {

Result<std::map<std::string, ir::Shape>> default_sizes(const FunctionDescription& function, bool classic) {
  std::map<std::string, ir::Shape> out;
  for (const FeatureDescription& f : function.inputs) {
    if (f.kind != FeatureKind::multi_array && f.kind != FeatureKind::image) continue;
    ir::Type t = MOKA_TRY(boundary_type(f, classic));
    if (t.is_ranked() && t.is_concrete()) continue;
    if (f.kind == FeatureKind::image) {
      t.shape()[2] = f.image.height;
      t.shape()[3] = f.image.width;
      out.emplace(f.name, t.shape());
      continue;
    }
    const std::vector<int64_t> shape = f.array.default_shape();
    if (shape.empty()) return std::map<std::string, ir::Shape>();
    out.emplace(f.name, MOKA_TRY(ir::Shape::make(shape)));
  }
  return out;
}

}  // namespace moka::import
