// SPDX-License-Identifier: Apache-2.0
#include "view/server.h"

#include <fmt/format.h>
#include <spawn.h>

#include <array>
#include <cstdio>
#include <map>
#include <mutex>

#include "print.h"
#include "usage_error.h"
#include "view/answer.h"
#include "view/measurer.h"
#include "view/passes.h"
#include "view/save.h"
#include "view/values.h"

extern char** environ;

namespace moka::cli {
namespace {

/// Models under different settings that stay loaded.
constexpr size_t kMostModels = 4;

}  // namespace

struct ViewService::Impl {
  LoadOptions load;
  Inspection inspection;
  std::string page;
  Measurer measurer;
  std::mutex mutex;  ///< of the models, and of everything that computes with all cores
  std::map<std::array<std::string, 3>, Model> models;

  Impl(LoadOptions options, const Inspection& inspected)
      : load(std::move(options)), inspection(inspected), measurer(load) {}

  /// The model of {"function"} under a setting {"device", "precision"}, where absent ones are those of the command
  /// line.
  const Model& model(const Json& request, const Json& setting = Json::object()) {
    LoadOptions options = load;
    options.function = request.value("function", load.function);
    options.device = setting.value("device", load.device);
    options.precision = setting.value("precision", load.precision);
    if (options.precision != "exact" && options.precision != "at-least")
      throw UsageError("precision: expected exact or at-least, got " + options.precision);
    const std::array key{options.function, options.device, options.precision};
    const auto it = models.find(key);
    if (it != models.end()) return it->second;
    if (models.size() >= kMostModels) models.clear();
    return models.emplace(key, cli::load(options, configuration(options))).first->second;
  }

  Json weight(const Json& request) const {
    const auto models_to = request.value("models", std::vector<size_t>());
    return to_json(inspection.statistics(request.at("index").get<size_t>(), models_to));
  }

  Json predict(const Json& request) {
    const std::lock_guard lock(mutex);
    return answer_of(model(request), request.at("inputs"));
  }

  Json values(const Json& request) {
    const std::lock_guard lock(mutex);
    const Model used = model(request, request.value("setting", Json::object()));
    const Features inputs = inputs_of(used, request.at("inputs")).features;
    if (request.contains("index")) return value_of(used, inputs, request["index"].get<size_t>());
    if (!request.contains("other")) return values_of(used, inputs);
    return compared_values(used, model(request, request["other"]), inputs);
  }

  Json passes(const Json& request) {
    const std::lock_guard lock(mutex);
    return passes_of(model(request));
  }

  Json save(const Json& request) {
    const std::lock_guard lock(mutex);
    return save_model(load, request);
  }

  Json report(const Json& request) {
    const std::lock_guard lock(mutex);
    return measurer.report(request.value("function", load.function));
  }
};

ViewService::ViewService(LoadOptions load, const Inspection& inspection, Json document)
    : impl_(new Impl(std::move(load), inspection)) {
  document["live"] = true;
  impl_->page = view_page(document);
}

ViewService::~ViewService() = default;

HttpResponse ViewService::answer(const HttpRequest& request) {
  if (request.path.empty()) return {200, "text/html", impl_->page};
  const std::map<std::string, Json (*)(Impl&, const Json&)> answers{
      {"api/weight", [](Impl& impl, const Json& r) { return impl.weight(r); }},
      {"api/predict", [](Impl& impl, const Json& r) { return impl.predict(r); }},
      {"api/values", [](Impl& impl, const Json& r) { return impl.values(r); }},
      {"api/passes", [](Impl& impl, const Json& r) { return impl.passes(r); }},
      {"api/save", [](Impl& impl, const Json& r) { return impl.save(r); }},
      {"api/report", [](Impl& impl, const Json& r) { return impl.report(r); }},
  };
  const auto it = answers.find(request.path);
  if (it == answers.end()) return {404, "text/plain", "not found\n"};
  if (request.method != "POST") return {405, "text/plain", "expected POST\n"};
  Json json;
  unsigned status = 200;
  try {
    json = it->second(*impl_, Json::parse(request.body));
  } catch (const std::exception& e) {
    status = 400;
    json = {{"error", e.what()}};
  }
  return {status, "application/json", json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

int serve_view(const LoadOptions& load, const Inspection& inspection, Json document, uint16_t port, bool open,
               bool json) {
  ViewService service(load, inspection, std::move(document));
  HttpServer server(port, [&](const HttpRequest& request) { return service.answer(request); });
  print(json ? rendered(Json{{"address", server.address()}}) : server.address() + "\n");
  flush_output();
  if (open) {
    std::string command = "xdg-open", address = server.address();
    char* arguments[] = {command.data(), address.data(), nullptr};
    pid_t child = 0;  // goes on without this process: it may have become the browser
    if (posix_spawnp(&child, command.c_str(), nullptr, nullptr, arguments, environ) != 0)
      note("view", "xdg-open cannot be started; open the address in a browser");
  }
  server.run();
  return kFine;
}

}  // namespace moka::cli
