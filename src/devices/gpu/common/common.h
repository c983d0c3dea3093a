// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/gpu/gpu_device.h"
#include "devices/gpu/numbers.inc"
#include "devices/gpu/recorder.h"

/// Helpers that all families of kernels use.
namespace moka::devices::gpu {

using kernel::BufferView;
using kernel::KernelChoice;
using kernel::KernelDef;
using kernel::Layout;
using kernel::Match;
using kernel::MatchCall;
using kernel::PrepareContext;
using kernel::RecordArgs;
using kernel::Recorder;

/// The device that is asked for an operation, and what its card can do. Both live as long as the process.
inline const GpuDevice& device_of(const MatchCall& m) { return static_cast<const GpuDevice&>(*m.device); }
inline const Features& features_of(const MatchCall& m) { return device_of(m).features(); }

/// How buffers hold elements of type `t` in this layout; nullopt: no shader reads them.
std::optional<Element> element_of(const Features& card, ir::DType t, Layout layout = {});
/// The shader variant that reads or writes indices of type `t`: "i32", "u16" or "i16". Empty: none.
std::string_view name_of_index(const Features& card, ir::DType t);
/// How buffers hold a floating-point output: as float16 if the program computes float16 and the driver can store it.
Element float_element(const MatchCall& m, size_t output = 0);

/// Why the device cannot access `params` or the outputs: they are not tensors, empty, or larger than a driver's
/// buffers. Empty: it can.
std::string refusal_of(const MatchCall& m, std::initializer_list<std::string_view> params);
/// As refusal_of(), and also refuses values that are not floating-point.
std::string refusal_of_floats(const MatchCall& m, std::initializer_list<std::string_view> params);

/// A choice that reads those of `params` that are present at each run, and all other inputs once before the first run.
/// It holds fp32 tensors among `params` and the outputs as `floats`. `kernel`: without the name of the API.
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
/// The functions' constants, as parameters.
struct AfterParams {
  float a1 = 0, b1 = 0, a2 = 0, b2 = 0;
  explicit AfterParams(const After& a)
      : a1(a.functions[0].a), b1(a.functions[0].b), a2(a.functions[1].a), b2(a.functions[1].b) {}
};
/// The flags that tell shaders/after.glsl and norms.glsl what to apply to the result.
uint32_t has_of(bool bias, bool addend, const After& after, bool norm = false);

inline CommandRecorder& recorder_of(Recorder& r) { return static_cast<CommandRecorder&>(r); }
inline const BufferView& view(std::span<const BufferView> all, int i) { return all[static_cast<size_t>(i)]; }
std::string shader_name(std::string_view stem, Element e);
/// The name of the element type of tiles: "h16" if `e` is float16 and the driver computes in it.
std::string_view tile_name_of(const Features& card, Element e);
/// The name of the shader `stem` for tiles of `e` and of `weights`.
std::string tile_shader_name(const Features& card, std::string_view stem, Element e, Element weights);

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

Groups groups_of(const std::array<int64_t, 3>& n);

/// The name of the shader `stem`, in the variant that adds by subgroups if the card can. Otherwise shaders add in
/// shared memory (shaders/rows.glsl).
std::string lanes_name(const Features& card, std::string_view stem);

}  // namespace moka::devices::gpu
