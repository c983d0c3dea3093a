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

/// What the kernel families share.
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

/// nullopt where no shader reads such elements.
std::optional<Element> element_of(ir::DType t, Layout layout = {});
/// The same for integers that are positions or become some, in variants of shaders: "i32", "u16", "i16". Empty: none.
std::string_view name_of_index(ir::DType t);
/// That of floating-point results: float16 where the program computes it and the driver can store it.
Element float_element(const MatchCall& m, size_t output = 0);

/// Why tensors cannot be read or written here: not tensors, empty, or larger than a driver's buffers. Empty: they can.
std::string refusal_of(const MatchCall& m, std::initializer_list<std::string_view> params);
/// The same, and all of them, outputs included, are of floating point.
std::string refusal_of_floats(const MatchCall& m, std::initializer_list<std::string_view> params);

/// A choice that reads `params` (those that are there) while running and all other inputs only before. Tensors of fp32
/// among them and the outputs are held as `floats`.
KernelChoice choice_of(const MatchCall& m, std::string_view kernel, std::initializer_list<std::string_view> params,
                       Element floats = Element::f32);
/// Adds estimated seconds of so many multiply-adds and of the bytes of all tensors that it reads while running.
void set_cost(KernelChoice& c, const MatchCall& m, double multiply_adds = 0);

/// An elementwise function with its constants.
struct Function {
  uint32_t number = F_NONE;
  float a = 0, b = 0;
};
/// The function an operation is; nullopt: none, or with a parameter that is not known.
std::optional<Function> function_of(const ir::OpCall& call);
std::optional<Function> function_of(const ir::Epilogue& e);
std::vector<std::string_view> function_operations();
/// What a shader applies to its result: the first epilogues of an operation, as many as shaders take.
struct After {
  std::array<Function, 2> functions;
  size_t count = 0;
  std::vector<uint32_t> constants(std::initializer_list<uint32_t> first) const;
};
After after_of(std::span<const ir::Epilogue> epilogues);
/// The same with one function for all that limit a range and for hard_swish, so that one shader serves them.
After limits_of(std::span<const ir::Epilogue> epilogues);
/// In push constants.
struct AfterParams {
  float a1 = 0, b1 = 0, a2 = 0, b2 = 0;
  explicit AfterParams(const After& a)
      : a1(a.functions[0].a), b1(a.functions[0].b), a2(a.functions[1].a), b2(a.functions[1].b) {}
};
/// What a shader that includes shaders/after.glsl does to its result.
uint32_t has_of(bool bias, bool addend, const After& after);

inline VulkanRecorder& recorder_of(Recorder& r) { return static_cast<VulkanRecorder&>(r); }
inline const BufferView& view(std::span<const BufferView> all, int i) { return all[static_cast<size_t>(i)]; }
std::string shader_name(std::string_view stem, Element e);
/// The name of elements that a shader keeps in tiles: "h16" where they are float16 and the driver computes it.
/// Bytes of memory that a workgroup may have.
uint32_t max_shared();
/// Whether the device runs thousands of workgroups at a time.
bool is_large();
std::string_view tile_name_of(Element e);
/// The name of a shader that multiplies tiles of elements and of weights.
std::string tile_shader_name(std::string_view stem, Element e, Element weights);

/// `floats` float32 in the scratch memory of a step, written.
Use scratch_of(const RecordArgs& args, int64_t floats);

/// A constant input as a kernel reads it, in the device's memory from `prepare` on.
struct Uploaded {
  std::shared_ptr<const kernel::Buffer> buffer;
};
/// How a floating-point constant is held for a kernel that computes in `e`: as float16 where the model has it so.
Element weights_element(const MatchCall& m, int arg, Element e);
/// Makes `c` upload the input `arg` before its first run: `fill` writes `count` numbers, which are held as `e`. What
/// `c` prepares already it still does. `key` as in PrepareContext::pack.
std::shared_ptr<const Uploaded> uploaded_before(KernelChoice& c, int arg, std::string key, int64_t count, Element e,
                                                std::function<Status(const ir::TensorView& value, float* to)> fill);

uint32_t u32(int64_t v);

/// Why a dispatch of so many groups along x, y and z cannot run; empty: it can.
std::string refusal_of_groups(const std::array<int64_t, 3>& n);
Groups groups_of(const std::array<int64_t, 3>& n);

/// Whether kernels share tiles in a workgroup's memory. Elsewhere invocations compute blocks of their own
/// (shaders/block.glsl).
bool shares_tiles();
/// Invocations of a workgroup of blocks.
uint32_t block_size();
/// Whether such a workgroup is one subgroup.
bool blocks_are_subgroups();
/// Whether a subgroup adds what its invocations have; else that goes through shared memory (shaders/rows.glsl).
bool adds_lanes();
/// The name of the shader that does so where the driver can.
std::string lanes_name(std::string_view stem);
/// Rows that a workgroup multiplies by a vector (shaders/rows.glsl).
int64_t rows_of_group();
/// The groups that compute `blocks` blocks of each of `planes` planes.
std::array<int64_t, 3> block_groups(int64_t blocks, int64_t planes);

}  // namespace moka::devices::vulkan
