// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/winograd_weights.h"

#include <algorithm>
#include <vector>

#include "base/half.h"
#include "devices/cpu/common/half_weights.h"
#include "devices/cpu/common/stored_value.h"

namespace moka::devices::cpu {

namespace {

using vector::gemm;

constexpr int64_t kLineFloats = 16;  // of the cache
constexpr int64_t kChannels = 8;     // whose widened weights stay in the L1 cache until they are transformed

/// Floats from weight to weight of n input channels. With a power of two, all weights would compete for a few cache
/// sets.
int64_t weight_step(const WinogradBlocking& p, int64_t n, int64_t width) {
  return n * width + (p.is_compressed ? kLineFloats : 0);
}

/// Floats of the transformed weights of a whole panel.
int64_t of_panel(const WinogradBlocking& p) { return weight_step(p, p.at_once, p.panel()) * p.weights(); }

}  // namespace

CompressedFilters CompressedFilters::of(const MatchCall& m, int arg, int64_t out, int64_t depth) {
  CompressedFilters c;
  const auto stored = m.stored_in_any_format(arg);
  if (!stored) return c;
  c.panels = CompressedWeights::of(m, arg, out, depth, CompressedWeights::Precision::rounded);
  c.as_half = c.panels == nullptr && stores_halves(m, arg) && (stored->is_half || !stored->table.empty_handle());
  return c;
}

WinogradWeights::WinogradWeights(const MatchCall& m, int arg, const WinogradBlocking& p, CompressedFilters compressed)
    : p_(p),
      arg_(arg),
      compressed_(std::move(compressed)),
      stored_(m.stored_in_any_format(arg)),
      unpacked_(FileWeights::of(m, arg)) {}

int64_t WinogradWeights::room() const {
  if (is_compressed()) return of_panel(p_) + kChannels * p_.w.taps() * p_.panel();
  return unpacked_ ? of_panel(p_) + unpacked_->room(p_.panel() * filter()) : 0;
}

void WinogradWeights::pack_panel(int64_t panel, const float* filters, int64_t depth, float* to) const {
  gemm().pack_panel(filters, depth, depth, filters_of(panel), p_.width(panel), to, nullptr);
}

void WinogradWeights::transform_panel(int64_t panel, const float* filters, float* to) const {
  const int64_t slice_taps = p_.f->down.taps * p_.f->across.taps;
  for (int64_t slice = 0; slice < p_.summed(); slice++)
    p_.f->filters(filters + slice * slice_taps, filter(), p_.w.taps(), p_.in, filters_of(panel), p_.width(panel),
                  to + p_.weight_at(panel, slice, 0) - p_.weight_at(panel, 0, 0), p_.in * p_.width(panel));
}

Status WinogradWeights::prepare(kernel::PrepareContext& context, const std::string& key) {
  const auto count = static_cast<size_t>(columns() * filter());
  if (const CompressedWeights* panels = compressed_.panels.get(); panels != nullptr) {
    packed_.set(MOKA_TRY(panels->packed(context, arg_, cat("filters of ", p_.panel()), columns(),
                                        panels->bytes(columns()), [&](CompressedWeights::Packer& packer, std::byte*) {
                                          for (int64_t i = 0; i < p_.panels(); i++)
                                            packer.pack(i * p_.panel(), filters_of(i), p_.width(i),
                                                        [&](const float* from, int64_t depth, float* to) {
                                                          pack_panel(i, from, depth, to);
                                                        });
                                        })));
    return {};
  }
  if (compressed_.as_half) {
    packed_.set(MOKA_TRY(pack_from_halves(context, *stored_, arg_, cat("filters of ", p_.panel(), " as float16"),
                                          count * sizeof(uint16_t), [&](const LoadValues& load, std::byte* to) {
                                            std::vector<float> values(static_cast<size_t>(p_.panel() * filter())),
                                                made(values.size());
                                            for (int64_t i = 0; i < p_.panels(); i++) {
                                              load(i * p_.panel() * filter(), filters_of(i) * filter(), values.data());
                                              pack_panel(i, values.data(), filter(), made.data());
                                              float_to_half(made.data(),
                                                            reinterpret_cast<uint16_t*>(to) + i * p_.panel() * filter(),
                                                            static_cast<size_t>(p_.width(i) * filter()));
                                            }
                                          })));
    return {};
  }
  const auto bytes = static_cast<size_t>(p_.weight_at(p_.panels() - 1, p_.summed(), 0)) * sizeof(float);
  packed_.set(MOKA_TRY(context.pack(arg_, key, bytes, [&](const ir::TensorView& value, std::byte* to) {
    for (int64_t i = 0; i < p_.panels(); i++)
      transform_panel(i, value.as<float>() + i * p_.panel() * filter(),
                      reinterpret_cast<float*>(to) + p_.weight_at(i, 0, 0));
    return Status();
  })));
  return {};
}

void WinogradWeights::expand(int64_t panel, int64_t first, int64_t n, float* room) const {
  const int64_t width = p_.width(panel), taps = p_.w.taps(), column = panel * p_.panel(),
                slice_taps = p_.f->down.taps * p_.f->across.taps;
  const int64_t step = weight_step(p_, n, width);
  float* const widened = room + of_panel(p_);
  for (int64_t c = 0; c < n; c += kChannels) {
    const int64_t some = std::min(kChannels, n - c), row = (first + c) * taps;
    if (compressed_.panels)
      compressed_.panels->widen(packed_.get(), column, width, columns(), row, some * taps, widened);
    else
      half_to_float(reinterpret_cast<const uint16_t*>(packed_.get()) + column * filter() + row * width, widened,
                    static_cast<size_t>(some * taps * width));
    for (int64_t slice = 0; slice < p_.summed(); slice++)
      p_.f->filter_rows(widened + slice * slice_taps * width, taps * width, some, width,
                        room + slice * p_.f->weights() * step + c * width, step);
  }
}

const float* WinogradWeights::panel_of(int64_t panel, int64_t first, int64_t n, float* room) const {
  const std::byte* packed = packed_.get();
  if (is_compressed()) {
    expand(panel, first, n, room);
    return room;
  }
  if (packed != nullptr) return reinterpret_cast<const float*>(packed) + p_.weight_at(panel, 0, 0);
  transform_panel(
      panel, unpacked_->read(panel * p_.panel() * filter(), filters_of(panel) * filter(), room + of_panel(p_)), room);
  return room;
}

void WinogradWeights::multiply(int64_t panel, const float* v, int64_t slice_step, int64_t tiles, float* made,
                               float* room) const {
  const int64_t depth = p_.in_groups * p_.block(), width = p_.width(panel);
  for (int64_t first = 0; first < p_.in; first += p_.at_once) {
    const int64_t n = std::min(p_.at_once, p_.in - first);
    const int64_t step = weight_step(p_, n, width);
    const float* u = panel_of(panel, first, n, room);
    for (int point = 0; point < p_.f->points(); point++)
      for (int64_t k = 0; k < p_.summed(); k++)
        gemm().multiply(v + point * p_.in_step + k * slice_step + first, depth,
                        u + (k * p_.f->weights() + p_.f->weight_of(point)) * step, tiles, width, n,
                        made + point * p_.out_step, p_.panel(), nullptr, k > 0 || first > 0);
  }
}

void WinogradWeights::read(const float* constant, int64_t first, int64_t n, float* to) const {
  if (stored_ && !stored_->is_half) return stored_values(*stored_, first, n, to);
  if (!is_compressed()) {
    std::copy_n(constant + first, n, to);
    return;
  }
  const auto* halves = reinterpret_cast<const uint16_t*>(packed_.get());
  for (int64_t i = first; i < first + n; i++, to++) {
    const int64_t column = i / filter(), row = i % filter(), lane = column % p_.panel(), begin = column - lane,
                  width = p_.width(begin / p_.panel());
    *to = compressed_.as_half ? half::to_float(halves[begin * filter() + row * width + lane])
                              : compressed_.panels->masked(packed_.get(), begin, width, columns(), row, lane);
  }
}

}  // namespace moka::devices::cpu
