#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "moka/trace.h"
#include "report.h"

namespace moka::cli {

Json coverage(const Model& model, const Features& inputs, const PredictionOptions& options, int predictions) {
  namespace fs = std::filesystem;
  std::string path = (fs::temp_directory_path() / fmt::format("moka-report-{}.pftrace", getpid())).string();
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
  std::error_code ignored;
  fs::remove(path, ignored);
  double prediction = 0, operations = 0, conversions = 0;
  int64_t count = 0;
  for (const TraceGroup& g : summary.groups) {
    if (g.lane == "Activity" && g.kind == "predict") {
      prediction += g.total;
      count += g.count;
    }
    // What a device computes beside the host is the host's wait for it; control flow contains other operations.
    if (g.lane == "Compute" && g.kind != "region" &&
        (!g.kernel.empty() || g.kind == "convert_layout" || g.kind == "submit" || g.kind == "wait"))
      operations += g.total;
    if (g.lane == "Data") conversions += g.total;
  }
  if (count == 0) return {{"error", "the trace has no prediction"}};
  const auto n = static_cast<double>(count);
  return {{"predictions", count},
          {"predictionSeconds", prediction / n},
          {"operationsSeconds", operations / n},
          {"conversionsSeconds", conversions / n},
          {"fraction", (operations + conversions) / prediction}};
}

}  // namespace moka::cli
