#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/vulkan/recorder.h"
#include "devices/vulkan/shaders/numbers.inc"
#include "kernel/memory.h"

/// Helpers that all families of Vulkan kernels use.
namespace moka::devices::vulkan {

using kernel::BufferView;
using kernel::KernelChoice;
using kernel::KernelDef;
using kernel::Layout;
using kernel::Match;
using kernel::MatchCall;
using kernel::PrepareContext;
using kernel::RecordArgs;
using kernel::Recorder;

/// How buffers hold elements of type `t` in this layout; nullopt: no shader reads them.
std::optional<Element> element_of(ir::DType t, Layout layout = {});
/// The shader variant that reads or writes indices of type `t`: "i32", "u16" or "i16". Empty: none.
std::string_view name_of_index(ir::DType t);
/// How buffers hold a floating-point output: as float16 if the program computes float16 and the driver can store it.
Element float_element(const MatchCall& m, size_t output = 0);

/// Why the device cannot access `params` or the outputs: they are not tensors, empty, or larger than a driver's
/// buffers. Empty: it can.
std::string refusal_of(const MatchCall& m, std::initializer_list<std::string_view> params);
/// As refusal_of(), and also refuses values that are not floating-point.
std::string refusal_of_floats(const MatchCall& m, std::initializer_list<std::string_view> params);

/// A choice that reads those of `params` that are present at each run, and all other inputs once before the first run.
/// It holds fp32 tensors among `params` and the outputs as `floats`.
KernelChoice choice_of(const MatchCall& m, std::string_view kernel, std::initializer_list<std::string_view> params,
                       Element floats = Element::f32);
/// Adds the estimated seconds of `multiply_adds` and of moving the tensors that `c` accesses at each run.
void set_cost(KernelChoice& c, const MatchCall& m, double multiply_adds = 0);

/// An elementwise function with its constants.
struct Function {
  uint32_t number = F_NONE;
  float a = 0, b = 0;
};
/// The function that an operation applies; nullopt: it is no such function, or a parameter is not constant.
std::optional<Function> function_of(const ir::OpCall& call);
std::optional<Function> function_of(const ir::Epilogue& e);
std::vector<std::string_view> function_operations();
/// The first epilogues of an operation, as many as a shader can apply to its result.
struct After {
  std::array<Function, 2> functions;
  size_t count = 0;
  std::vector<uint32_t> constants(std::initializer_list<uint32_t> first) const;
};
After after_of(std::span<const ir::Epilogue> epilogues);
/// As after_of(), but all functions that limit a range, and hard_swish, become one function. They then share a shader.
After limits_of(std::span<const ir::Epilogue> epilogues);
/// The functions' constants, as push constants.
struct AfterParams {
  float a1 = 0, b1 = 0, a2 = 0, b2 = 0;
  explicit AfterParams(const After& a)
      : a1(a.functions[0].a), b1(a.functions[0].b), a2(a.functions[1].a), b2(a.functions[1].b) {}
};
/// The flags that tell shaders/after.glsl what to apply to the result.
uint32_t has_of(bool bias, bool addend, const After& after);

inline VulkanRecorder& recorder_of(Recorder& r) { return static_cast<VulkanRecorder&>(r); }
inline const BufferView& view(std::span<const BufferView> all, int i) { return all[static_cast<size_t>(i)]; }
std::string shader_name(std::string_view stem, Element e);
/// The largest shared memory of a workgroup, in bytes.
uint32_t max_shared();
/// Whether the device runs thousands of workgroups at a time.
bool is_large();
/// The name of the element type of tiles: "h16" if `e` is float16 and the driver computes in it.
std::string_view tile_name_of(Element e);
/// The name of the shader `stem` for tiles of `e` and of `weights`.
std::string tile_shader_name(std::string_view stem, Element e, Element weights);

/// The first `floats` float32 elements of a step's scratch memory, which the dispatch writes.
Use scratch_of(const RecordArgs& args, int64_t floats);

/// A constant input in the device's memory, as a kernel reads it. Set by `prepare`.
struct Uploaded {
  std::shared_ptr<const kernel::Buffer> buffer;
};
/// How a kernel that computes in `e` holds a floating-point constant: as float16 if the model does.
Element weights_element(const MatchCall& m, int arg, Element e);
/// Makes `c` upload the input `arg` before its first run, after everything that `c` already prepares. `fill` writes
/// `count` numbers, which become elements of type `e`. `key`: as in PrepareContext::pack.
std::shared_ptr<const Uploaded> uploaded_before(KernelChoice& c, int arg, std::string key, int64_t count, Element e,
                                                std::function<Status(const ir::TensorView& value, float* to)> fill);

uint32_t u32(int64_t v);

/// Why the driver cannot dispatch `n` workgroups along x, y and z; empty: it can.
std::string refusal_of_groups(const std::array<int64_t, 3>& n);
Groups groups_of(const std::array<int64_t, 3>& n);

/// Whether kernels stage tiles in shared memory. Otherwise each invocation computes a block in registers
/// (shaders/block.glsl).
bool shares_tiles();
/// Invocations of a workgroup that computes blocks.
uint32_t block_size();
/// Whether a workgroup that computes blocks is one subgroup.
bool blocks_are_subgroups();
/// Whether the driver can add the values of a subgroup's invocations. Otherwise shaders add them in shared memory
/// (shaders/rows.glsl).
bool adds_lanes();
/// The name of the shader `stem`, in the variant that adds by subgroups if adds_lanes().
std::string lanes_name(std::string_view stem);
/// Rows that a workgroup multiplies by a vector (shaders/rows.glsl).
int64_t rows_of_group();
/// The workgroups that compute `blocks` blocks of each of `planes` planes.
std::array<int64_t, 3> block_groups(int64_t blocks, int64_t planes);

}  // namespace moka::devices::vulkan
