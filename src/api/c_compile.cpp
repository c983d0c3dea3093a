// SPDX-License-Identifier: Apache-2.0
#include "api/c_support.h"
#include "moka/compiler.h"

using namespace moka::api;

extern "C" {

moka_status moka_compile_model(const char* path, const char* folder, const moka_compilation_options* options) {
  return guarded([&] {
    const auto o = options_from<moka_compilation_options>(options, MOKA_COMPILATION_OPTIONS_INIT, "options");
    moka::CompilationOptions with;
    with.embed_specification = o.embed_specification != 0;
    with.strict = o.strict != 0;
    with.overwrite = o.overwrite != 0 ? moka::Overwrite::any : moka::Overwrite::own_kind;
    const auto embedded =
        moka::compile_model(std::string(need_text(path, "path")), std::string(need_text(folder, "folder")), with);
    if (o.embedded == nullptr) return;
    for (const moka::EmbeddedNetwork& n : embedded) {
      const moka_embedded_network c{n.model.c_str(), n.layer.c_str(), n.type.c_str(), n.reason.c_str(), n.text.c_str()};
      o.embedded(o.context, &c);
    }
  });
}

}  // extern "C"
