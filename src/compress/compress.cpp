// SPDX-License-Identifier: Apache-2.0
#include "compress/constants.h"
#include "compress/encode_site.h"
#include "compress/make_all.h"
#include "compress/network.h"
#include "compress/program.h"

namespace moka::compress {

Result<NetworkMade> encode_network_weight(const NetworkWeight& weight, const Recipe& recipe) {
  const std::vector<float> values = MOKA_TRY(values_of(weight));
  NetworkMade out{{site_of(weight), recipe}, std::nullopt};
  out.outcome.bytes_before = out.outcome.bytes_after = bytes_of(out.outcome.site);
  out.outcome.skipped = refusal(weight, values, recipe);
  if (!out.outcome.skipped.empty()) return out;
  out.encoding = encode(weight, values, recipe);
  compare(values, out.encoding->decoded, false, out.outcome);
  if (out.outcome.skipped.empty())
    out.outcome.bytes_after = out.encoding->bytes;
  else
    out.encoding.reset();
  return out;
}

Result<std::vector<Outcome>> compress_networks(format::ModelSource& source, const Chooser& choose,
                                               const Progress& progress) {
  const std::vector<NetworkWeight> weights = MOKA_TRY(network_weights_of(source.specification));
  std::vector<NetworkMade> made(weights.size());
  std::vector<size_t> work;
  for (size_t i = 0; i < weights.size(); ++i) {
    Outcome& outcome = made[i].outcome;
    outcome.site = site_of(weights[i]);
    outcome.recipe = choose(outcome.site);
    outcome.bytes_before = outcome.bytes_after = bytes_of(outcome.site);
    if (!outcome.recipe.keeps()) work.push_back(i);
  }
  const auto make = [&](size_t i) { return encode_network_weight(weights[i], made[i].outcome.recipe); };
  MOKA_TRY(make_all(work, made, make, progress));
  std::vector<Outcome> out;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (made[i].encoding) MOKA_TRY(write(weights[i], *made[i].encoding));
    out.push_back(made[i].outcome);
  }
  if (!work.empty()) MOKA_TRY(raise_versions(source.specification));
  return out;
}

Result<std::vector<Outcome>> compress(format::ModelSource& source, const Chooser& choose, const Progress& progress) {
  bool known = false;
  for (const std::string_view type : {"MILSpec.Program", "NeuralNetworkLayer"})
    MOKA_TRY(each(source.specification, type, [&](const format::Message&) -> Status {
      known = true;
      return {};
    }));
  if (!known) return fail(ErrorCode::unsupported, "expected a model with an ML program or a neural network");
  std::vector<Outcome> out = MOKA_TRY(compress_programs(source, choose, progress));
  for (Outcome& outcome : MOKA_TRY(compress_networks(source, choose, progress))) out.push_back(std::move(outcome));
  return out;
}

}  // namespace moka::compress
