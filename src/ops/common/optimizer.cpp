// SPDX-License-Identifier: Apache-2.0
#include "ops/common/optimizer.h"

#include <vector>

namespace moka::ops {

OpBuilder optimizer(std::string name, std::string doc, std::initializer_list<const char*> kept,
                    std::initializer_list<const char*> numbers) {
  OpBuilder b(std::move(name), std::move(doc), Opset::ios13);
  b.type_var("T", only(DType::fp32)).in("weight", "T").in("gradient", "T").traits(Trait::updates);
  for (const char* k : kept) b.in(k, "T");
  for (const char* n : numbers) b.in(n, "T");
  std::vector<std::string> tensors{"gradient"}, scalars(numbers.begin(), numbers.end());
  tensors.insert(tensors.end(), kept.begin(), kept.end());
  return b.infer([tensors, scalars](const OpCall& call) -> Result<std::vector<Type>> {
    const Type& weight = call.type("weight");
    for (const std::string& t : tensors)
      if (!is_compatible(call.type(t), weight))
        return call.error(t, cat(weight, ", the type of weight"), cat(call.type(t)));
    for (const std::string& s : scalars)
      if (call.type(s).is_ranked() && call.rank(s) != 0) return call.error(s, "a scalar", cat(call.type(s)));
    return std::vector<Type>(tensors.size(), weight);
  });
}

}  // namespace moka::ops
