#include <cstring>

#include "devices/cpu/kernels/families.h"

namespace moka::devices::cpu {

namespace {

/// Whole groups of channels, one after the other. Row-major joins are the reference's: they copy runs.
Match match_concat(const MatchCall& m) {
  const auto values = m.call.args("values");
  const ir::Shape out = m.outputs[0].shape();
  auto axis = m.call.integer("axis");
  auto interleave = m.call.flag("interleave");
  if (m.outputs[0].dtype() != ir::DType::fp32) return Match::no(cat("element type ", m.outputs[0].dtype()));
  if (!axis.ok() || !interleave.ok() || *interleave) return Match::no("interleaving");
  if (out.rank() < 3 || out.count() == 0 || (*axis != 1 && *axis + out.rank() != 1))
    return Match::no("an axis other than channels");
  const auto first = static_cast<size_t>(m.call.arg_index("values"));
  Layout layout;
  for (size_t i = 0; i < values.size(); i++)
    if (m.layouts[first + i].kind == Layout::Kind::channel_blocked) layout = m.layouts[first + i];
  if (layout.is_row_major()) return Match::no("row-major inputs");
  const int64_t pixels = out.count(2, out.rank());
  std::vector<int64_t> runs;  // elements of one image
  for (const ir::Arg& a : values) {
    const int64_t channels = a.type->shape()[1];
    if (channels % layout.block != 0) return Match::no("channels that do not fill their groups");
    runs.push_back(channels * pixels);
  }
  KernelChoice c;
  c.kernel = "cpu.concat.blocked";
  c.in.resize(m.call.all_args().size());
  for (size_t i = 0; i < values.size(); i++) c.in[first + i] = layout;
  c.out = {layout};
  c.tiles = out[0] * static_cast<int64_t>(values.size());
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [=, whole = out[1] * pixels](const KernelArgs& args) -> Status {
    const auto n = static_cast<int64_t>(runs.size());
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t image = t / n;
      int64_t at = image * whole;
      const auto which = static_cast<size_t>(t % n);
      for (size_t k = 0; k < which; k++) at += runs[k];
      std::memcpy(args.out[0].as<float>() + at, args.in[first + which].as<float>() + image * runs[which],
                  static_cast<size_t>(runs[which]) * sizeof(float));
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

std::span<const KernelDef> concat_kernels() {
  static const KernelDef defs[] = {{"cpu.concat.blocked", {"concat"}, match_concat}};
  return defs;
}

}  // namespace moka::devices::cpu
