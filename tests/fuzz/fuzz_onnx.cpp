// SPDX-License-Identifier: Apache-2.0
// Input: an ONNX model, read, its tensors decoded, and written again.
#include <cstdint>
#include <cstdlib>

#include "format/onnx/read.h"
#include "format/onnx/write.h"

namespace {

namespace onnx = moka::format::onnx;

void touch(const std::vector<onnx::Tensor>& tensors) {
  for (const onnx::Tensor& t : tensors) {
    auto bytes = onnx::contents(t, moka::format::WeightStore());
    if (!bytes.ok()) continue;
    unsigned sum = 0;
    for (std::byte b : bytes->span) sum += static_cast<unsigned>(b);
    volatile unsigned sink = sum;
    (void)sink;
  }
}

void touch(const onnx::Graph& graph);

void touch(const std::vector<onnx::Node>& nodes) {
  for (const onnx::Node& n : nodes)
    for (const onnx::Attribute& a : n.attributes) {
      touch(a.tensors);
      for (const onnx::Graph& g : a.graphs) touch(g);
    }
}

void touch(const onnx::Graph& graph) {
  touch(graph.initializers);
  touch(graph.nodes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  auto model = onnx::read_model(bytes);
  if (!model.ok()) return 0;
  touch(model->graph);
  for (const onnx::Function& f : model->functions) touch(f.nodes);
  const auto once = onnx::write_model(*model)->model.joined();
  auto again = onnx::read_model(once);
  if (!again.ok() || onnx::write_model(*again)->model.joined().text() != once.text()) std::abort();
  return 0;
}
