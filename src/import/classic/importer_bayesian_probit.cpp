// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "import/classic/classic.h"

namespace moka::import {
namespace {

using classic::Site;
using ir::NamedArg;
using ir::Value;
using Probit = proto::BayesianProbitRegressor;

/// One weight: a normal distribution for a feature with a value.
struct Weight {
  int64_t feature, value;
  double mean, variance;
};

Result<double> variance_of(const Probit::Gaussian& g) {
  if (!(g.precision() > 0))
    return fail(ErrorCode::malformed, "bayesianProbitRegressor: expected a precision above 0, got ", g.precision());
  if (!std::isfinite(g.mean()))
    return fail(ErrorCode::malformed, "bayesianProbitRegressor: expected a finite mean, got ", g.mean());
  return 1 / g.precision();
}

/// The weights in ascending order of feature and value.
Result<std::vector<Weight>> weights_of(const Probit& m) {
  std::vector<Weight> out;
  for (const auto& feature : m.features()) {
    if (m.numberoffeatures() > 0 && feature.featureid() >= m.numberoffeatures())
      return fail(ErrorCode::malformed, "bayesianProbitRegressor: expected features below ", m.numberoffeatures(),
                  ", got ", feature.featureid());
    for (const auto& w : feature.weights())
      out.push_back({feature.featureid(), w.featurevalue(), w.featureweight().mean(),
                     MOKA_TRY_IN(variance_of(w.featureweight()),
                                 cat("feature ", feature.featureid(), ", value ", w.featurevalue()))});
  }
  const auto key = [](const Weight& w) { return std::pair(w.feature, w.value); };
  std::sort(out.begin(), out.end(), [&](const Weight& a, const Weight& b) { return key(a) < key(b); });
  for (size_t i = 1; i < out.size(); ++i)
    if (key(out[i - 1]) == key(out[i]))
      return fail(ErrorCode::malformed, "bayesianProbitRegressor: feature ", out[i].feature,
                  " has two weights for the value ", out[i].value);
  return out;
}

Result<Value*> only_value(const Site& site, const std::string& name) {
  if (!name.empty()) return site.input(name);
  return site.input(*MOKA_TRY(site.only_input()));
}

Status import_bayesian_probit(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                              Features& features) {
  const Site site = MOKA_TRY(Site::open(model, context, builder, features));
  const Probit& m = model.bayesianprobitregressor();
  const std::vector<Weight> weights = MOKA_TRY(weights_of(m));
  const double bias_variance = m.has_bias() ? MOKA_TRY_IN(variance_of(m.bias()), "bias") : 0;
  Value* x = MOKA_TRY(only_value(site, m.regressioninputfeaturename()));
  if (x == nullptr) return fail(ErrorCode::malformed, "bayesianProbitRegressor without an input to regress");
  std::vector<int64_t> feature, value;
  std::vector<double> mean, variance;
  for (const Weight& w : weights) {
    feature.push_back(w.feature);
    value.push_back(w.value);
    mean.push_back(w.mean);
    variance.push_back(w.variance);
  }
  std::vector<NamedArg> args{{"x", x}};
  if (Value* v = MOKA_TRY(site.input(m.optimisminputfeaturename()))) args.emplace_back("optimism", v);
  args.emplace_back("feature", MOKA_TRY(site.tensor(feature)));
  args.emplace_back("value", MOKA_TRY(site.tensor(value)));
  args.emplace_back("weight_mean", MOKA_TRY(site.tensor(mean)));
  args.emplace_back("weight_variance", MOKA_TRY(site.tensor(variance)));
  args.emplace_back("bias_mean", ir::Tensor::scalar(ir::DType::fp64, m.bias().mean()));
  args.emplace_back("bias_variance", ir::Tensor::scalar(ir::DType::fp64, bias_variance));
  const ir::Op* op = MOKA_TRY(
      builder.append({"ml_bayesian_probit",
                      std::move(args),
                      site.name("regression"),
                      {site.name("probability"), site.name("mean"), site.name("variance"), site.name("shifted")},
                      {}}));
  for (const FeatureDescription& f : site.description().outputs) {
    Value* y = op->output(0);
    if (f.name == m.meanoutputfeaturename()) {
      y = op->output(1);
    } else if (f.name == m.varianceoutputfeaturename()) {
      y = op->output(2);
    } else if (f.name == m.pessimisticprobabilityoutputfeaturename()) {
      y = op->output(3);
    } else if (f.name == m.sampledprobabilityoutputfeaturename()) {
      std::vector<NamedArg> sample{{"mean", op->output(1)}, {"variance", op->output(2)}};
      if (Value* v = MOKA_TRY(site.input(m.samplingscaleinputfeaturename()))) sample.emplace_back("scale", v);
      if (Value* v = MOKA_TRY(site.input(m.samplingtruncationinputfeaturename()))) sample.emplace_back("truncation", v);
      y = MOKA_TRY(site.op("ml_probit_sample", std::move(sample), "sample"));
    }
    MOKA_TRY(site.output(f, y));
  }
  return {};
}

}  // namespace

ModelImporter importer_bayesian_probit() {
  static constexpr int types[] = {proto::Model::kBayesianProbitRegressor};
  return {types, import_bayesian_probit};
}

}  // namespace moka::import
