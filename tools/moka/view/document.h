// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.h"
#include "moka/inspection.h"
#include "view/graph.h"
#include "weight_statistics.h"

/// The data of the viewer's page; docs/viewer.md describes it.
namespace moka::cli {

/// {"name", "nodes", "edges", "weights"} with short keys.
Json to_json(const Graph& graph);

/// What the page shows of a model without loading it: its description, and a graph for each function.
Json view_document(const Inspection& inspection, const std::string& path);
/// Adds the statistics of every weight to a document, for a page without a server.
void add_statistics(Json& document, const Inspection& inspection);

/// The page with a document in it. It refers to nothing outside.
std::string view_page(const Json& document);

}  // namespace moka::cli
