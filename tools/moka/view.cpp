// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "command.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"
#include "view/document.h"
#include "view/server.h"

namespace moka::cli {
namespace {

struct ViewOptions {
  LoadOptions load;
  std::string page;
  int port = 0;
  bool no_open = false, json = false;
};

int view(ViewOptions options, const Outputs& outputs) {
  options.load.path = without_trailing_slashes(options.load.path);
  use_keys(options.load.keys);
  const Inspection inspection = Inspection::open(options.load.path);
  Json document = view_document(inspection, options.load.path);
  if (options.page.empty())
    return serve_view(options.load, inspection, std::move(document), static_cast<uint16_t>(options.port),
                      !options.no_open, options.json);
  add_statistics(document, inspection);
  const std::string page = view_page(document);
  outputs.write(options.page, FileKind::page, page);
  if (options.json) print(rendered(Json{{"written", options.page}}));
  return kFine;
}

}  // namespace

Command add_view(Arguments parent) {
  auto options = std::make_shared<ViewOptions>();
  Arguments app =
      parent.add_subcommand("view", "Look at a model in the browser: its graph, weights, predictions and times");
  add_load_options(app, options->load);
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->page, {{"", FileKind::page}},
                   "Write one HTML page that needs no network, and do not serve")
      .option_text("FILE.html");
  app.add_option("--port", options->port, "The port to listen on (default: a free one)")
      .check(whole_number(1, 65535))
      .option_text("N");
  app.add_flag("--no-open", options->no_open, "Print the address without opening a browser");
  app.add_flag("--json", options->json, "Print the address, or the page that was written, in JSON");
  app.footer(
      "Listens on 127.0.0.1 only, at an address with a secret. Ctrl-C ends it.\n"
      "Example: moka view Model.mlpackage -o model.html");
  return {app, "moka view Model.mlpackage", [options, outputs] { return view(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
