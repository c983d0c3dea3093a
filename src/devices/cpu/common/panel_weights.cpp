// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/panel_weights.h"

#include "base/half.h"
#include "devices/cpu/common/half_weights.h"

namespace moka::devices::cpu {

std::shared_ptr<const PanelWeights> PanelWeights::of(KernelChoice& c, const MatchCall& m, int arg, std::string key,
                                                     int64_t count, Fill fill) {
  auto made = std::make_shared<PanelWeights>();
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(arg)] = true;
  if (!stores_halves(m, arg)) {
    c.prepare = [=, key = std::move(key), fill = std::move(fill)](kernel::PrepareContext& context) -> Status {
      made->bytes_ =
          MOKA_TRY(context.pack(arg, key, static_cast<size_t>(count) * sizeof(float),
                                [&](const ir::TensorView& value, std::byte* to) -> Status {
                                  auto* floats = reinterpret_cast<float*>(to);
                                  fill([&](int64_t first, int64_t, float*) { return value.as<float>() + first; },
                                       [&](int64_t at, int64_t, const auto& pack) { pack(floats + at); });
                                  return {};
                                }));
      return {};
    };
    return made;
  }
  made->half_ = true;
  c.note = "packed as float16";
  c.prepare = [=, key = cat(key, " as float16"), fill = std::move(fill),
               stored = m.stored_in_any_format(arg)](kernel::PrepareContext& context) -> Status {
    made->bytes_ = MOKA_TRY(pack_from_halves(context, *stored, arg, key, static_cast<size_t>(count) * sizeof(uint16_t),
                                             [&](const LoadValues& load, std::byte* to) {
                                               std::vector<float> panel;
                                               fill(
                                                   [&](int64_t first, int64_t n, float* room) {
                                                     load(first, n, room);
                                                     return room;
                                                   },
                                                   [&](int64_t at, int64_t n, const auto& pack) {
                                                     panel.resize(static_cast<size_t>(n));
                                                     pack(panel.data());
                                                     float_to_half(panel.data(), reinterpret_cast<uint16_t*>(to) + at,
                                                                   static_cast<size_t>(n));
                                                   });
                                             }));
    return {};
  };
  return made;
}

std::shared_ptr<const PanelWeights> PanelWeights::of_compressed(KernelChoice& c, const MatchCall& m, int arg,
                                                                std::string key,
                                                                std::shared_ptr<const CompressedWeights> compressed,
                                                                int64_t columns,
                                                                std::function<void(CompressedWeights::Packer&)> pack) {
  auto made = std::make_shared<PanelWeights>();
  made->compressed_ = std::move(compressed);
  made->columns_ = columns;
  c.note = made->compressed_->note();
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(arg)] = true;
  c.prepare = [=, key = std::move(key), pack = std::move(pack)](kernel::PrepareContext& context) -> Status {
    const CompressedWeights& from = *made->compressed_;
    made->bytes_ = MOKA_TRY(from.packed(context, arg, key, columns, from.bytes(columns),
                                        [&](CompressedWeights::Packer& packer, std::byte*) { pack(packer); }));
    return {};
  };
  return made;
}

const float* PanelWeights::floats(int64_t at, int64_t width, int64_t first, int64_t rows, float* to) const {
  if (!compressed_) return this->at<float>(at + first * width);
  compressed_->widen(bytes_.get(), at / compressed_->depth(), width, columns_, first, rows, to);
  return to;
}

}  // namespace moka::devices::cpu
