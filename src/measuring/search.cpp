// SPDX-License-Identifier: Apache-2.0
#include "measuring/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/clock.h"
#include "boundary/errors.h"
#include "measuring/forms.h"
#include "measuring/noise.h"
#include "measuring/predict.h"
#include "measuring/sensitivity.h"

namespace moka::measuring {
namespace {

constexpr size_t kRandomInputs = 12, kMostMeasured = 3, kEnough = 4;

size_t size_of(const format::ModelSource& source) {
  size_t out = boundary::unwrap(source.specification.serialize()).size();
  for (const auto& [name, content] : source.weights) out += content.size();
  return out;
}

/// Which inputs measure the weights and which check the result.
struct Division {
  std::vector<size_t> measure, check;
  bool separate = true;
};

Division divided(size_t count) {
  Division out;
  const size_t measured = count >= 3 ? std::min(kMostMeasured, count / 3) : count;
  out.separate = measured < count;
  for (size_t i = 0; i < count; ++i)
    (i % (count / measured) == 0 && out.measure.size() < measured ? out.measure : out.check).push_back(i);
  if (!out.separate) out.check = out.measure;
  return out;
}

/// A model with one choice of forms.
struct Attempt {
  compress::Choice choice;
  format::ModelSource model;
  std::vector<CompressedWeight> weights;
  size_t size = 0;
  double worst = 0, bound = 0;  ///< dB
};

/// Weights that only another function reads would look as if they did nothing.
const Model& one_function(const Model& model) {
  const size_t count = model.description().functions.size();
  if (count > 1)
    throw Exception(ErrorKind::unsupported, cat("a search needs a model with one function, and this one has ", count));
  return model;
}

class WeightSearch {
 public:
  WeightSearch(const format::ModelSource& source, const CompressionSearch& search, const Loaders& loaders)
      : source_(source),
        search_(search),
        loaders_(loaders),
        sensitivity_(source, search, loaders.in_memory),
        noise_(one_function(sensitivity_.base()), inputs()),
        division_(divided(noise_.count())) {}

  SearchedModel run() {
    sensitivity_.measure(noise_, division_.measure);
    options_ = sensitivity_.options();
    Attempt found = search_.size ? by_size(*search_.size) : by_noise(*search_.signal_to_noise);
    SearchedModel out{loaders_.source(found.model), std::move(found.weights)};
    out.sensitivity = sensitivity();
    out.curve = curve();
    out.size_after = found.size;
    out.signal_to_noise = found.worst;
    out.bound = found.bound;
    out.measured_inputs = division_.measure.size();
    out.checked_inputs = division_.check.size();
    out.separate = division_.separate;
    time(out);
    return out;
  }

 private:
  std::vector<Features> inputs() const {
    if (!search_.inputs.empty()) return search_.inputs;
    std::vector<Features> out;
    for (size_t i = 0; i < kRandomInputs; ++i) out.push_back(sensitivity_.base().random_inputs(search_.seed + i));
    return out;
  }

  const WeightCompression& form_of(const compress::Choice& choice, size_t site) const {
    return sensitivity_.forms()[site][choice.options[site]].compression;
  }

  /// Writes the model of a choice and compares it on the checking inputs.
  Attempt attempt(const compress::Choice& choice) {
    if (search_.progress) search_.progress("checking", attempts_.size(), 0);
    Attempt out{choice, source_};
    out.model.specification = source_.specification.copy();
    size_t site = 0;
    const auto outcomes = boundary::unwrap(
        compress::compress(out.model, [&](const compress::Site&) { return recipe_of(form_of(choice, site++)); }));
    for (size_t i = 0; i < outcomes.size(); ++i)
      out.weights.push_back(public_outcome(outcomes[i], &form_of(choice, i)));
    out.size = size_of(out.model);
    judge(out, noise_.shares(load(out.model), division_.check));
    attempted_.insert(choice.options);
    attempts_.push_back({out.size, signal_to_noise(choice.noise), out.worst});
    return out;
  }

  Model load(const format::ModelSource& model) const { return loaders_.source(model).load(search_.configuration); }

  void judge(Attempt& to, const std::vector<double>& shares) const {
    constexpr double exact = 300;
    double sum = 0, squares = 0;
    to.worst = INFINITY;
    for (const double share : shares) {
      const double db = std::clamp(signal_to_noise(share), -exact, exact);
      to.worst = std::min(to.worst, signal_to_noise(share));
      sum += db;
      squares += db * db;
    }
    const auto count = static_cast<double>(shares.size());
    const double mean = sum / count;
    double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean) * count / std::max(1.0, count - 1));
    if (shares.size() < kEnough || !division_.separate) deviation = std::max(deviation, 1.0);
    to.bound = to.worst == INFINITY ? INFINITY : std::min(to.worst, mean - 3 * deviation);
  }

  Attempt by_size(size_t size) {
    const compress::Choice smallest = compress::choose_by_bytes(options_, 0);
    size_t around = size_of(source_) - compress::curve_of(options_).front().bytes;
    constexpr int rounds = 8;
    for (int round = 0; round < rounds; ++round) {
      const compress::Choice choice = compress::choose_by_bytes(options_, size > around ? size - around : 0);
      Attempt out = attempt(choice);
      if (out.size <= size) return out;
      if (choice.options == smallest.options)
        throw Exception(ErrorKind::unsupported,
                        cat("a size of ", size, " bytes: the smallest model that these forms give has ", out.size,
                            " bytes of ", size_of(source_)));
      around += out.size - size;
    }
    return attempt(smallest);
  }

