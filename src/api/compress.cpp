// SPDX-License-Identifier: Apache-2.0
#include "moka/compress.h"

#include <algorithm>
#include <cmath>

#include "api/build.h"
#include "api/internal.h"
#include "measuring/forms.h"
#include "measuring/noise.h"
#include "measuring/ranges.h"
#include "measuring/search.h"

namespace moka {
namespace {

ModelSource wrapped(format::ModelSource source) {
  return ModelSource(std::make_shared<ModelSource::Impl>(std::move(source)));
}

}  // namespace

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
  measuring::check(options.weights);
  for (const auto& [pattern, compression] : options.exceptions) measuring::check(compression);
  const auto chosen = [&](const compress::Site& site) -> const WeightCompression* {
    if (site.elements <= options.least_elements) return nullptr;
    const WeightCompression* out = &options.weights;
    for (const auto& [pattern, compression] : options.exceptions)
      if (measuring::applies(pattern, site.name, site.operation)) out = &compression;
    return out;
  };
  format::ModelSource source = model.impl().source();
  source.specification = source.specification.copy();
  CompressedModel out{ModelSource(model)};
  const auto decompressed =
      options.decompress ? api::unwrap(compress::decompress(source)) : std::vector<compress::Decompressed>();
  const auto compressed = api::unwrap(compress::compressed_weights_of(source));
  if (options.activations) out.activations = measuring::quantize_activations(source, *options.activations, wrapped);
  const auto outcomes = api::unwrap(compress::compress(
      source,
      [&](const compress::Site& site) {
        const WeightCompression* c = chosen(site);
        return c == nullptr ? compress::Recipe{} : measuring::recipe_of(*c);
      },
      options.progress));
  for (const compress::Outcome& o : outcomes) out.weights.push_back(measuring::public_outcome(o, chosen(o.site)));
  measuring::add_decompressed(decompressed, out.weights);
  measuring::add_compressed(compressed, out.weights);
  out.model = wrapped(std::move(source));
  if (options.activations) {
    const measuring::OutputNoise noise(model.load(options.activations->configuration), options.activations->inputs);
    out.signal_to_noise =
        measuring::signal_to_noise(noise.worst_share(out.model.load(options.activations->configuration)));
  }
  return out;
}

SearchedModel search_compression(const ModelSource& model, const CompressionSearch& search) {
  const auto packed = std::make_shared<plan::PackedStore>();
  return measuring::search(model.impl().source(), search,
                           {wrapped, [&](const Bytes& specification, const std::map<std::string, Bytes>& files) {
                              return Model::Impl::in_memory(specification, files, packed, search.configuration);
                            }});
}

}  // namespace moka
