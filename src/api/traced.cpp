// SPDX-License-Identifier: Apache-2.0
#include "api/internal.h"
#include "trace/present.h"

namespace moka {

namespace api {

std::string trace_name(const std::string& path, const ModelConfiguration& configuration) {
  const size_t end = path.find_last_not_of('/');
  std::string name = end == std::string::npos ? std::string() : path.substr(0, end + 1);
  name = name.substr(name.rfind('/') + 1);
  if (name.empty()) name = "model in memory";
  return configuration.function_name.empty() ? name : cat(name, ", ", configuration.function_name);
}

TracedLoad::TracedLoad(const std::string& path, const ModelConfiguration& configuration)
    : use_(trace::is_on() ? trace::add_model(trace_name(path, configuration)) : 0), span_(trace::Lane::activity, [&] {
        return trace::label("load", "load", {{"path", path}});
      }) {}

}  // namespace api

trace::ModelId Model::Impl::traced() const {
  if (const trace::ModelId id = present.model(); id != 0) return id;
  return present.model_of(api::trace_name(source->path, configuration));
}

}  // namespace moka
