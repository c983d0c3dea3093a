#include <algorithm>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/winograd_tiles.h"
#include "devices/cpu/kernels/family.h"

/// Winograd convolutions: tiles of the input are transformed, each point of the transform is a matrix product over the
/// channels, and the products are transformed back (vector/winograd.h).
namespace moka::devices::cpu {

namespace {

using vector::gemm;

void transform_weights(const WinogradBlocking& blocking, const float* weight, float* to) {
  const int64_t filter_step = blocking.in * blocking.w.taps(),
                slice_taps = blocking.f->down.taps * blocking.f->across.taps;
  for (int64_t p = 0; p < blocking.panels(); p++) {
    const int64_t first = p * blocking.panel(), width = blocking.width(p),
                  count = std::min(width, blocking.out - first);
    for (int64_t slice = 0; slice < blocking.summed(); slice++)
      blocking.f->filters(weight + first * filter_step + slice * slice_taps, filter_step, blocking.w.taps(),
                          blocking.in, count, width, to + blocking.weight_at(p, slice, 0), blocking.in * width);
  }
}

void transform_inputs(const WinogradBlocking& p, const Chunk& chunk, const float* x, bool again, float* v) {
  const int64_t plane = p.w.in[1] * p.w.in[2] * p.block();
  for (int64_t g = 0; g < p.in_groups; g++)
    p.each_row(chunk, p.summed() - 1, [&](const Row& r) {
      const int64_t slice = r.slice * p.w.strides[0] - p.w.pads_begin[0];
      const float* from =
          slice < 0 || slice >= p.w.in[0] ? nullptr : x + (r.image * p.in_groups + g) * p.in_volume() + slice * plane;
      transform_row(p, from, r, again, v + (r.at * p.in_groups + g) * p.block());
    });
}

Match match_winograd(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  for (int i = 0; i < window->rank; i++)
    if (window->dilations[i] != 1) return Match::no("dilations");
  if (window->groups != 1) return Match::no("groups");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = m.call.shape("x"), y = m.outputs[0].shape();
  if (x[1] < channel_block()) return Match::no("few channels");
  const auto best = best_blocking(*window, x[0], x[1], y[1], m.threads, m.asked);
  if (!best) return Match::no(m.asked ? "a window that has no transform" : "direct sums are faster");
  const WinogradBlocking& p = *best;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias");
  const int addend = m.call.arg_index("addend");
  auto weights = std::make_shared<std::shared_ptr<const std::byte>>();
  KernelChoice c;
  c.kernel = "cpu.conv.winograd";
  c.note = cat(p.f->down.out, " x ", p.f->across.out);
  c.in = in_layouts(m, "x", blocked());
  if (addend >= 0) c.in[static_cast<size_t>(addend)] = blocked();
  c.out = {blocked()};
  // Direct tiles read the original weights while running, from the file if it can be read as stored.
  const auto stored = m.stored_in_any_order(weight);
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(weight)] = stored.has_value();
  c.thread_scratch = static_cast<size_t>(p.scratch());
  c.tiles = p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 2 * work(p), traffic(m));
  c.prepare = [=, p = *best](kernel::PrepareContext& context) -> Status {
    const auto bytes = static_cast<size_t>(p.weight_at(p.panels() - 1, p.summed(), 0)) * sizeof(float);
    *weights = MOKA_TRY(context.pack(weight,
                                     cat("winograd ", c.note, " by ", p.f->down.taps, " x ", p.f->across.taps,
                                         " at every ", p.f->across.stride, ", of ", p.panel(), " ", p.block()),
                                     bytes, [&](const ir::TensorView& value, std::byte* to) {
                                       transform_weights(p, value.as<float>(), reinterpret_cast<float*>(to));
                                       return Status();
                                     }));
    return {};
  };
  c.run = [=, p = *best, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float* u = reinterpret_cast<const float*>(weights->get());
    const float* from = args.in[in].as<float>();
    float* y_all = args.out[0].as<float>();
    float* v = args.own<float>();
    float* made = v + p.f->points() * p.in_step;
    auto* flags = reinterpret_cast<bool*>(v + p.sums());
    const int64_t block = p.block(), depth = p.in_groups * block, line = p.w.out[2] * block;
    const Taps taps{stored, data_of(args, weight)};
    int64_t transformed = -1;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % p.parts, first = p.first(part) * p.panel() / block;
      const Chunk chunk = p.chunk_of(t / p.parts);
      // Calls f(row, group, bias, products, place in y, flag) for the rows of tiles of a panel.
      const auto each_output = [&](int64_t panel, auto f) {
        for (int64_t g = 0; g < p.width(panel) / block; g++) {
          const int64_t group = panel * p.panel() / block + g;
          const auto add = bias_of_group(data_of(args, bias), group, p.out);
          p.each_row(chunk, 0, [&](const Row& r) {
            f(r, group, add.data(), made + r.at * p.panel() + g * block, y_all + p.out_at(r, group),
              flags[(group - first) * p.chunk + r.at]);
          });
        }
      };
      const auto multiply = [&](int64_t panel) {
        for (int point = 0; point < p.f->points(); point++)
          for (int64_t k = 0; k < p.summed(); k++)
            gemm().multiply(v + point * p.in_step + k * chunk.width() * depth, depth,
                            u + p.weight_at(panel, k, p.f->weight_of(point)), chunk.tiles(), p.width(panel), p.in,
                            made + point * p.out_step, p.panel(), nullptr, k > 0);
      };
      const auto finish = [&](const Row& r, float* to) {
        const auto [rows, width] = p.outputs(r);
        for (int64_t i = 0; i < rows; i++, to += line)
          finish_blocked(y, data_of(args, addend), after, y_all, to - y_all, to - y_all + width * block);
      };
      if (transformed != t / p.parts) transform_inputs(p, chunk, from, false, v);
      transformed = t / p.parts;
      bool any = false;
      for (int64_t panel = p.first(part); panel < p.first(part + 1); panel++) {
        multiply(panel);
        each_output(panel,
                    [&](const Row& r, int64_t group, const float* add, const float* sums, float* to, bool& flag) {
                      const auto [rows, width] = p.outputs(r);
                      flag = !p.f->output(sums, p.out_step, p.panel(), add, r.count, rows, width, to, line) &&
                             correct_tiles(p, from, taps, add, r, group, to);
                      any |= flag;
                      if (!flag) finish(r, to);
                    });
      }
      if (!any) continue;
      transform_inputs(p, chunk, from, true, v);
      transformed = -1;
      for (int64_t panel = p.first(part); panel < p.first(part + 1); panel++) {
        multiply(panel);
        each_output(panel, [&](const Row& r, int64_t group, const float* add, const float* sums, float* to, bool flag) {
          if (!flag) return;
          correct_again(p, from, taps, add, r, group, sums, to);
          finish(r, to);
        });
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_winograd() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.winograd", .ops = {"conv"}, .match = match_winograd, .addend = true, .measured = true}};
  return {20, defs};
}

}  // namespace moka::devices::cpu
