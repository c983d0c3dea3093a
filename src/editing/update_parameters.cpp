// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "editing/updatable.h"

namespace moka::editing {

using format::Scalar;

Status set_optimizer(const Message& model, const std::string& optimizer) {
  if (optimizer != "sgd" && optimizer != "adam")
    return fail(ErrorCode::invalid_argument, "expected the optimizer sgd or adam, got '", optimizer, "'");
  Message update = MOKA_TRY(update_of(model));
  MOKA_TRY(update.clear("optimizer"));
  Message message = MOKA_TRY(update.edit("optimizer"));
  MOKA_TRY(message.edit(optimizer + "Optimizer"));
  MOKA_TRY(set_parameter(model, "learningRate", {0.01}));
  MOKA_TRY(set_parameter(model, "miniBatchSize", {10}));
  if (optimizer == "sgd") return set_parameter(model, "momentum", {0});
  MOKA_TRY(set_parameter(model, "beta1", {0.9}));
  MOKA_TRY(set_parameter(model, "beta2", {0.999}));
  return set_parameter(model, "eps", {1e-8});
}

namespace {

/// The message that has a parameter of that name.
Result<Message> holder_of(const Message& model, const std::string& name) {
  const Message learner = MOKA_TRY(learner_of(model));
  if (name == "numberOfNeighbors") {
    if (MOKA_TRY(kind_of(learner)) != "kNearestNeighborsClassifier")
      return fail(ErrorCode::invalid_argument, "only a nearest-neighbors classifier has the parameter '", name, "'");
    return learner.child("kNearestNeighborsClassifier");
  }
  Message update = MOKA_TRY(update_of(model));
  if (name == "epochs" || name == "shuffle" || name == "seed") return update;
  Message optimizer = MOKA_TRY(update.edit("optimizer"));
  const std::string kind = MOKA_TRY(optimizer.which("OptimizerType"));
  if (kind.empty())
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': the model has no optimizer; set one first");
  Message out = MOKA_TRY(optimizer.child(kind));
  if (out.def().find(name) == nullptr)
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': ", kind, " does not have it");
  return out;
}

Status set_number(Message parameter, const std::string& name, const ParameterValue& value) {
  if (!value.allowed.empty())
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected a range, got a set of integers");
  const auto [least, most] = value.range.value_or(std::pair(0.0, 1.0));
  if (!(least < most))
    return fail(ErrorCode::invalid_argument, "parameter '", name,
                "': expected a range whose end is above its begin, got ", least, " to ", most);
  if (!(value.value >= least && value.value <= most))
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected a number from ", least, " to ", most,
                ", got ", value.value);
  MOKA_TRY(parameter.set("defaultValue", Scalar(value.value)));
  Message range = MOKA_TRY(parameter.edit("range"));
  MOKA_TRY(range.set("minValue", Scalar(least)));
  return range.set("maxValue", Scalar(most));
}

Result<int64_t> whole(const std::string& name, double value) {
  if (value != std::floor(value) || !std::isfinite(value))
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected an integer, got ", value);
  if (std::abs(value) < 9007199254740992.0) return static_cast<int64_t>(value);
  return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected an integer below 2^53, got ", value);
}

Status set_whole(Message parameter, const std::string& name, const ParameterValue& value) {
  const int64_t standard = MOKA_TRY(whole(name, value.value));
  if (value.range && !value.allowed.empty())
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected a range or a set, got both");
  const bool positive = name != "seed";
  const auto check = [&](int64_t v) -> Status {
    if (v > 0 || !positive) return {};
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected positive integers, got ", v);
  };
  MOKA_TRY(check(standard));
  MOKA_TRY(parameter.set("defaultValue", Scalar(standard)));
  if (value.range) {
    const int64_t least = MOKA_TRY(whole(name, value.range->first)), most = MOKA_TRY(whole(name, value.range->second));
    MOKA_TRY(check(least));
    if (standard < least || standard > most)
      return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected an integer from ", least, " to ", most,
                  ", got ", standard);
    const Message range = MOKA_TRY(parameter.edit("range"));
    MOKA_TRY(set_integer(range, "minValue", least));
    return set_integer(range, "maxValue", most);
  }
  std::vector<int64_t> allowed = value.allowed;
  if (allowed.empty() && name == "seed") return {};
  if (allowed.empty()) allowed = {standard};
  for (const int64_t v : allowed) MOKA_TRY(check(v));
  if (std::find(allowed.begin(), allowed.end(), standard) == allowed.end())
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected one of the allowed integers, got ",
                standard);
  if (std::set(allowed.begin(), allowed.end()).size() != allowed.size())
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': an allowed integer is given twice");
  const Message set = MOKA_TRY(parameter.edit("set"));
  return set_integers(set, "values", allowed);
}

}  // namespace

Status set_parameter(const Message& model, const std::string& name, const ParameterValue& value) {
  Message holder = MOKA_TRY(holder_of(model, name));
  MOKA_TRY(holder.clear(name));
  Message parameter = MOKA_TRY(holder.edit(name));
  const std::string type = parameter.def().name;
  if (type == "DoubleParameter") return set_number(parameter, name, value);
  if (type == "Int64Parameter") return set_whole(parameter, name, value);
  if (value.range || !value.allowed.empty())
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected 0 or 1 alone, got what is allowed");
  if (value.value != 0 && value.value != 1)
    return fail(ErrorCode::invalid_argument, "parameter '", name, "': expected 0 or 1, got ", value.value);
  return parameter.set("defaultValue", Scalar(value.value == 1));
}

}  // namespace moka::editing
