// SPDX-License-Identifier: Apache-2.0
#include "moka/trace.h"
#include "report.h"

namespace moka::cli {
namespace {

/// Seconds of all predictions.
struct Covered {
  double prediction = 0, operations = 0, conversions = 0;
  int64_t count = 0;
  double fraction() const { return prediction > 0 ? (operations + conversions) / prediction : 0; }
};

template <class Seconds>
Covered covered(const TraceSummary& summary, const Seconds& seconds) {
  Covered out;
  for (const TraceGroup& g : summary.groups) {
    if (g.lane == "Activity" && g.kind == "predict") {
      out.prediction += seconds(g);
      out.count += g.count;
    }
    // Regions overlap the host, which waits for them. Control flow contains other operations. Neither counts twice.
    if (g.lane == "Compute" && g.kind != "region" &&
        (!g.kernel.empty() || g.kind == "convert_layout" || g.kind == "submit" || g.kind == "wait"))
      out.operations += seconds(g);
    if (g.lane == "Data") out.conversions += seconds(g);
  }
  return out;
}

}  // namespace

Json coverage(const Model& model, const Features& inputs, const PredictionOptions& options, int predictions,
              const std::filesystem::path& folder) {
  std::string path = (folder / "report.pftrace").string();
  Features outputs;
  try {
    Trace trace(path);
    path = trace.path();
    for (int i = 0; i < predictions; i++) model.predict(inputs, outputs, options);
    trace.stop();
  } catch (const Exception& e) {
    if (e.kind() != ErrorKind::invalid_argument) throw;
    return {{"error", "the program is traced already"}};
  }
  const TraceSummary summary = summarize_trace(path);
  // Other work on the machine only lowers what both estimates find: that of all predictions where it meets the rest of
  // a prediction, and that of the shortest times where no prediction passes without it.
  const Covered mean = covered(summary, [](const TraceGroup& g) { return g.total; });
  const Covered shortest =
      covered(summary, [](const TraceGroup& g) { return g.minimum * static_cast<double>(g.count); });
  const Covered& c = shortest.fraction() > mean.fraction() ? shortest : mean;
  if (c.count == 0 || c.prediction <= 0) return {{"error", "the trace has no prediction"}};
  const auto n = static_cast<double>(c.count);
  return {{"predictions", c.count},
          {"predictionSeconds", c.prediction / n},
          {"operationsSeconds", c.operations / n},
          {"conversionsSeconds", c.conversions / n},
          {"fraction", c.fraction()}};
}

}  // namespace moka::cli
