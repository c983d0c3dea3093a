// SPDX-License-Identifier: Apache-2.0
// Input: the layers of a compiled neural network (model.espresso.net) and, after a zero byte, the sizes of its blobs
// (model.espresso.shape). Every blob that the layers name has 4 KiB of zeros. The whole input is also read as the other
// files of a compiled network.
#include <cstdint>

#include "format/espresso/specification.h"
#include "format/proto/model.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace moka::format;
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  (void)espresso::parse_weights(bytes).ok();
  (void)espresso::parse_transforms(bytes).ok();
  const size_t end = std::min(bytes.text().find('\0'), size), next = std::min(end + 1, size);
  auto shapes = espresso::parse_shapes(bytes.slice(next, size - next));
  auto net = espresso::parse_net(bytes.slice(0, end));
  if (!net.ok()) return 0;
  if (shapes.ok()) net->shapes = *std::move(shapes);
  static const std::string zeros(4096, '\0');
  for (uint64_t id = 0; id < 64; ++id) net->blobs[id] = moka::Bytes{std::as_bytes(std::span(zeros)), nullptr};
  CoreMLData description;
  description.type = 500;
  moka::proto::Model model;
  std::vector<Payload> payloads;
  (void)espresso::to_specification(*net, description, {}, model, payloads).ok();
  return 0;
}
