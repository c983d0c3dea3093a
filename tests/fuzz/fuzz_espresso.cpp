// Input: the layers of a compiled neural network (model.espresso.net). Every blob that they name has 4 KiB of zeros.
#include <cstdint>

#include "format/espresso/specification.h"
#include "format/proto/model.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace moka::format;
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  (void)espresso::parse_shapes(bytes).ok();
  (void)espresso::parse_weights(bytes).ok();
  (void)espresso::parse_transforms(bytes).ok();
  auto net = espresso::parse_net(bytes);
  if (!net.ok()) return 0;
  static const std::string zeros(4096, '\0');
  for (uint64_t id = 0; id < 64; ++id) net->blobs[id] = moka::Bytes{std::as_bytes(std::span(zeros)), nullptr};
  CoreMLData description;
  description.type = 500;
  moka::proto::Model model;
  std::vector<Payload> payloads;
  (void)espresso::to_specification(*net, description, {}, model, payloads).ok();
  return 0;
}
