// SPDX-License-Identifier: Apache-2.0
// Input: a specification (.mlmodel).
#include <cstdint>

#include "format/model_file.h"
#include "format/proto/model.pb.h"

namespace {

using moka::format::ModelFile;

void read_program(const ModelFile& file, const moka::proto::MILSpec::Program& program) {
  for (const auto& [name, function] : program.functions())
    for (const auto& [opset, block] : function.block_specializations())
      for (const auto& op : block.operations())
        for (const auto& [key, value] : op.attributes()) (void)file.tensor_data(value.immediatevalue().tensor()).ok();
}

void read_model(const ModelFile& file, const moka::proto::Model& model) {
  for (const auto& layer : model.neuralnetwork().layers()) {
    for (const auto* weight : {&layer.convolution().weights(), &layer.innerproduct().weights(),
                               &layer.loadconstant().data(), &layer.batchnorm().gamma()})
      (void)file.weight_data(*weight).ok();
  }
  if (model.has_mlprogram()) read_program(file, model.mlprogram());
  for (const auto& stage : file.stages(model)) read_model(stage.file, *stage.model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto budget = std::make_shared<moka::MemoryBudget>(size_t{256} << 20);
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  auto file = moka::format::open_model_bytes(bytes, {}, {budget});
  if (file.ok()) read_model(*file, file->spec());
  return 0;
}
