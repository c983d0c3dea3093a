// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "report/measure.h"

namespace moka {

namespace reporting {

namespace {

constexpr size_t kMostSettings = 24;

std::string counted(int64_t count, std::string_view word) { return cat(count, " ", word, count == 1 ? "" : "s"); }

/// Each of `all` with each of `values`, which `apply` sets and names.
template <class T, class Apply>
void combine(std::vector<ReportSetting>& all, const std::vector<T>& values, const Apply& apply) {
  if (values.empty()) return;
  std::vector<ReportSetting> more;
  for (const ReportSetting& s : all)
    for (const T& v : values) {
      ReportSetting& next = more.emplace_back(s);
      const std::string name = apply(next, v);
      if (!name.empty()) next.name += (next.name.empty() ? "" : ", ") + name;
    }
  all = std::move(more);
}

}  // namespace

std::string shape_text(std::string_view name, const std::vector<int64_t>& shape) {
  std::string out = cat(name, "=");
  for (size_t i = 0; i < shape.size(); i++) out += (i ? "x" : "") + std::to_string(shape[i]);
  return out;
}

std::string_view name_of(ComputeUnits units) {
  switch (units) {
    case ComputeUnits::all: return "all";
    case ComputeUnits::cpu_only: return "cpuOnly";
    case ComputeUnits::cpu_and_gpu: return "cpuAndGPU";
    case ComputeUnits::cpu_and_neural_engine: return "cpuAndNeuralEngine";
  }
  return "all";
}

std::string_view name_of(Precision precision) { return precision == Precision::exact ? "exact" : "at-least"; }

}  // namespace reporting

std::vector<ReportSetting> report_settings(const ReportSetting& base, const ReportChoices& choices) {
  size_t count = 1;
  for (const size_t some : {choices.functions.size(), choices.compute_units.size(), choices.precisions.size(),
                            choices.threads.size(), choices.batches.size()})
    if (some > 0 && __builtin_mul_overflow(count, some, &count)) count = SIZE_MAX;
  if (count > reporting::kMostSettings)
    throw Exception(ErrorKind::invalid_argument,
                    cat("expected at most ", reporting::kMostSettings, " settings, got ", count));
  std::vector<ReportSetting> all{base};
  all[0].name.clear();
  reporting::combine(all, choices.functions,
                     [](ReportSetting& s, const std::string& v) { return s.configuration.function_name = v; });
  reporting::combine(all, choices.compute_units, [](ReportSetting& s, ComputeUnits v) {
    s.configuration.compute_units = v;
    return std::string(reporting::name_of(v));
  });
  reporting::combine(all, choices.precisions, [](ReportSetting& s, Precision v) {
    s.configuration.precision = v;
    return std::string(reporting::name_of(v));
  });
  reporting::combine(all, choices.threads, [](ReportSetting& s, int v) {
    s.configuration.threads = v;
    return reporting::counted(v, "thread");
  });
  reporting::combine(all, choices.batches, [](ReportSetting& s, int64_t v) {
    s.batch = v;
    return cat("batch of ", v);
  });
  for (ReportSetting& s : all)
    if (s.name.empty()) s.name = base.name;
  return all;
}

}  // namespace moka
