// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "moka/trace.h"
#include "report/measure.h"
#include "report/temporary_folder.h"

namespace moka::reporting {

namespace {

/// Seconds of all predictions.
struct Covered {
  double prediction = 0, operations = 0, conversions = 0;
  int64_t count = 0;
  double fraction() const { return prediction > 0 ? (operations + conversions) / prediction : 0; }
};

template <class Seconds>
Covered covered(const TraceSummary& summary, const std::string& model, const Seconds& seconds) {
  Covered out;
  for (const TraceGroup& g : summary.groups) {
    if (g.model != model) continue;
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

/// The track of the model with this number of predictions. Other threads may use other models meanwhile, and a model
/// may contain others, which take less time than it does.
std::string track_of(const TraceSummary& summary, int64_t predictions) {
  const TraceGroup* found = nullptr;
  for (const TraceGroup& g : summary.groups)
    if (g.lane == "Activity" && g.kind == "predict" && g.count == predictions &&
        (found == nullptr || g.total > found->total))
      found = &g;
  return found == nullptr ? std::string() : found->model;
}

TraceSummary traced(const Model& model, const Features& inputs, const PredictionOptions& options, int predictions) {
  const TemporaryFolder folder;
  Trace trace((folder.path() / "report.pftrace").string());
  Features outputs;
  for (int i = 0; i < predictions; i++) model.predict(inputs, outputs, options);
  trace.stop();
  return summarize_trace(trace.path());
}

}  // namespace

ReportCoverage coverage(const Model& model, const Features& inputs, const PredictionOptions& options, int predictions) {
  ReportCoverage out;
  TraceSummary summary;
  try {
    summary = traced(model, inputs, options, predictions);
  } catch (const Exception& e) {
    if (e.kind() != ErrorKind::invalid_argument && e.kind() != ErrorKind::io) throw;
    out.error = e.kind() == ErrorKind::io ? e.what() : "the program is traced already";
    return out;
  }
  const std::string track = track_of(summary, predictions);
  // Other work on the machine only lowers what both estimates find: that of all predictions where it meets the rest of
  // a prediction, and that of the shortest times where no prediction passes without it.
  const Covered mean = covered(summary, track, [](const TraceGroup& g) { return g.total; });
  const Covered shortest =
      covered(summary, track, [](const TraceGroup& g) { return g.minimum * static_cast<double>(g.count); });
  const Covered& c = shortest.fraction() > mean.fraction() ? shortest : mean;
  if (track.empty() || c.count == 0 || c.prediction <= 0) {
    out.error = "the trace has no prediction";
    return out;
  }
  const auto n = static_cast<double>(c.count);
  out.predictions = c.count;
  out.prediction_seconds = c.prediction / n;
  out.operations_seconds = c.operations / n;
  out.conversions_seconds = c.conversions / n;
  out.fraction = c.fraction();
  return out;
}

}  // namespace moka::reporting
