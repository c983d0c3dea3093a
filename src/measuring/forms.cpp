// SPDX-License-Identifier: Apache-2.0
#include "measuring/forms.h"

#include <algorithm>
#include <cmath>

#include "base/pattern.h"

namespace moka::measuring {
namespace {

compress::Granularity granularity_of(WeightGranularity g) { return static_cast<compress::Granularity>(g); }

bool prunes(const WeightCompression& c) { return c.sparsity > 0 || c.threshold >= 0 || c.m > 0; }

}  // namespace

using compress::Recipe;

Recipe recipe_of(const WeightCompression& c) {
  Recipe out;
  if (c.form == WeightForm::linear)
    out.form = compress::Linear{c.bits, c.symmetric, c.is_signed, granularity_of(c.granularity), c.block_size};
  if (c.form == WeightForm::palette)
    out.form = compress::Palette{
        c.bits,
        static_cast<compress::Palette::Mode>(c.mode),
        c.granularity == WeightGranularity::group ? compress::Granularity::group : compress::Granularity::tensor,
        c.group_size,
        c.vector_size,
        c.per_channel_scale};
  if (c.form == WeightForm::half) out.form = compress::Half{};
  if (prunes(c)) out.prune = compress::Prune{c.sparsity, c.threshold, c.n, c.m, c.sparse_block, c.least_sparsity};
  return out;
}

void check(const WeightCompression& c) {
  auto wrong = [](const auto&... parts) { throw Exception(ErrorKind::invalid_argument, cat(parts...)); };
  const bool palette = c.form == WeightForm::palette;
  if ((palette || c.form == WeightForm::linear) && (c.bits < 1 || c.bits > 8))
    wrong("expected 1 to 8 bits, got ", c.bits);
  if (c.form == WeightForm::linear && c.granularity == WeightGranularity::group)
    wrong("linear: expected a granularity of tensor, channel or block, got group");
  if (c.block_size < 1 || c.group_size < 1 || c.vector_size < 1)
    wrong("expected sizes of blocks, groups and vectors from 1 on");
  if ((c.sparsity > 0) + (c.threshold >= 0) + (c.m > 0) > 1)
    wrong("expected one of a sparsity, a threshold and n of m, got several");
  if (c.sparsity < 0 || c.sparsity > 1) wrong("sparsity: expected a number from 0 to 1, got ", c.sparsity);
  if (c.least_sparsity < 0 || c.least_sparsity > 1)
    wrong("least sparsity: expected a number from 0 to 1, got ", c.least_sparsity);
  if (c.m < 0 || c.n < 0 || c.n > c.m) wrong("expected n from 1 to m, got ", c.n, ":", c.m);
}

bool applies(std::string_view pattern, std::string_view name, std::string_view type) {
  constexpr std::string_view prefix = "type:";
  return pattern.starts_with(prefix) ? type == pattern.substr(prefix.size()) : matches_pattern(pattern, name);
}

CompressedWeight public_outcome(const compress::Outcome& o, const WeightCompression* c) {
  const bool changed = c != nullptr && !recipe_of(*c).keeps() && o.skipped.empty();
  return {o.site.name,     o.site.operation,
          o.site.shape,    o.bytes_before,
          o.bytes_after,   changed ? o.signal_to_noise : INFINITY,
          o.largest_error, changed ? describe(*c) : "",
          o.skipped};
}

namespace {

std::string float_name(const compress::Decompressed& weight) { return weight.half ? "float16" : "float32"; }

}  // namespace

void add_decompressed(const std::vector<compress::Decompressed>& decompressed, std::vector<CompressedWeight>& to) {
  for (const compress::Decompressed& d : decompressed) {
    const auto it = std::find_if(to.begin(), to.end(), [&](const CompressedWeight& w) { return w.name == d.name; });
    if (it == to.end()) {
      to.push_back({d.name, d.operation, d.shape, d.bytes_before, d.bytes_after, INFINITY, 0, float_name(d), {}});
      continue;
    }
    it->bytes_before = d.bytes_before;
    if (it->form.empty()) it->form = float_name(d);
  }
}

void add_compressed(const std::vector<compress::Decompressed>& compressed, std::vector<CompressedWeight>& to) {
  for (const compress::Decompressed& c : compressed)
    to.push_back({c.name,
                  c.operation,
                  c.shape,
                  c.bytes_before,
                  c.bytes_before,
                  INFINITY,
                  0,
                  {},
                  cat("it is compressed already (", c.operation, ")"),
                  true});
}

}  // namespace moka::measuring
