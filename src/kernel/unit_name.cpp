#include "kernel/unit_name.h"

#include "kernel/hardware.h"

namespace moka::kernel {

std::string_view name_of(ComputeUnit unit) {
  switch (unit) {
    case ComputeUnit::cpu: return "cpu";
    case ComputeUnit::gpu: return "gpu";
    case ComputeUnit::neural_engine: return "neuralEngine";
  }
  return "";
}

bool is_software(const Device& device) {
  const auto* hardware = dynamic_cast<const Hardware*>(&device);
  return hardware != nullptr && !hardware->software().empty();
}

std::string_view unit_name_of(const Device& device) {
  return name_of(is_software(device) ? ComputeUnit::cpu : device.unit());
}

}  // namespace moka::kernel
