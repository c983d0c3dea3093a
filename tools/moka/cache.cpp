// SPDX-License-Identifier: Apache-2.0
#include "moka/cache.h"

#include <fmt/format.h>

#include <memory>

#include "arguments.h"
#include "command.h"
#include "io/table.h"
#include "json.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct CacheOptions {
  std::string what, folder;
  bool json = false;
};

int list(const CacheOptions& options, const std::string& folder) {
  const std::vector<CachedModel> models = cached_models(folder);
  size_t bytes = 0;
  io::Table table({{"model", io::Shrink::middle},
                   {"bytes", io::Align::right},
                   {"usable", io::Align::left},
                   {"file", io::Shrink::middle}});
  Json json{{"folder", folder}, {"models", Json::array()}};
  for (const CachedModel& m : models) {
    bytes += m.bytes;
    table.add_row({m.model, format_bytes(static_cast<double>(m.bytes)), m.usable ? "yes" : "no",
                   m.file.substr(m.file.rfind('/') + 1)});
    json["models"].push_back({{"model", m.model}, {"file", m.file}, {"bytes", m.bytes}, {"usable", m.usable}});
  }
  std::string text = models.empty() ? "" : table_text(table) + "\n";
  text += fact("folder", folder) + fact("in all", plural(static_cast<int64_t>(models.size()), "file") + ", " +
                                                      format_bytes(static_cast<double>(bytes)));
  print(options.json ? rendered(json) : text);
  return 0;
}

int clear(const CacheOptions& options, const std::string& folder) {
  const size_t removed = clear_cache(folder);
  print(options.json ? rendered(Json{{"folder", folder}, {"removed", removed}})
                     : fact("removed", plural(static_cast<int64_t>(removed), "file") + " from " + folder));
  return 0;
}

int cache(const CacheOptions& options) {
  std::string folder = cache_folder(options.folder);
  if (folder.empty()) folder = cache_folder("default");
  return options.what == "clear" ? clear(options, folder) : list(options, folder);
}

}  // namespace

Command add_cache(Arguments parent) {
  auto options = std::make_shared<CacheOptions>();
  Arguments app = parent.add_subcommand("cache", "List or clear the packed weights that loading with --cache keeps");
  app.add_option("WHAT", options->what, "list or clear").required().check(one_of({"list", "clear"})).option_text(" ");
  app.add_option("--cache", options->folder, "The folder (default: $MOKA_CACHE, else the user's own)")
      .option_text("DIR");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka cache list");
  return {app, "moka cache list", [options] { return cache(*options); }};
}

}  // namespace moka::cli
