// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "command.h"
#include "moka/compiler.h"
#include "options.h"
#include "print.h"

namespace moka::cli {

Command add_metadata(Arguments parent) {
  auto options = std::make_shared<LoadOptions>();
  auto json = std::make_shared<bool>(false);
  Arguments app = parent.add_subcommand("metadata", "Print the metadata.json that a compiled model has, for any model");
  add_model(app, *options);
  app.add_flag("--json", *json, "Accepted for consistency; the output is always JSON");
  app.footer("Example: moka metadata Classifier.mlpackage");
  return {app, "moka metadata Classifier.mlpackage", [options, json] {
            use_keys(options->keys);
            print(model_metadata(options->path) + "\n");
            return 0;
          }};
}

}  // namespace moka::cli
