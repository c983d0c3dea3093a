// SPDX-License-Identifier: Apache-2.0
#include "compress/weight_files.h"

#include "compress/constants.h"
#include "compress/messages.h"

namespace moka::compress {

Result<format::Blob> blob_of(const format::Message& value, const format::WeightStore& store) {
  return store.blob(MOKA_TRY(text_of(value, "fileName")),
                    static_cast<uint64_t>(MOKA_TRY(editing::integer_of(value, "offset"))));
}

Status finish(format::ModelSource& source, const format::WeightStore& store, format::WeightFile& file) {
  MOKA_TRY(each(source.specification, "MILSpec.Value.BlobFileValue", [&](format::Message value) -> Status {
    const std::string moved = cat("@model_path/", kWeightFile);
    if (MOKA_TRY(text_of(value, "fileName")) == kNewFile) return value.set("fileName", moved);
    const format::Blob blob = MOKA_TRY(blob_of(value, store));
    MOKA_TRY(value.set("fileName", moved));
    return value.set("offset", file.add(blob.type, blob.data, blob.count));
  }));
  std::erase_if(source.weights, [](const auto& entry) { return entry.first.starts_with("weights/"); });
  if (!file.empty()) source.weights[std::string(kWeightFile)] = file.content();
  return {};
}

}  // namespace moka::compress
