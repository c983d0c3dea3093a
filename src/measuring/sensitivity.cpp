// SPDX-License-Identifier: Apache-2.0
#include "measuring/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "boundary/errors.h"
#include "measuring/forms.h"

namespace moka::measuring {
namespace {

WeightCompression linear(unsigned bits, WeightGranularity granularity) {
  WeightCompression out;
  out.bits = bits;
  out.granularity = granularity;
  return out;
}

WeightCompression palette(unsigned bits, int64_t group) {
  WeightCompression out;
  out.form = WeightForm::palette;
  out.bits = bits;
  out.granularity = group > 0 ? WeightGranularity::group : WeightGranularity::tensor;
  out.group_size = group;
  return out;
}

std::vector<WeightCompression> forms_of_network() {
  WeightCompression half;
  half.form = WeightForm::half;
  std::vector<WeightCompression> out{half};
  for (const unsigned bits : {8U, 6U, 4U}) {
    out.push_back(linear(bits, WeightGranularity::channel));
    out.back().symmetric = false;
  }
  for (const unsigned bits : {8U, 6U, 4U, 3U, 2U, 1U}) out.push_back(palette(bits, 0));
  return out;
}

std::vector<WeightCompression> forms_of_program(compress::Form form) {
  std::vector<WeightCompression> out{linear(8, WeightGranularity::channel)};
  for (const unsigned bits : {8U, 6U, 4U, 2U, 1U}) out.push_back(palette(bits, 0));
  if (form == compress::Form::ios16) return out;
  constexpr int64_t group = 16;
  out.push_back(linear(4, WeightGranularity::block));
  for (const unsigned bits : {4U, 3U, 2U, 1U}) out.push_back(palette(bits, group));
  return out;
}

WeightCompression unchanged() {
  WeightCompression out;
  out.form = WeightForm::unchanged;
  return out;
}

struct Candidate {
  WeightCompression compression;
  compress::Trials::Tried made;
};

/// Leaves out forms that have more bytes and more noise in the weight than another one.
void drop_dominated(std::vector<Candidate>& candidates) {
  const auto worse = [](const compress::Outcome& a, const compress::Outcome& b) {
    return a.bytes_after >= b.bytes_after && a.signal_to_noise <= b.signal_to_noise &&
           (a.bytes_after > b.bytes_after || a.signal_to_noise < b.signal_to_noise);
  };
  const std::vector<bool> dropped = [&] {
    std::vector<bool> out;
    for (const Candidate& a : candidates)
      out.push_back(std::any_of(candidates.begin(), candidates.end(),
                                [&](const Candidate& b) { return worse(a.made.outcome, b.made.outcome); }));
    return out;
  }();
  size_t at = 0;
  std::erase_if(candidates, [&](const Candidate&) { return dropped[at++]; });
}

}  // namespace

Sensitivity::Sensitivity(const format::ModelSource& model, const CompressionSearch& search, LoadInMemory load)
    : search_(search), load_(std::move(load)), trials_(boundary::unwrap(compress::Trials::of(model))) {
  for (const auto& [name, content] : model.weights) files_[name] = content.joined();
  base_ = load_(boundary::unwrap(trials_.unchanged()), files_);
}

void Sensitivity::measure(size_t site, const std::vector<WeightCompression>& forms, bool fixed,
                          const OutputNoise& noise, std::span<const size_t> inputs) {
  std::vector<Candidate> candidates;
  for (const WeightCompression& form : forms) {
    const compress::Recipe recipe = recipe_of(form);
    if (recipe.keeps()) continue;
    compress::Trials::Tried made = boundary::unwrap(trials_.encode(site, recipe));
    if (made.values) candidates.push_back({form, std::move(made)});
  }
  drop_dominated(candidates);
  std::vector<MeasuredForm>& out = forms_[site];
  for (const Candidate& c : candidates) {
    const auto changed = boundary::unwrap(trials_.with(site, *c.made.values));
    std::map<std::string, Bytes> files = files_;
    if (!changed.file.empty()) files[std::string(compress::kTriedFile)] = changed.file;
    const Model model = load_(changed.specification, files);
    double mean = 0;
    for (const double share : noise.shares(model, inputs)) mean += share / static_cast<double>(inputs.size());
    // These inputs may leave out what others read, as the rows of an embedding.
    const double own = std::pow(10, -c.made.outcome.signal_to_noise / 10);
    if (mean == 0)
      mean = own;
    else
      changes_ = true;
    if (fixed) out.clear();
    out.push_back({c.compression, c.made.outcome.bytes_after, std::isfinite(mean) ? mean : 1e30});
  }
}

void Sensitivity::measure(const OutputNoise& noise, std::span<const size_t> inputs) {
  const auto& all = sites();
  forms_.assign(all.size(), {});
  for (size_t i = 0; i < all.size(); ++i) {
    const compress::Site& site = all[i];
    if (search_.progress) search_.progress("measuring weights", i, all.size());
    const size_t bytes = site.shared ? 0 : compress::bytes_of(site);
    forms_[i] = {{unchanged(), bytes, 0}};
    if (site.shared || site.elements <= search_.least_elements) continue;
    const WeightCompression* fixed = nullptr;
    for (const auto& [pattern, compression] : search_.exceptions)
      if (applies(pattern, site.name, site.operation)) fixed = &compression;
    const auto forms = !search_.forms.empty()  ? search_.forms
                       : trials_.is_network(i) ? forms_of_network()
                                               : forms_of_program(trials_.form(i));
    measure(i, fixed != nullptr ? std::vector{*fixed} : forms, fixed != nullptr, noise, inputs);
  }
  if (search_.progress) search_.progress("measuring weights", all.size(), all.size());
  const bool tried = std::any_of(forms_.begin(), forms_.end(), [](const auto& forms) { return forms.size() > 1; });
  if (tried && !changes_)
    throw Exception(
        ErrorKind::unsupported,
        "a search needs inputs for which the outputs depend on the weights; no form of any weight changed them");
}

compress::Options Sensitivity::options() const {
  compress::Options out;
  for (const auto& forms : forms_) {
    out.emplace_back();
    for (const MeasuredForm& f : forms) out.back().push_back({f.bytes, f.noise});
  }
  return out;
}

}  // namespace moka::measuring
