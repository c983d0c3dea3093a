// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "api/internal.h"

namespace moka {

namespace {

std::string trace_name(const std::string& path, const ModelConfiguration& configuration) {
  const size_t end = path.find_last_not_of('/');
  std::string name = end == std::string::npos ? std::string() : path.substr(0, end + 1);
  name = name.substr(name.rfind('/') + 1);
  if (name.empty()) name = "model in memory";
  return configuration.function_name.empty() ? name : cat(name, ", ", configuration.function_name);
}

}  // namespace

namespace api {

TracedLoad::TracedLoad(const std::string& path, const ModelConfiguration& configuration)
    : use_(trace::is_on() ? trace::add_model(trace_name(path, configuration)) : 0),
      span_(trace::Lane::activity, "load") {}

}  // namespace api

trace::ModelId Model::Impl::traced() const {
  if (const trace::ModelId id = trace_model; id != 0) return id;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (trace_model == 0) trace_model = trace::add_model(trace_name(source->path, configuration));
  return trace_model;
}

}  // namespace moka
