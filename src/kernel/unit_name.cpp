#include "kernel/unit_name.h"

namespace moka::kernel {

std::string_view name_of(ComputeUnit unit) {
  switch (unit) {
    case ComputeUnit::cpu: return "cpu";
    case ComputeUnit::gpu: return "gpu";
    case ComputeUnit::neural_engine: return "neuralEngine";
  }
  return "";
}

}  // namespace moka::kernel
