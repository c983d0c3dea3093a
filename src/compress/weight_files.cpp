#include "compress/weight_files.h"

#include "compress/constants.h"
#include "compress/messages.h"

namespace moka::compress {

Status finish(format::ModelSource& source, const format::WeightStore& store, format::WeightFile& file) {
  MOKA_TRY(each(source.specification, "MILSpec.Value.BlobFileValue", [&](format::Message value) -> Status {
    const std::string name = MOKA_TRY(text(value, "fileName"));
    const std::string moved = cat("@model_path/", kWeightFile);
    if (name == kNewFile) return value.set("fileName", moved);
    const auto offset = MOKA_TRY(value.values("offset"));
    const format::Blob blob = MOKA_TRY(store.blob(name, offset.empty() ? 0 : std::get<uint64_t>(offset[0])));
    MOKA_TRY(value.set("fileName", moved));
    return value.set("offset", file.add(blob.type, blob.data, blob.count));
  }));
  std::erase_if(source.weights, [](const auto& entry) { return entry.first.starts_with("weights/"); });
  if (!file.empty()) source.weights[std::string(kWeightFile)] = file.content();
  return {};
}

}  // namespace moka::compress
