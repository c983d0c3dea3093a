// SPDX-License-Identifier: Apache-2.0
#include "view/document.h"

#include <filesystem>

#include "inspect.h"
#include "io/io_error.h"
#include "moka/compiler.h"
#include "page.h"

namespace moka::cli {

// The page that web/ builds.
extern const unsigned char view_page_bytes[];
extern const unsigned long view_page_size;

Json view_document(const Inspection& inspection, const std::string& path) {
  const ModelOutline& outline = inspection.outline();
  const ModelDescription& description = outline.description;
  InspectOptions options;
  options.load.path = path;
  FunctionDescription function{.name = description.default_function};
  for (const FunctionDescription& f : description.functions)
    if (f.name == description.default_function) function = f;
  Json json{{"format", "moka-view"},
            {"version", 1},
            {"moka", MOKA_VERSION},
            {"name", std::filesystem::path(path).lexically_normal().filename().string()},
            {"model", inspect_json(inspection, function, options)},
            {"graphs", Json::array()}};
  try {
    // The metadata of the compiled model, with Core ML's names.
    const Json metadata = Json::parse(model_metadata(path)).at(0);
    for (const char* key : {"storagePrecision", "computePrecision", "availability"})
      if (metadata.contains(key)) json["model"][key] = metadata[key];
  } catch (const std::exception&) {
    // A model that cannot be compiled has none of these facts.
  }
  const auto trees = [&](const std::vector<size_t>& models) { return inspection.tree_nodes(models); };
  const auto& functions = outline.structure.functions;
  if (functions.empty()) json["graphs"].push_back(to_json(graph_of(outline.structure, "", trees)));
  for (const auto& f : functions) json["graphs"].push_back(to_json(graph_of(outline.structure, f.name, trees)));
  return json;
}

void add_statistics(Json& document, const Inspection& inspection) {
  for (Json& graph : document["graphs"])
    for (Json& weight : graph["weights"]) {
      const auto models = weight.value("models", std::vector<size_t>());
      try {
        weight["statistics"] = to_json(inspection.statistics(weight["index"].get<size_t>(), models));
      } catch (const Exception& e) {
        weight["error"] = e.what();
      }
    }
}

std::string view_page(const Json& document) {
  if (view_page_size == 0)
    throw io::IoError("this build has no viewer, because npm could not fetch the packages of its page");
  return with_data({reinterpret_cast<const char*>(view_page_bytes), view_page_size}, "/*DOCUMENT*/", document);
}

}  // namespace moka::cli
