// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "command.h"
#include "json.h"
#include "print.h"

namespace moka::cli {

Command add_version(Arguments parent) {
  auto json = std::make_shared<bool>(false);
  Arguments app = parent.add_subcommand("version", "Print the version of this program");
  app.add_flag("--json", *json, "Answer in JSON");
  return {app, "moka version", [json] {
            print(*json ? rendered(Json{{"version", MOKA_VERSION}}) : std::string(MOKA_VERSION "\n"));
            return 0;
          }};
}

}  // namespace moka::cli
