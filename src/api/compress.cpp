// SPDX-License-Identifier: Apache-2.0
#include "moka/compress.h"

#include <algorithm>
#include <cmath>

#include "api/build.h"
#include "api/compress.h"
#include "api/internal.h"
#include "api/output_noise.h"

namespace moka {
namespace {

compress::Granularity granularity_of(WeightGranularity g) { return static_cast<compress::Granularity>(g); }

bool prunes(const WeightCompression& c) { return c.sparsity > 0 || c.threshold >= 0 || c.m > 0; }

/// Whether `text` has the form of `pattern`, in which "*" matches any text.
bool matches(std::string_view pattern, std::string_view text) {
  size_t star = std::string_view::npos, mark = 0, p = 0, t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

namespace api {

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
  return pattern.starts_with(prefix) ? type == pattern.substr(prefix.size()) : matches(pattern, name);
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

}  // namespace api

std::string describe(const WeightCompression& c) {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (c.sparsity > 0) add(cat("pruned to ", c.sparsity));
  if (c.sparsity > 0 && c.sparse_block > 0) add(cat("blocks of ", c.sparse_block));
  if (c.threshold >= 0) add(cat("pruned up to ", c.threshold));
  if (c.m > 0) add(cat("pruned ", c.n, ":", c.m));
  if (c.form == WeightForm::unchanged) return out;
  if (c.form == WeightForm::half) return "float16";
  const bool linear = c.form == WeightForm::linear;
  add(cat(linear ? "linear " : "palette ", c.bits, c.bits == 1 ? " bit" : " bits"));
  if (c.granularity == WeightGranularity::tensor || (!linear && c.granularity != WeightGranularity::group))
    add("tensor");
  if (linear && c.granularity == WeightGranularity::channel) add("channel");
  if (linear && c.granularity == WeightGranularity::block) add(cat("blocks of ", c.block_size));
  if (!linear && c.granularity == WeightGranularity::group) add(cat("groups of ", c.group_size));
  if (linear && !c.symmetric) add("asymmetric");
  if (linear && !c.is_signed) add("unsigned");
  if (!linear && c.vector_size > 1) add(cat("vectors of ", c.vector_size));
  if (!linear && c.per_channel_scale) add("scaled");
  if (!linear && c.mode != PaletteMode::kmeans) add(c.mode == PaletteMode::uniform ? "uniform" : "unique");
  return out;
}

CompressedModel compress_weights(const ModelSource& model, const CompressionOptions& options) {
  api::check(options.weights);
  for (const auto& [pattern, compression] : options.exceptions) api::check(compression);
  const auto chosen = [&](const compress::Site& site) -> const WeightCompression* {
    if (site.elements <= options.least_elements) return nullptr;
    const WeightCompression* out = &options.weights;
    for (const auto& [pattern, compression] : options.exceptions)
      if (api::applies(pattern, site.name, site.operation)) out = &compression;
    return out;
  };
  format::ModelSource source = model.impl().source();
  source.specification = source.specification.copy();
  CompressedModel out{ModelSource(model)};
  const auto decompressed =
      options.decompress ? api::unwrap(compress::decompress(source)) : std::vector<compress::Decompressed>();
  const auto compressed = api::unwrap(compress::compressed_weights_of(source));
  if (options.activations) out.activations = api::quantize_activations(source, *options.activations);
  const auto outcomes = api::unwrap(compress::compress(
      source,
      [&](const compress::Site& site) {
        const WeightCompression* c = chosen(site);
        return c == nullptr ? compress::Recipe{} : api::recipe_of(*c);
      },
      options.progress));
  for (const compress::Outcome& o : outcomes) out.weights.push_back(api::public_outcome(o, chosen(o.site)));
  api::add_decompressed(decompressed, out.weights);
  api::add_compressed(compressed, out.weights);
  out.model = ModelSource(std::make_shared<ModelSource::Impl>(std::move(source)));
  if (options.activations) {
    const api::OutputNoise noise(model.load(options.activations->configuration), options.activations->inputs);
    out.signal_to_noise = api::signal_to_noise(noise.worst_share(out.model.load(options.activations->configuration)));
  }
  return out;
}

}  // namespace moka
