// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/program_message.h"
#include "format/weights/weight_file.h"
#include "ir/op_def.h"

namespace moka::compiler {

/// Places tensors of ten elements and more into `weights`, if they have an element type that Core ML keeps in weight
/// files of programs of this opset. The program calls the file "@model_path/weights/weight.bin". `weights` refers to
/// the tensors' memory and must outlive the result.
std::function<std::optional<BlobPlace>(const ir::Constant&)> place_in(format::WeightFile& weights, ir::Opset opset);

}  // namespace moka::compiler