  Attempt by_noise(double goal) {
    const compress::Choice quietest = compress::choose_by_noise(options_, 0);
    double budget = std::pow(10, -goal / 10);
    std::optional<Attempt> best;
    std::optional<double> good, bad;
    std::map<std::vector<size_t>, bool> held;
    constexpr int rounds = 16;
    constexpr double close = 1.05;
    for (int round = 0; round < rounds && !(good && bad && *bad / *good < close); ++round) {
      const compress::Choice choice = compress::choose_by_noise(options_, budget);
      double apart = 0;  // dB
      if (!held.contains(choice.options)) {
        Attempt now = attempt(choice);
        apart = std::clamp(now.bound - goal, -30.0, 30.0);
        held[choice.options] = apart >= 0;
        if (apart < 0 && choice.options == quietest.options)
          throw Exception(ErrorKind::unsupported,
                          cat("a signal to noise of ", goal, " dB: these forms leave ", now.bound, " dB"));
        if (apart >= 0 && (!best || now.size < best->size)) best = std::move(now);
      } else if (!bad) {
        break;  // These forms make no more noise.
      }
      (held[choice.options] ? good : bad) = held[choice.options] ? budget : choice.noise;
      budget = good && bad ? std::sqrt(*good * *bad)
               : good      ? budget * std::pow(10, apart / 10)
                           : std::min(budget * std::pow(10, apart / 10), choice.noise * 0.999);
    }
    return best ? *std::move(best) : attempt(quietest);
  }

  std::vector<WeightSensitivity> sensitivity() const {
    std::vector<WeightSensitivity> out;
    for (size_t i = 0; i < sensitivity_.sites().size(); ++i) {
      if (sensitivity_.sites()[i].shared) continue;
      out.push_back({sensitivity_.sites()[i].name, {}});
      for (const MeasuredForm& f : sensitivity_.forms()[i])
        out.back().trials.push_back({describe(f.compression), f.bytes, signal_to_noise(f.noise)});
    }
    return out;
  }

  /// The expected points, and models at a few of them.
  std::vector<CompressionPoint> curve() {
    const std::vector<compress::Choice> choices = compress::curve_of(options_);
    const size_t around = size_of(source_) - choices.front().bytes;
    constexpr size_t further = 4;
    for (size_t i = 1; i <= further; ++i) {
      const size_t bytes = choices.front().bytes - (choices.front().bytes - choices.back().bytes) * i / further;
      const compress::Choice choice = compress::choose_by_bytes(options_, bytes);
      if (!attempted_.contains(choice.options)) attempt(choice);
    }
    std::vector<CompressionPoint> out = attempts_;
    for (const compress::Choice& choice : choices)
      out.push_back({around + choice.bytes, signal_to_noise(choice.noise), std::nullopt});
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.size > b.size; });
    return out;
  }

  void time(SearchedModel& out) {
    const Model after = out.model.load(search_.configuration);
    const Features& input = noise_.input(0);
    auto once = [&](const Model& model) {
      const auto start = Clock::now();
      predict_once(model, input);
      return seconds_since(start);
    };
    out.seconds_before = once(sensitivity_.base());
    out.seconds_after = once(after);
    constexpr int most = 30;
    constexpr double long_enough = 1;
    double spent = 0;
    for (int i = 0; i < most && spent < long_enough; ++i) {
      if (search_.progress) search_.progress("timing", static_cast<size_t>(i), most);
      const double before = once(sensitivity_.base()), then = once(after);
      spent += before + then;
      out.seconds_before = std::min(out.seconds_before, before);
      out.seconds_after = std::min(out.seconds_after, then);
    }
  }

  const format::ModelSource& source_;
  const CompressionSearch& search_;
  const Loaders& loaders_;
  Sensitivity sensitivity_;
  OutputNoise noise_;
  Division division_;
  compress::Options options_;
  std::vector<CompressionPoint> attempts_;
  std::set<std::vector<size_t>> attempted_;
};

}  // namespace

SearchedModel search(const format::ModelSource& model, const CompressionSearch& search, const Loaders& loaders) {
  if (search.size.has_value() == search.signal_to_noise.has_value())
    throw Exception(ErrorKind::invalid_argument, "expected one goal, a size or a signal to noise, got two or none");
  for (const WeightCompression& form : search.forms) check(form);
  for (const auto& [pattern, form] : search.exceptions) check(form);
  format::ModelSource source = model;
  std::vector<compress::Decompressed> decompressed;
  if (search.decompress) {
    source.specification = source.specification.copy();
    decompressed = boundary::unwrap(compress::decompress(source));
  }
  SearchedModel out = WeightSearch(source, search, loaders).run();
  out.size_before = size_of(model);
  add_decompressed(decompressed, out.weights);
  add_compressed(boundary::unwrap(compress::compressed_weights_of(source)), out.weights);
  return out;
}

}  // namespace moka::measuring
