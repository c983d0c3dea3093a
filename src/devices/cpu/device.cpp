#include "devices/cpu/device.h"

#include "devices/cpu/isa.h"
#include "devices/cpu/kernels/families.h"

namespace moka::devices::cpu {

namespace {

class Cpu final : public kernel::Device {
 public:
  Cpu() {
    isa();  // limits oneDNN before its first use
    for (auto family : {byte_kernels(),
                        winograd_kernels(),
                        groups_kernels(),
                        narrow_kernels(),
                        taps_kernels(),
                        pointwise_kernels(),
                        depthwise_kernels(),
                        planes_kernels(),
                        transposed_pixels_kernels(),
                        transposed_phases_kernels(),
                        stream_kernels(),
                        conv_kernels(),
                        strassen_kernels(),
                        gemm_kernels(),
                        matmul_kernels(),
                        elementwise_kernels(),
                        norm_kernels(),
                        reduce_kernels(),
                        recurrent_kernels(),
                        concat_kernels(),
                        attention_kernels(),
                        line_kernels(),
                        lrn_kernels(),
                        max_pool_kernels(),
                        sample_kernels(),
                        permute_kernels(),
                        slice_kernels(),
                        slice_update_kernels(),
                        gather_kernels(),
                        quantize_kernels()})
      kernels_.insert(kernels_.end(), family.begin(), family.end());
  }
  std::string_view name() const override { return "cpu"; }
  std::string description() const override { return describe(); }
  std::string identity() const override { return cpu::identity(); }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::cpu; }
  int rank() const override { return 100; }
  std::span<const KernelDef> kernels() const override { return kernels_; }

 private:
  std::vector<KernelDef> kernels_;
};

}  // namespace

const kernel::Device& device() {
  static const Cpu d;
  return d;
}

}  // namespace moka::devices::cpu
