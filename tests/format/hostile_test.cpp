// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "format/espresso/network.h"
#include "format/format_util.h"
#include "format/mlmodelc/coremldata.h"
#include "format/mlpackage/manifest.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

/// Reads everything that was decoded. Nothing here may crash.
void use(const Bytes& bytes, std::string_view name) {
  if (name == "weight.bin" || name == "blobs.bin") {
    if (auto all = list_blobs(bytes); all.ok()) {
      for (const Blob& b : *all) ASSERT_LE(b.data.size(), bytes.size());
    }
    for (uint64_t offset = 0; offset < bytes.size() && offset < 4096; offset += 64) (void)read_blob(bytes, offset).ok();
  } else if (name == "coremldata.bin") {
    (void)parse_coremldata(bytes).ok();
  } else if (name == "model.espresso.net") {
    (void)espresso::parse_net(bytes).ok();
  } else if (name == "model.espresso.shape") {
    (void)espresso::parse_shapes(bytes).ok();
  } else if (name == "model.espresso.weights") {
    (void)espresso::parse_weights(bytes).ok();
  } else if (name == "Manifest.json") {
    (void)parse_manifest(bytes).ok();
  } else {
    auto file = open_model_bytes(bytes, {}, {std::make_shared<MemoryBudget>(size_t{256} << 20)});
    if (!file.ok()) return;
    for (const auto& stage : file->stages(file->spec())) (void)stage.model->ByteSizeLong();
    for (const auto& layer : file->spec().neuralnetwork().layers()) {
      (void)file->weight_data(layer.convolution().weights()).ok();
      (void)file->weight_data(layer.innerproduct().weights()).ok();
    }
    for (const auto& [name, function] : file->spec().mlprogram().functions())
      for (const auto& [opset, block] : function.block_specializations())
        for (const auto& op : block.operations())
          for (const auto& [key, value] : op.attributes())
            (void)file->tensor_data(value.immediatevalue().tensor()).ok();
  }
}

std::vector<fs::path> seeds() {
  std::vector<fs::path> out{fs::path(MOKA_TEST_DATA) / "blobs.bin"};
  if (auto models = test::models_folder())
    for (const auto& entry : fs::recursive_directory_iterator(*models)) {
      auto name = entry.path().filename();
      if (name == "weight.bin" || name == "coremldata.bin" || name == "Manifest.json" ||
          name.extension() == ".mlmodel" || name.string().starts_with("model.espresso."))
        out.push_back(entry.path());
    }
  return out;
}

TEST(Hostile, TruncationsNeverCrash) {
  std::mt19937 random(1);
  for (const auto& path : seeds()) {
    SCOPED_TRACE(path.string());
    Bytes whole = Bytes::from(test::read_file(path));
    for (int i = 0; i < 60; ++i) {
      size_t n = i < 40 ? std::min<size_t>(static_cast<size_t>(i) * 7, whole.size()) : random() % (whole.size() + 1);
      // A copy of exactly this size lets a sanitizer detect reads past its end.
      use(Bytes::copy_of(whole.span.subspan(0, n)), path.filename().string());
    }
  }
}

TEST(Hostile, ChangedBytesNeverCrash) {
  std::mt19937 random(2);
  for (const auto& path : seeds()) {
    SCOPED_TRACE(path.string());
    std::string whole = test::read_file(path);
    if (whole.empty()) continue;
    for (int i = 0; i < 60; ++i) {
      std::string changed = whole;
      // The structure is at the front of most of these files.
      size_t range = i % 2 ? changed.size() : std::min<size_t>(changed.size(), 600);
      for (unsigned k = 0; k <= random() % 4; ++k) changed[random() % range] = static_cast<char>(random());
      use(Bytes::from(std::move(changed)), path.filename().string());
    }
  }
}

}  // namespace
}  // namespace moka::format
