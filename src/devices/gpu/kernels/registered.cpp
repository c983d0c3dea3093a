// SPDX-License-Identifier: Apache-2.0
#include "ir/registered.h"

#include <algorithm>

#include "base/sha256.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

using ir::RegisteredShader;

/// The constants that a layer brings, in the device's memory from `prepare` on.
struct Held {
  std::vector<std::shared_ptr<const kernel::Buffer>> buffers;
};

std::string refusal_of_shader(const Features& card, const RegisteredShader& s, size_t bindings) {
  if (bindings > static_cast<size_t>(kMostBindings))
    return cat("a shader with ", bindings, " buffers, more than ", kMostBindings);
  if (s.parameters.size() > kMostParameterBytes || s.parameters.size() % 4 != 0)
    return cat("a shader with ", s.parameters.size(), " bytes of parameters; expected whole words, at most ",
               kMostParameterBytes, " bytes");
  if (std::find(s.groups.begin(), s.groups.end(), 0u) != s.groups.end()) return "a shader with 0 workgroups";
  for (const Bytes& b : s.buffers)
    if (b.empty()) return "a shader with an empty buffer";
  return card.refusal_of_groups({s.groups[0], s.groups[1], s.groups[2]});
}

/// The first code of a kind that the device takes; nullptr: there is none.
const RegisteredShader::Code* first_taken(const GpuDevice& device, const RegisteredShader& s) {
  const auto kinds = device.shader_kinds();
  for (const RegisteredShader::Code& c : s.code)
    if (std::find(kinds.begin(), kinds.end(), c.kind) != kinds.end()) return &c;
  return nullptr;
}

/// "'a', 'b' and 'c'"; "none".
std::string listed(std::span<const std::string_view> names) {
  std::string all;
  for (size_t i = 0; i < names.size(); i++)
    all += cat(i == 0 ? "" : i + 1 < names.size() ? ", " : " and ", "'", names[i], "'");
  return names.empty() ? "none" : all;
}

std::string refusal_of_kinds(const GpuDevice& device, const RegisteredShader& s) {
  if (s.code.empty()) return "a shader without code";
  std::vector<std::string_view> kinds;
  for (const RegisteredShader::Code& c : s.code) kinds.push_back(c.kind);
  return cat("a shader of ", kinds.size() > 1 ? "kinds " : "kind ", listed(kinds), "; the device takes ",
             listed(device.shader_kinds()));
}

size_t aligned(size_t bytes, size_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

/// A shader's arrays begin at a binding's first byte. Those that lie elsewhere, as parts of others, go through scratch
/// memory.
struct Bindings {
  CommandRecorder& recorder;
  const RecordArgs& args;
  size_t alignment, at = 0;
  std::vector<Use> uses;
  std::vector<std::pair<Use, Use>> after;

  void add(const BufferView& v, bool written) {
    const Use there = Use::of(v, written);
    if (there.offset % alignment == 0) {
      uses.push_back(there);
      return;
    }
    Use copy{args.scratch.buffer, args.scratch.offset + at, there.bytes, there.element, written};
    at += aligned(there.bytes, alignment);
    uses.push_back(copy);
    if (written)
      after.emplace_back(copy.to_read(), there);
    else
      recorder.copy(there, copy);
  }
};

Match match(const MatchCall& m) {
  auto instance = ir::registered_instance(m.call);
  if (!instance.ok()) return Match::no(instance.error().message());
  std::vector<ir::Type> in;
  for (const ir::Arg& a : m.call.args("inputs")) in.push_back(*a.type);
  auto made = (*instance)->shader(in, m.outputs);
  if (!made.ok()) return Match::no(made.error().to_string());
  if (!*made) return Match::no(cat((*instance)->what(), " without a shader"));
  const RegisteredShader& s = **made;
  if (std::string why = refusal_of(m, {"inputs"}); !why.empty()) return Match::no(why);
  const size_t count = in.size(), bindings = count + m.outputs.size() + s.buffers.size();
  if (std::string why = refusal_of_shader(features_of(m), s, bindings); !why.empty()) return Match::no(why);
  const auto* given = first_taken(device_of(m), s);
  if (given == nullptr) return Match::no(refusal_of_kinds(device_of(m), s));
  const auto compiled = device_of(m).compile(*given, static_cast<int>(bindings));
  if (!compiled.ok()) return Match::no(compiled.error().message());
  const Code* code = *compiled;
  const int first = m.call.arg_index("inputs"), handle = m.call.arg_index("instance");
  KernelChoice c = choice_of(m, "registered", {"inputs"});
  c.note = (*instance)->what();
  for (const std::span<const ir::Type> types : {std::span<const ir::Type>(in), m.outputs})
    for (const ir::Type& t : types)
      c.scratch += aligned(static_cast<size_t>(t.shape().count()) * ir::bits(t.dtype()) / 8, features_of(m).alignment);
  set_cost(c, m);
  if (s.seconds > 0) c.cost = s.seconds;
  auto held = std::make_shared<Held>();
  c.prepare = [held, handle, buffers = s.buffers](PrepareContext& context) -> Status {
    for (const Bytes& b : buffers) {
      const std::string key = cat("registered ", base64(sha256(b.span)));
      // Whole words, as shaders read them.
      const size_t bytes = aligned(b.size(), 4);
      held->buffers.push_back(
          MOKA_TRY(context.upload(handle, key, bytes, [&](const ir::TensorView&, std::byte* to) -> Status {
            std::fill(std::copy(b.span.begin(), b.span.end(), to), to + bytes, std::byte{0});
            return {};
          })));
    }
    return {};
  };
  c.record = [=, constants = s.constants, parameters = s.parameters,
              groups = Groups{s.groups[0], s.groups[1], s.groups[2]},
              alignment = static_cast<size_t>(features_of(m).alignment)](Recorder& recorder,
                                                                         const RecordArgs& args) -> Status {
    CommandRecorder& r = recorder_of(recorder);
    Bindings b{r, args, alignment};
    for (size_t i = 0; i < count; i++) b.add(args.in[static_cast<size_t>(first) + i], false);
    for (const BufferView& out : args.out) b.add(out, true);
    for (const auto& buffer : held->buffers) b.uses.push_back(Use::read(buffer, 4));
    MOKA_TRY(r.dispatch(*code, constants, b.uses, parameters, groups));
    for (const auto& [from, to] : b.after) r.copy(from, to);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_registered() {
  static const KernelDef defs[] = {{"registered", {"moka_registered"}, match}};
  return {defs};
}

}  // namespace moka::devices::gpu
